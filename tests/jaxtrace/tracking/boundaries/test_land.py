"""Land: rules at the shore, and how the flow slips along it."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.coast import let_slip
from jaxtrace.fields.grid import make_grid_field
from jaxtrace.sphere import EARTH_RADIUS
from jaxtrace.tracking.boundaries.box import box_boundary
from jaxtrace.tracking.boundaries.walls import reach_shore
from jaxtrace.tracking.motion import Diffusion
from jaxtrace.tracking.particles import seed_particles
from jaxtrace.tracking.simulation import simulate
from jaxtrace.tracking.tracker import create_tracker
from jaxtrace.types import ParticleStatus

LON, LAT = np.arange(21.0), np.arange(-10.0, 11.0)
AXES = (LON, LAT, np.zeros(1))
X, Y = (axis[..., None] for axis in np.meshgrid(LON, LAT, indexing="ij"))
# Steps of a cell: land from the diagonal to the south-east.
STAIRS = X - 8 >= Y
RULES = ("slide", "reflect", "previous", "beach", "free")


def sea(land, shore, u=0.0, v=0.0):
    flow = np.where(land[..., None], 0.0, np.array([u, v, 0.0]))
    return make_grid_field(
        flow.astype(np.float32), AXES, radius=EARTH_RADIUS, land=land, shore=shore
    )


def on_land(positions, land=STAIRS):
    """Look cells up with NumPy: all four corners are land."""
    cells = land[:-1, :-1, 0] & land[1:, :-1, 0] & land[:-1, 1:, 0] & land[1:, 1:, 0]
    i = np.clip(np.floor(positions[..., 0]), 0, 19).astype(int)
    j = np.clip(np.floor(positions[..., 1] + 10), 0, 19).astype(int)
    return cells[i, j]


@pytest.mark.parametrize("rule", RULES)
def test_a_staircase_coast(rule):
    # A current and a random walk towards the coast: nearly 10^5 particle-steps.
    rng = np.random.default_rng(0)
    seeds = np.zeros((500, 3), np.float32)
    seeds[:, 0], seeds[:, 1] = rng.uniform(2, 6, 500), rng.uniform(-2, 6, 500)
    seeds = seeds[~on_land(seeds)]
    walk = Diffusion([3e4, 3e4, 0.0])
    field = sea(STAIRS, rule, u=1.0, v=0.5)
    times = np.linspace(0, 200 * 3600.0, 101)
    paths = simulate(field, seeds, times, motion=walk, substeps=2, integrator="euler")
    positions = np.asarray(paths.positions)
    there = np.isfinite(positions[..., 0])
    ashore = on_land(np.where(there[..., None], positions, 0)) & there
    status = np.asarray(paths.final.status)
    beached = status == ParticleStatus.BEACHED
    if rule == "free":
        assert ashore.any()
        assert not beached.any()
    elif rule == "beach":
        # Whoever is ashore is beached since then, and nobody comes back to sea.
        assert (ashore[-1] == beached).all()
        assert beached.sum() > 100
        assert not (ashore[:-1] & ~ashore[1:] & there[1:]).any()
    else:
        assert not ashore.any()
        assert not beached.any()


@pytest.mark.parametrize("rule", ["reflective", "clamping", "absorbing"])
def test_a_box_at_the_ends_of_the_data_comes_before_these(rule):
    flow, hour = np.zeros((21, 21, 1, 3), np.float32), 3600.0
    flow[..., 0] = 10.0
    field = make_grid_field(flow, AXES, radius=EARTH_RADIUS)
    box = box_boundary([0, 20, -10, 10], rule)
    track = create_tracker("rk2", field, box).track_particles
    found = track([[19.0, 0.0, 0.0], [5.0, 0.0, 0.0]], (0.0, 4 * hour), 5)
    there = 19 + np.degrees(10 * found.times / EARTH_RADIUS)
    first = int(np.argmax(there > 20)) + 1  # the next step begins at a mirror anew
    mirrored = np.where(there > 20, 40 - there, there)
    absorbed = np.where(there > 20, np.nan, there)
    exact = {"reflective": mirrored, "clamping": there.clip(0, 20)}
    exact = exact.get(rule, absorbed)[:first]
    np.testing.assert_allclose(found.positions[:first, 0, 0], exact, rtol=1e-6)
    assert (found.status[0] == ParticleStatus.ABSORBED) == (rule == "absorbing")
    if rule == "absorbing":
        crossed = np.radians(1.0) * EARTH_RADIUS / 10
        np.testing.assert_allclose(found.exit_time[0], crossed, rtol=1e-4)


def test_who_is_beached_stays_so_beyond_its_age():
    flow, hour = np.zeros((21, 21, 1, 3), np.float32), 3600.0
    flow[..., 0] = 10.0  # over the shore too
    field = make_grid_field(flow, AXES, radius=EARTH_RADIUS, land=X >= 10)
    track = create_tracker("rk2", field, None).track_particles
    seeds = [[9.0, 0.0, 0.0], [2.0, 0.0, 0.0]]
    found = track(seeds, (0.0, 9 * hour), 10, hour / 60, max_age=5 * hour)
    assert found.status.tolist() == [ParticleStatus.BEACHED, ParticleStatus.EXPIRED]
    assert found.alive[-1].tolist() == [True, False]
    assert found.exit_time[0] < found.exit_time[1] == 5 * hour


def push(field, seed, way):
    """Take a step of so many degrees, and what the shore makes of it."""
    before = jnp.asarray([[*seed, 0.0]], np.float32)
    after = before + np.array([[*way, 0.0]], np.float32)
    particles = replace(seed_particles(before), positions=after)
    final = eqx.filter_jit(reach_shore)(field, particles, before, jnp.ones(()))
    return np.asarray(final.positions[0, :2]), final


def test_mirrors_slides_and_spits():
    wall = X >= 10
    found, _ = push(sea(wall, "reflect"), (9.9, 0.0), (0.3, 0.1))
    np.testing.assert_allclose(found, [9.8, 0.1], atol=1e-4)
    found, _ = push(sea(wall, "slide"), (9.9, 0.0), (0.3, 0.1))
    np.testing.assert_allclose(found, [9.9, 0.1], atol=1e-5)
    # A step over a spit of one cell ends on it.
    spit = (X == 10) | (X == 11)
    found, final = push(sea(spit, "beach"), (9.5, 0.0), (1.8, 0.0))
    assert 10 < found[0] < 11
    assert final.status.tolist() == [ParticleStatus.BEACHED]
    assert final.exit_time.tolist() == [1.0]


@pytest.mark.parametrize(("slip", "a", "b"), [("free", 1, 0), ("partial", 0.5, 0.5)])
def test_slip_is_the_factor_of_the_formula(slip, a, b):
    # Land to the south of y = 0 and to the east of x = 10: walls and one corner.
    land = (Y <= 0) | (X >= 10)
    plain = sea(land, "beach", u=2.0, v=3.0)
    field = let_slip(plain, land, slip)
    share = np.array([0.01, 0.3, 0.9])
    at = lambda x, y: np.stack([x, y, 0 * x], 1).astype(np.float32)
    ask = eqx.filter_jit(lambda f, p: f.velocity(p, f.instant(np.float64(0.0)), ())[0])
    look = lambda f, p: np.asarray(ask(f, p))
    south = at(5.5 + 0 * share, share)
    factor = (a + b * share) / share
    expected = look(plain, south) * np.stack([factor, 1 + 0 * share, factor], 1)
    np.testing.assert_allclose(look(field, south), expected, rtol=1e-4, atol=1e-6)
    east = at(9 + share, 5.5 + 0 * share)
    factor = (1 - b * share) / (1 - share)
    expected = look(plain, east) * np.stack([1 + 0 * share, factor, factor], 1)
    np.testing.assert_allclose(look(field, east), expected, rtol=1e-4, atol=1e-6)
    # In the corner each component slips along the wall that it is parallel to.
    corner = at(9 + share, 0.4 + 0 * share)
    u = 2.0 * (1 - share) * (a + b * 0.4)
    v = 3.0 * 0.4 * (1 - b * share)
    np.testing.assert_allclose(look(field, corner)[:, :2], np.stack([u, v], 1), 1e-4)
    with pytest.raises(ValueError, match=r"slip='free' needs a grid .* with land"):
        let_slip(plain, None, "free")
