"""A table of data becomes a field, with what was done told in words."""

import numpy as np
import pytest

from jaxtrace.config import configure, reset_config
from jaxtrace.workflow.series import load_field
from jaxtrace.workflow.tables import Data
from trace_cases import write_slices

POINT = np.array([[1.0, 0.5, 0.5]], np.float32)


def test_slices_become_a_field_in_time(tmp_path):
    field, notes = load_field(Data(str(write_slices(tmp_path))), "float32")
    assert field.get_time_bounds() == (0.0, 1.0)
    found = field.sample_at_positions(POINT, 0.25)
    np.testing.assert_allclose(found, [[1.25, 0, 0]], rtol=1e-6)
    assert notes[0].startswith("3 slices of ")
    assert "velocity: velocity" in notes
    assert "interpolation: trilinear" in notes


def test_slices_are_chosen_as_the_table_says(tmp_path):
    pattern = str(write_slices(tmp_path))
    late, _ = load_field(Data(pattern, skip_initial_timesteps=1), "float32")
    assert late.get_time_bounds() == (0.5, 1.0)
    ends, notes = load_field(Data(pattern, max_timesteps_to_load=2), "float32")
    assert ends.get_time_bounds() == (0.0, 1.0)
    assert notes[0].startswith("2 slices of ")


def test_what_does_not_fit_is_streamed_and_said(tmp_path):
    pattern = str(write_slices(tmp_path, np.linspace(0, 1, 11)))
    configure(memory_limit_gb=5e-6)  # about five slices
    try:
        field, notes = load_field(Data(pattern), "float32")
    finally:
        reset_config()
    assert any("read as the run needs them" in note for note in notes)
    found = field.sample_at_positions(POINT, 0.95)
    np.testing.assert_allclose(found, [[1.95, 0, 0]], rtol=1e-6)


def test_what_lies_outside_follows_the_table(tmp_path):
    data = Data(str(write_slices(tmp_path)), outside="zero")
    field, _ = load_field(data, "float32")
    np.testing.assert_array_equal(field.sample_at_positions(POINT + 9, 0.0), 0)


def test_no_files_are_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="no files found"):
        load_field(Data(str(tmp_path / "*.vtu")), "float32")
