import functools

import equinox as eqx
import numpy as np
import pytest

from jaxrig import compile_once
from jaxtrace.tracking import boundary
from jaxtrace.tracking.boundaries.base import AbstractBoundary, as_boundary
from jaxtrace.tracking.simulation import simulate
from jaxtrace.types import ParticleStatus
from trace_boundaries import (
    BOX,
    COUNTS,
    FLOW,
    TIMES,
    assert_same,
    cross,
    every_boundary,
    make_seeds,
    run_slots,
    uniform,
)

EVERY = every_boundary()
RECYCLING = [n for n in EVERY if as_boundary(EVERY[n]).recycles]
SLOTS = np.arange(6, dtype=np.int32)
# One program for each boundary, whatever the seeds, their order and the dice.
program = functools.cache(lambda name: compile_once(max_traces=1)(run_slots))


def follow(name, seeds=None, slots=SLOTS, seed=0):
    start = make_seeds(6) if seeds is None else seeds
    return program(name)(EVERY[name], start, slots, 6, "euler", np.int32(seed))


def test_a_boundary_may_be_called_in_compiled_code():
    limit = as_boundary(EVERY["inlet uniform"])
    points = np.random.default_rng(1).uniform(-1, 3, (40, 3)).astype(np.float32)
    inside = eqx.filter_jit(lambda limit, x: limit(x))
    assert_same(inside(limit, points), limit(points))


@pytest.mark.parametrize("name", EVERY)
def test_one_compilation_serves_every_seeding_in_any_order(name):
    whole, other = follow(name), np.array([5, 3, 4, 0, 2, 1])
    follow(name, make_seeds(6, seed=1))
    turned = follow(name, make_seeds(6)[other], SLOTS[other])
    assert_same(turned.positions, whole.positions[:, other])
    assert_same(turned.final.status, whole.final.status[other])


@pytest.mark.parametrize("name", ["inlet uniform", "refilled"])
def test_batches_do_not_change_the_paths(name):
    part = compile_once(run_slots)(EVERY[name], make_seeds(6)[3:], SLOTS[3:], 6)
    assert_same(part.positions, follow(name).positions[:, 3:])


@pytest.mark.parametrize(
    ("name", "integrator"), [("periodic", "rk2"), ("inlet grid", "rk4")]
)
def test_every_integrator_compiles_once_with_a_boundary(name, integrator):
    run = compile_once(
        lambda limit, seeds: simulate(
            FLOW, seeds, TIMES, boundary=limit, integrator=integrator, substeps=2
        )
    )
    first = run(EVERY[name], make_seeds(6))
    run(EVERY[name], make_seeds(6, seed=1))
    # A uniform flow is integrated exactly, so every method takes the same path.
    np.testing.assert_allclose(first.positions[1:], follow(name).positions, atol=1e-5)


@pytest.mark.parametrize("name", RECYCLING)
def test_recycling_loses_nobody_and_counts_generations(name):
    found = follow(name)
    assert np.all(found.final.alive)
    assert np.all(np.isfinite(found.positions))
    generation = np.asarray(found.generation)
    rises = np.diff(generation, axis=0)
    assert np.all(rises >= 0)
    if name == "inlet gaussian":
        return  # the flow runs against this inlet, so nobody leaves by its outlet
    assert np.all(generation[-1] >= 1)
    jumps = np.diff(np.asarray(found.positions)[..., 0], axis=0) < 0
    assert np.all(rises[jumps] >= 1)


@pytest.mark.parametrize("name", ["inlet uniform", "refilled", "flow through"])
def test_chance_follows_the_seed(name):
    first, again, other = (follow(name, seed=seed).positions for seed in (0, 0, 1))
    assert_same(first, again)
    assert np.any(np.asarray(first) != np.asarray(other))


def test_grid_inlets_keep_the_lattice():
    counts = [COUNTS[a] for a in "xyz"]
    axes = [np.linspace(BOX[0][a], BOX[1][a], counts[a]) for a in range(3)]
    seeds = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    seeds = seeds.astype(np.float32)
    limit = boundary.continuous_inlet_boundary_factory(
        BOX, inlet_distribution="grid", concentrations=COUNTS
    )
    times = np.linspace(0, 10, 41)
    found = simulate(uniform(0.9), seeds, times, boundary=limit)
    assert np.all(found.final.generation >= 4)
    still = np.broadcast_to(seeds[None, :, 1:], found.positions[..., 1:].shape)
    assert_same(found.positions[..., 1:], still)


@pytest.mark.parametrize("boxes", [(BOX, None), (None, BOX)])
def test_newcomers_start_on_the_inlet_plane(boxes):
    bounds, domain_bounds = boxes
    limit = boundary.continuous_inlet_boundary_factory(
        bounds, domain_bounds=domain_bounds
    )
    before = np.array([[1.9, 0.5, 0.5]], np.float32)
    found = cross(limit, before, before + np.float32(0.2))
    assert found.positions[0, 0] == 0
    on_the_face = np.array([[2.0, 0.5, 0.5]], np.float32)
    found = cross(limit, before, on_the_face)
    assert_same(found.positions, on_the_face)
    assert found.generation[0] == 0


def test_other_ways_to_write_a_continuous_inlet():
    make = boundary.continuous_inlet_boundary_factory
    plain = make(BOX, "x", "positive", "grid", COUNTS)
    other = make(BOX, inlet_position=0.0, outlet_position=2.0, concentrations=COUNTS)
    points = np.random.default_rng(2).uniform(-1, 3, (50, 3)).astype(np.float32)
    assert_same(plain(points), other(points))
    back = make(BOX, inlet_position=2.0, outlet_position=0.0)
    assert not back.forward
    with pytest.raises(ValueError, match=r"'grid' needs concentrations"):
        make(BOX, inlet_distribution="grid")


def test_exit_times_of_a_uniform_flow():
    seeds = np.array([[x, 0.5, 0.5] for x in (0.2, 0.7, 1.4)], np.float32)
    times = np.linspace(0, 4, 14)
    limit = boundary.inlet_outlet_boundary_factory(BOX)
    found = simulate(uniform(0.8), seeds, times, boundary=limit)
    expected = (2 - seeds[:, 0]) / 0.8
    np.testing.assert_allclose(found.final.exit_time, expected, rtol=1e-5)
    np.testing.assert_array_equal(found.final.status, ParticleStatus.EXITED)
    np.testing.assert_array_equal(found.final.positions[:, 0], 2)
    gone = times[:, None] > expected[None]
    np.testing.assert_array_equal(np.isnan(found.positions[..., 0]), gone)
    back = simulate(uniform(-0.8), seeds, times, boundary=limit)
    np.testing.assert_allclose(back.final.exit_time, seeds[:, 0] / 0.8, rtol=1e-5)
    np.testing.assert_array_equal(back.final.status, ParticleStatus.ABSORBED)
    np.testing.assert_array_equal(back.final.positions[:, 0], 0)


def test_backward_runs_leave_at_earlier_times():
    seeds = np.array([[0.6, 0.5, 0.5]], np.float32)
    limit = boundary.absorbing_boundary_factory(BOX)
    found = simulate(uniform(0.5), seeds, np.linspace(3, 0, 8), boundary=limit)
    np.testing.assert_allclose(found.final.exit_time, [3 - 0.6 / 0.5], rtol=1e-5)


def test_mixed_boxes_repeat_by_default():
    limit = boundary.mixed_boundary(BOX, {"y": "clamping"})
    assert limit.rules == ("periodic", "clamping", "periodic")
    with pytest.raises(ValueError, match="axis 'w'"):
        boundary.mixed_boundary(BOX, {"w": "clamping"})


@pytest.mark.parametrize("kind", boundary.BOUNDARIES)
def test_the_registry_makes_every_boundary(kind):
    arguments = {
        "none": {},
        "mixed": {"bounds": BOX, "boundary_types": {"x": "reflective"}},
        "distance": {"bounds": BOX, "distance_func": lambda x: x[:, 0]},
        "spherical": {"center": (0, 0, 0), "radius": 1.0},
        "cylindrical": {},
        "channel": {"bounds": BOX, "concentrations": COUNTS},
        "walls": {"condition": "slide"},
    }
    made = boundary.BOUNDARIES[kind](**arguments.get(kind, {"bounds": BOX}))
    assert isinstance(made, AbstractBoundary)
