"""Chunks, out-of-memory recovery and padding."""

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
    ChunkPlan,
    SliceWindows,
    begin,
    first_instant,
    run_chunks,
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
    return dynamics, particles, schedule, method


def positions(dynamics, particles, schedule, method, plan, **options):
    chunks = list(
        run_chunks(SliceWindows(dynamics), particles, schedule, method, plan, **options)
    )
    assert [c.first for c in chunks] == list(
        np.cumsum([options.get("first", 0)] + [c.frames for c in chunks[:-1]])
    )
    return np.concatenate([c.records[0].positions for c in chunks]), chunks


@pytest.mark.slow  # compiles a program of its own
def test_chunks_of_any_length_make_the_same_run():
    parts = prepared()
    whole, _ = positions(*parts, ChunkPlan(10))
    for length in (1, 3, 4, 10):
        pieces, _ = positions(*parts, ChunkPlan(length))
        np.testing.assert_array_equal(pieces, whole)


def test_a_run_goes_on_from_any_frame():
    dynamics, particles, schedule, method = prepared()
    whole, chunks = positions(dynamics, particles, schedule, method, ChunkPlan(4))
    rest, _ = positions(
        dynamics, chunks[0].particles, schedule, method, ChunkPlan(2), first=4
    )
    np.testing.assert_array_equal(rest, whole[4:])


def fail_above(monkeypatch, frames: int, tile: int | None = None):
    """Make calls that are too large fail as an accelerator does."""
    call = time_loop._call

    def scarce(dynamics, particles, part, method, padded, *where):
        if part.frames > frames or (tile and (method.tile or 10**9) > tile):
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")
        return call(dynamics, particles, part, method, padded, *where)

    monkeypatch.setattr(time_loop, "_call", scarce)


def test_out_of_memory_halves_the_frames_and_goes_on(monkeypatch, caplog):
    parts = prepared()
    whole, _ = positions(*parts, ChunkPlan(4))
    fail_above(monkeypatch, 3)
    got, chunks = positions(*parts, ChunkPlan(10))
    np.testing.assert_array_equal(got, whole)
    assert max(c.frames for c in chunks) == 2
    assert "out of memory" in caplog.text


def test_out_of_memory_halves_the_particles_down_to_the_smallest(monkeypatch):
    parts = prepared()
    whole, _ = positions(*parts, ChunkPlan(4))
    fail_above(monkeypatch, 10, tile=3)
    got, _ = positions(*parts, ChunkPlan(1, smallest_tile=2))
    np.testing.assert_array_equal(got, whole)
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        positions(*parts, ChunkPlan(1, smallest_tile=4))


def test_a_call_that_fails_behind_another_loses_nothing(monkeypatch):
    parts = prepared()
    whole, _ = positions(*parts, ChunkPlan(4))
    call, calls = time_loop._call, []

    def third_fails(dynamics, particles, part, method, padded, *where):
        calls.append(part.frames)
        if len(calls) == 3:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")
        return call(dynamics, particles, part, method, padded, *where)

    monkeypatch.setattr(time_loop, "_call", third_fails)
    got, chunks = positions(*parts, ChunkPlan(4))
    np.testing.assert_array_equal(got, whole)
    # The second, whose turn had not come, is worked out again in smaller pieces.
    assert [c.frames for c in chunks] == [4, 2, 2, 2]


def test_the_next_chunk_is_under_way_when_one_is_handed_out(monkeypatch):
    dynamics, particles, schedule, method = prepared()
    call, calls = time_loop._call, []
    monkeypatch.setattr(time_loop, "_call", lambda *a: calls.append(1) or call(*a))
    under_way = [
        len(calls)
        for _ in run_chunks(
            SliceWindows(dynamics), particles, schedule, method, ChunkPlan(2)
        )
    ]
    assert under_way == [2, 3, 4, 5, 5]


def test_recovery_can_be_refused(monkeypatch):
    fail_above(monkeypatch, 3)
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        positions(*prepared(), ChunkPlan(10, recover=False))


def test_other_errors_are_not_swallowed(monkeypatch):
    def broken(*args):
        raise ValueError("another fault")

    monkeypatch.setattr(time_loop, "_call", broken)
    with pytest.raises(ValueError, match="another fault"):
        positions(*prepared(), ChunkPlan(10))


def test_slots_that_fill_up_are_empty():
    _, particles, _, _ = prepared(10)
    padded = pad_slots(particles, 8)
    assert padded.positions.shape == (16, 3)
    assert padded.alive.sum() == 10
    assert padded.slots.tolist() == list(range(16))
    assert pad_slots(particles, 5) is particles


def test_a_small_budget_makes_short_calls():
    whole = track(record_velocities=True)
    got = track(record_velocities=True, max_memory_gb=60 * 24 * 4 * 3 / 1024**3)
    np.testing.assert_array_equal(got.positions, whole.positions)
