"""No line leads over a wrap, a gap or another life; every other step is drawn."""

import numpy as np
import pytest

from jaxtrace.visualization.inputs import read_paths
from jaxtrace.visualization.lines import find_stretches, joined_steps
from trace_records import absorbing_channel, recycling_channel, uniform

TIMES = np.linspace(0, 4, 41)


def longest_step(stretches):
    return max(np.abs(np.diff(s.points, axis=0)).max() for s in stretches)


@pytest.mark.parametrize("period", [(1, 1, 0), (1, 0, 0)])
def test_lines_break_at_periodic_wraps(period):
    record = uniform([0.7, 0.4, 0.1], np.random.default_rng(0).random((5, 3)), TIMES)
    wrapped = uniform([0.7, 0.4, 0.1], record.positions[0], TIMES, period=period)
    stretches = find_stretches(read_paths(wrapped), np.arange(5), 40)
    assert longest_step(stretches) == pytest.approx(0.07)
    cells = np.floor(record.positions[..., : sum(period)])
    wraps = (np.diff(cells, axis=0) != 0).any(axis=-1)
    np.testing.assert_array_equal(joined_steps(wrapped), ~wraps)


def test_lines_break_where_a_slot_is_used_again():
    record = recycling_channel(0.5, 1.0, [0.0, 0.3], TIMES)
    stretches = find_stretches(record, np.arange(2), 40)
    assert longest_step(stretches) == pytest.approx(0.05)
    assert [s.particle for s in stretches].count(0) == 2
    assert sum(len(s.points) - 1 for s in stretches) == joined_steps(record).sum()


def test_lines_end_where_a_particle_is_absorbed():
    record = absorbing_channel(1.0, 2.0, [0.0, 1.0], TIMES)
    stretches = find_stretches(record, np.arange(2), 40)
    assert [len(s.points) for s in stretches] == record.alive.sum(axis=0).tolist()
    assert all(np.isfinite(s.points).all() for s in stretches)


def test_lines_go_to_the_frame_asked_for_in_the_order_asked_for():
    record = uniform([1, 0, 0], np.zeros((3, 3)), TIMES)
    stretches = find_stretches(record, np.array([2, 0]), 4)
    assert [s.particle for s in stretches] == [2, 0]
    assert all(len(s.points) == 5 for s in stretches)
    assert find_stretches(record, np.array([1]), 0) == []
