"""Fields larger than memory: the same run, few slices at a time, each read once."""

import numpy as np
import pytest

from jaxtrace.fields.grid import make_grid_field
from jaxtrace.fields.streamed import StreamedField, window_size
from trace_flows import AXES, TIMES, noise_field, noise_values, seeds, track


class SliceReader:
    def __init__(self):
        self.values, self.times = noise_values(), TIMES
        self.read_slices: list[int] = []
        self.last = len(TIMES)

    def read(self, index: int) -> np.ndarray:
        if index > self.last:
            raise OSError(f"slice {index} cannot be read")
        self.read_slices.append(index)
        return self.values[index]


def pack(values):
    return np.asarray(make_grid_field(values, AXES).values[0])


def streamed(window: int) -> tuple[StreamedField, SliceReader]:
    slices = SliceReader()
    one = slices.values[0].nbytes
    field = StreamedField(
        slices.times,
        slices.read,
        make_grid_field(slices.values[0], AXES),
        pack,
        slice_bytes=one,
        memory_limit_gb=window * 4 * one / 1024**3,
    )
    assert field.window == window
    return field, slices


@pytest.mark.parametrize("window", [4, 21])
@pytest.mark.parametrize("span", [(0.0, 2.0), (2.0, 0.0)])
@pytest.mark.slow  # compiles a program of its own
def test_a_streamed_run_is_the_run(window, span):
    field, slices = streamed(window)
    slices.read_slices.clear()
    got = track(field, span=span, record_velocities=True)
    expected = track(span=span, record_velocities=True)
    np.testing.assert_array_equal(got.positions, expected.positions)
    np.testing.assert_array_equal(got.velocities, expected.velocities)
    most = 21 if span == (0.0, 2.0) else 21 + window
    assert len(slices.read_slices) <= most


def test_samples_anywhere_in_time():
    field, _ = streamed(3)
    whole = noise_field()
    for t in (0.0, 1.93, 0.55, 2.0):
        np.testing.assert_allclose(
            field.sample_at_positions(seeds(), t),
            whole.sample_at_positions(seeds(), t),
            atol=1e-6,
        )


def test_a_window_that_is_too_small_is_refused():
    with pytest.raises(ValueError, match="two need"):
        window_size(1000, 7999, 40)
    assert window_size(1000, 8000, 40) == 2
    assert window_size(1000, 10**9, 40) == 40
    field, _ = streamed(3)
    with pytest.raises(ValueError, match="do not fit a window of 3"):
        field.cover(0, 3)


def test_a_failed_read_is_raised_where_it_is_needed():
    field, slices = streamed(4)
    slices.last = 3
    with pytest.raises(OSError, match="cannot be read"):
        track(field)


def test_adaptive_steps_need_the_whole_field():
    field, _ = streamed(3)
    with pytest.raises(ValueError, match="adaptive steps may need any slice"):
        track(field, adaptive_dt=True)
