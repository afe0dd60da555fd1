"""The exponent of a saddle is its rate; files hold what was computed."""

import numpy as np
import pytest

from jaxtrace.bounds import box_bounds
from jaxtrace.workflow.case import read_case
from jaxtrace.workflow.ftle import compute_ftle, plane_axes, save_ftle

SADDLE = {
    "flow": {"name": "saddle", "rate": 0.5},
    "particles": {"bounds": [-1, 1, -2, 2]},
    "time": {"time_span": [1.0, 3.0]},
    "ftle": {"resolution": 9, "dt": 0.05},
}


def test_a_saddle_stretches_at_its_rate():
    found = compute_ftle(read_case(SADDLE))
    assert (found.t0, found.T) == (1.0, 2.0)
    assert found.values.shape == (5, 9)
    np.testing.assert_allclose(found.values, 0.5, rtol=1e-4)


def test_the_table_says_when_where_and_how_long():
    table = {"t0": 0.0, "T": -1.0, "bounds": [0, 1, 0, 1], "resolution": 4, "dt": 0.1}
    found = compute_ftle(read_case({**SADDLE, "ftle": table}))
    assert (found.t0, found.T) == (0.0, -1.0)
    np.testing.assert_array_equal(found.x[[0, -1]], [0, 1])
    np.testing.assert_allclose(found.values, 0.5, rtol=1e-4)
    with pytest.raises(ValueError, match=r"ftle\.T is 0"):
        compute_ftle(read_case({**SADDLE, "ftle": {"T": 0.0}}))


def test_axes_are_as_dense_along_both():
    x, y = plane_axes(box_bounds([0, 3, 0, 1]), 31)
    assert (x.size, y.size) == (31, 11)
    with pytest.raises(ValueError, match="flat along x or y"):
        plane_axes(box_bounds([0, 1, 2, 2]), 5)


def test_arrays_and_picture(tmp_path):
    pytest.importorskip("matplotlib")
    found = compute_ftle(read_case(SADDLE))
    arrays, picture = save_ftle(found, tmp_path / "deep")
    with np.load(arrays) as saved:
        np.testing.assert_array_equal(saved["ftle"], found.values)
        assert saved["T"] == 2.0
    assert picture.read_bytes().startswith(b"\x89PNG")
