"""Particles that enter a run when they are released, and leave it when they are old."""

import datetime

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.analysis import residence_times
from jaxtrace.fields.analytic import FunctionField, UniformFlow
from jaxtrace.fields.time_series import TimeSeriesField
from jaxtrace.io.convert import convert, read_recorded
from jaxtrace.io.store import open_store
from jaxtrace.tracking.behaviors import Age, History
from jaxtrace.tracking.boundary import (
    absorbing_boundary_factory,
    continuous_inlet_boundary_factory,
)
from jaxtrace.tracking.motion import Diffusion, Inertial
from jaxtrace.tracking.release import repeated
from jaxtrace.tracking.tracker import create_tracker
from jaxtrace.trajectory import merge_trajectories
from jaxtrace.types import ParticleStatus

SEEDS = np.array([[0.1, 0.2, 0.3], [0.0, 0.5, 0.0], [0.2, 0.1, 0.0]], np.float32)
RELEASE = np.array([0.0, 0.35, 0.5])


def accelerating(positions, t):
    return jnp.zeros_like(positions).at[:, 0].set(1 + t)


def track(seeds=SEEDS, span=(0.0, 1.0), frames=5, motion=None, boundary=None, **more):
    callback = more.pop("progress_callback", None)
    tracker = create_tracker(
        *("rk4", FunctionField(accelerating), boundary),
        motion=motion,
        progress_callback=callback,
    )
    return tracker.track_particles(seeds, span, frames, **more)


def moved(start, end):
    """How far the flow goes from one time to another."""
    return (end + end**2 / 2) - (start + start**2 / 2)


def test_each_particle_moves_from_its_seed_at_its_time():
    found = track(release=RELEASE)
    waits = found.times[:, None] < RELEASE
    assert (found.alive == ~waits).all()
    assert (np.isnan(found.positions[..., 0]) == waits).all()
    way = moved(RELEASE[None], found.times[:, None])
    exact = SEEDS[None] + way[..., None] * np.array([1, 0, 0])
    np.testing.assert_allclose(
        found.positions[~waits], exact[~waits], rtol=1e-6, atol=1e-6
    )
    # The third is released at a frame, and its first record is the seed itself.
    np.testing.assert_array_equal(found.positions[2, 2], SEEDS[2])


def test_backward_runs_release_from_the_latest():
    found = track(span=(1.0, 0.0), release=RELEASE[::-1] + 0.5)
    release = RELEASE[::-1] + 0.5
    assert (found.alive == (found.times[:, None] <= release)).all()
    last = SEEDS[:, 0] + moved(release, 0.0)
    np.testing.assert_allclose(found.positions[-1, :, 0], last, atol=1e-6)


def test_who_waits_is_not_absorbed_and_who_is_old_leaves():
    box = absorbing_boundary_factory([[0, 0, 0], [0.6, 1, 1]])
    found = track(release=RELEASE, boundary=box, max_age=0.3, frames=11)
    ends = RELEASE + 0.3
    # In its time the third would go 0.495 from 0.2, and leaves the box before.
    assert found.status.tolist() == [6, 6, ParticleStatus.ABSORBED]
    np.testing.assert_allclose(found.exit_time[:2], ends[:2], rtol=1e-6)
    # Between the frames too a stay begins with the release.
    stays = found.exit_time - RELEASE
    np.testing.assert_allclose(residence_times(found), stays, rtol=1e-5)
    again = merge_trajectories([found[:, :1], found[:, 1:]], "particles")
    for other in (again, merge_trajectories([found[:5], found[5:]])):
        np.testing.assert_allclose(residence_times(other), stays, rtol=1e-5)
    assert 0.5 < found.exit_time[2] < ends[2]
    slack = 1e-9
    inside = (found.times[:, None] >= RELEASE) & (found.times[:, None] <= ends + slack)
    assert (found.alive[:, :2] == inside[:, :2]).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_newcomers_of_an_inlet_have_an_age_of_their_own(sign):
    """They go 0.1 in a frame, from an inlet to an outlet at a distance of 1."""
    way = "positive" if sign > 0 else "negative"
    inlet = continuous_inlet_boundary_factory([[0, 0, 0], [1, 1, 1]], "x", way)
    track = create_tracker("rk4", UniformFlow(1.0), inlet).track_particles
    seeds = np.full((2, 3), 0.5)
    seeds[:, 0] = (0.05, 0.65) if sign > 0 else (0.95, 0.35)
    crossed = track(seeds, (0.0, sign * 4.0), 41, max_age=1.2)
    assert crossed.alive.all()
    assert (crossed.generation[-1] >= 3).all()
    found = track(seeds, (0.0, sign * 4.0), 41, max_age=0.55)
    # The second leaves at 0.35, and the next is there from the end of that step on.
    assert found.status.tolist() == [ParticleStatus.EXPIRED] * 2
    np.testing.assert_allclose(sign * found.exit_time, [0.55, 0.95 + 0.05], rtol=1e-5)


def test_heavy_particles_begin_with_the_flow_of_their_release():
    found = track(release=RELEASE, motion=Inertial(1e6), frames=21)
    for one, time in enumerate(RELEASE):
        way = (1 + time) * np.clip(found.times - time, 0, None)
        exact = np.where(found.times < time, np.nan, SEEDS[one, 0] + way)
        np.testing.assert_allclose(found.positions[:, one, 0], exact, atol=1e-5)


def test_seeds_are_released_again_and_again(tmp_path):
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "run.zarr"
    found = track(SEEDS[:2], release=(0.0, 0.9, 0.3), output=path)
    assert found.positions.shape == (5, 8, 3)
    times = np.repeat([0.0, 0.3, 0.6, 0.9], 2)
    memory = track(SEEDS[:2], release=(0.0, 0.9, 0.3))
    np.testing.assert_array_equal(found.positions, memory.positions)
    with xarray.open_zarr(path) as stored:
        first = np.argmax(np.isfinite(stored["x"].values), axis=1)
        rows = np.arange(8)
        np.testing.assert_allclose(stored["time"].values[rows, first], times)
        np.testing.assert_array_equal(
            stored["x"].values[rows, first], np.tile(SEEDS[:2, 0], 4)
        )
        np.testing.assert_allclose(stored["release_time"].values, times)
    copy = convert(path, tmp_path / "run.nc")
    for kept in (path, copy, convert(copy, tmp_path / "again.zarr")):
        begun = read_recorded(kept).release_time
        assert begun is not None
        np.testing.assert_allclose(begun, times)
    assert repeated(1.0, 0.0, -0.5).tolist() == [1.0, 0.5, 0.0]


class Stopped(Exception):
    """Stands for a killed process."""


@pytest.mark.bitwise
@pytest.mark.parametrize("part", [pytest.param(0.2, marks=pytest.mark.slow), 0.7])
def test_a_stopped_run_goes_on_bit_for_bit(tmp_path, part):
    def stop(fraction):
        if fraction >= part:
            raise Stopped

    def jump(state, here, t, dt, key):
        way = jax.vmap(lambda k: jax.random.normal(k, (3,), jnp.float32))(key)
        return state, 0.1 * way * here["warmth"][:, None]

    given = {"release": RELEASE, "max_age": 0.4, "frames": 21}
    given["motion"] = Diffusion(0.01)
    given["sample"] = {"warmth": lambda p, t: p[:, 0] + t}
    given["behave"] = [Age(), History("warmth"), jump]
    whole = track(output=tmp_path / "whole.zarr", **given)
    with pytest.raises(Stopped):
        track(output=tmp_path / "run.zarr", progress_callback=stop, **given)
    other = {**given, "release": RELEASE + 0.1}
    with pytest.raises(ValueError, match="contains a run with releases"):
        track(output=tmp_path / "run.zarr", resume=True, **other)
    found = track(output=tmp_path / "run.zarr", resume=True, **given)
    np.testing.assert_array_equal(found.positions, whole.positions)
    for name in ("warmth", "age", "warmth_mean", "warmth_max"):
        np.testing.assert_array_equal(found.variables[name], whole.variables[name])
    with pytest.raises(ValueError, match="contains a run with sampled"):
        track(output=tmp_path / "run.zarr", resume=True, **{**given, "behave": Age()})
    with (
        open_store(tmp_path / "run.zarr", "r") as one,
        open_store(tmp_path / "whole.zarr", "r") as other_store,
    ):
        np.testing.assert_array_equal(one.read_observed(), other_store.read_observed())


def test_times_may_be_dates_where_the_data_have_dates():
    day, start = 86_400.0, np.datetime64("2020-02-28")
    nodes = np.array([[x, y, 0.0] for x in (-5.0, 5.0) for y in (-5.0, 5.0)])
    data = np.broadcast_to([1 / day, 0.0, 0.0], (2, 4, 3))
    facts = {"time_units": "seconds since 2020-02-28 00:00:00", "calendar": "standard"}
    dated = TimeSeriesField(data, [0.0, 9 * day], nodes, _source_info=facts)
    run = create_tracker("rk4", dated, None).track_particles
    spans = (
        ("2020-02-28", "2020-03-02"),  # 2020 is a leap year
        (start, start + np.timedelta64(3, "D")),
        (0, datetime.datetime(2020, 3, 2)),
    )
    releases = (
        [start + np.timedelta64(12, "h"), np.datetime64("2020-03-01")],
        ["2020-02-28T12", "2020-03-01"],
        [day / 2, 2 * day],
    )
    for span, release in zip(spans, releases, strict=True):
        found = run(np.zeros((2, 3)), span, 4, release=release)
        np.testing.assert_array_equal(found.times, np.arange(4) * day)
        np.testing.assert_allclose(found.positions[-1, :, 0], [2.5, 1.0], rtol=1e-6)
    again = run(np.zeros((1, 3)), spans[0], 4, release=("2020-02-28", start + 2, day))
    np.testing.assert_allclose(again.positions[-1, :, 0], [3, 2, 1], rtol=1e-6)
    for wrong in ("2020-02-30", "2020-02", np.datetime64("NaT")):
        with pytest.raises(ValueError, match="no date of the calendar standard: give"):
            run(np.zeros((1, 3)), (wrong, "2020-03-02"), 4)
    with pytest.raises(ValueError, match="release is the date 2020-02-28, but the tim"):
        track(release="2020-02-28")


@pytest.mark.parametrize("span", [4.0, (0, 1, 2), "day", (0.0, None)])
def test_spans_that_are_no_two_times(span):
    with pytest.raises((ValueError, TypeError), match=r"time_span is .*: give "):
        track(span=span)


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ([0.1, 0.2], r"release has shape \(2,\) for 3 seeds: give one time"),
        (2.0, "3 of 3 particles are released outside the time span from 0 to 1"),
        ([0.0, np.nan, 0.5], "1 of 3 particles are released outside"),
        ((0.0, 1.0, -0.1), "the third is the time from one release to the next"),
    ],
)
def test_releases_that_cannot_be(release, words):
    with pytest.raises(ValueError, match=words):
        track(release=release)
    with pytest.raises(ValueError, match="max_age=-1"):
        track(max_age=-1)
