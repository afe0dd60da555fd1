"""Chunks, out-of-memory recovery and padding."""

from typing import Any

import jax
import numpy as np
import pytest

from jaxtrace.tracking import time_loop
from jaxtrace.tracking.boundaries.base import Open
from jaxtrace.tracking.motion import PassiveTracer
from jaxtrace.tracking.particles import noise_key, pad_slots
from jaxtrace.tracking.schedule import make_schedule
from jaxtrace.tracking.step import Dynamics, Method
from jaxtrace.tracking.time_loop import (
    ChunkedRun,
    SliceWindows,
    begin,
    first_instant,
)
from trace_flows import noise_field, seeds, track


def prepared(count: int = 12):
    dynamics = Dynamics(noise_field(), Open(), PassiveTracer(), noise_key(0))
    method = Method("euler", count)
    times = np.linspace(0, 1, 11)
    start = jax.numpy.asarray(seeds(count))
    schedule = make_schedule(dynamics.field, times, 1, method.tableau, start.dtype)
    instant = first_instant(dynamics.field, times, start.dtype)
    time_loop.allow_one_program(begin)
    particles, _ = begin(dynamics, start, instant, method)
    return (SliceWindows(dynamics), schedule, method), particles


def positions(run, particles, frames, first=0, **plan: Any):
    chunks = list(ChunkedRun(*run, frames=frames, **plan).chunks(particles, first))
    expected = np.cumsum([first] + [c.frames for c in chunks[:-1]])
    assert [c.first for c in chunks] == list(expected)
    return np.concatenate([c.records[0].positions for c in chunks]), chunks


@pytest.mark.slow  # compiles a program of its own
def test_chunks_of_any_length_make_the_same_run():
    parts = prepared()
    whole, _ = positions(*parts, 10)
    for length in (1, 3, 4, 10):
        np.testing.assert_array_equal(positions(*parts, length)[0], whole)


def test_a_run_goes_on_from_any_frame():
    run, particles = prepared()
    whole, chunks = positions(run, particles, 4)
    rest, _ = positions(run, chunks[0].particles, 2, first=4)
    np.testing.assert_array_equal(rest, whole[4:])


def fail_when(monkeypatch, too_large):
    """Make calls fail as an accelerator does; a test says which, by run and part."""
    call = ChunkedRun._call

    def scarce(run, dynamics, particles, part):
        if too_large(run, part):
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")
        return call(run, dynamics, particles, part)

    monkeypatch.setattr(ChunkedRun, "_call", scarce)


def test_out_of_memory_halves_the_frames_and_goes_on(monkeypatch, caplog):
    parts = prepared()
    whole, _ = positions(*parts, 4)
    fail_when(monkeypatch, lambda run, part: part.frames > 3)
    got, chunks = positions(*parts, 10)
    np.testing.assert_array_equal(got, whole)
    assert max(c.frames for c in chunks) == 2
    assert "out of memory" in caplog.text
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        positions(*parts, 10, recover=False)


def test_out_of_memory_halves_the_particles_down_to_the_smallest(monkeypatch):
    parts = prepared()
    whole, _ = positions(*parts, 4)
    fail_when(monkeypatch, lambda run, part: (run.method.tile or 10**9) > 3)
    got, _ = positions(*parts, 1, smallest_tile=2)
    np.testing.assert_array_equal(got, whole)
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        positions(*parts, 1, smallest_tile=4)


def test_a_call_that_fails_behind_another_loses_nothing(monkeypatch):
    parts, calls = prepared(), []
    whole, _ = positions(*parts, 4)
    fail_when(monkeypatch, lambda *_: calls.append(1) or len(calls) == 3)
    got, chunks = positions(*parts, 4)
    np.testing.assert_array_equal(got, whole)
    # The second, whose turn had not come, is worked out again in smaller pieces.
    assert [c.frames for c in chunks] == [4, 2, 2, 2]


def test_the_next_chunk_is_under_way_when_one_is_handed_out(monkeypatch):
    run, particles = prepared()
    calls: list[int] = []
    fail_when(monkeypatch, lambda *_: calls.append(1))
    under_way = [len(calls) for _ in ChunkedRun(*run, 2).chunks(particles)]
    assert under_way == [2, 3, 4, 5, 5]


def test_other_errors_are_not_swallowed(monkeypatch):
    def broken(*args):
        raise ValueError("another fault")

    monkeypatch.setattr(ChunkedRun, "_call", broken)
    with pytest.raises(ValueError, match="another fault"):
        positions(*prepared(), 10)


def test_slots_that_fill_up_are_empty():
    _, particles = prepared(10)
    padded = jax.jit(pad_slots, static_argnums=1)(particles, 8)
    assert padded.positions.shape == (16, 3)
    assert padded.alive.sum() == 10
    assert padded.slots.tolist() == list(range(16))
    assert pad_slots(particles, 5) is particles


def test_a_small_budget_makes_short_calls():
    whole = track(record_velocities=True)
    got = track(record_velocities=True, max_memory_gb=60 * 24 * 4 * 3 / 1024**3)
    np.testing.assert_array_equal(got.positions, whole.positions)
