import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.analytic import UniformFlow
from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.tracking.boundaries.walls import wall_boundary
from jaxtrace.tracking.simulation import simulate
from jaxtrace.types import ParticleStatus
from trace_boundaries import cross

CONDITIONS = ["reflect", "slide", "stick", "absorb"]
CORNERS = np.array(list(itertools.product((0, 1), repeat=3)))
TETRAHEDRA = [
    np.cumsum([(0, 0, 0), *np.eye(3, dtype=int)[list(order)]], axis=0)
    for order in itertools.permutations(range(3))
]


def make_field(cells, scale=1.0, velocity=(1.0, 0.0, 0.0)):
    """A mesh of some of the unit cubes of a lattice, each split into six."""
    nodes: dict[tuple[int, ...], int] = {}
    elements = [
        [nodes.setdefault(tuple(map(int, p + cell)), len(nodes)) for p in tetrahedron]
        for cell in np.asarray(cells)
        for tetrahedron in TETRAHEDRA
    ]
    points = scale * np.array(list(nodes), float)
    values = np.tile(np.asarray(velocity, np.float32), (len(points), 1))
    return make_mesh_field(points, np.array(elements), values, kind="tetra")


BEND = [(0, 0, 0), (1, 0, 0), (1, 1, 0)]  # an L, with a corner that points inward
COUNT = 64  # rows of every call, so that all share one compilation


@pytest.fixture(scope="module")
def bend():
    return make_field(BEND)


@eqx.filter_jit
def holds(field, places, cell_hint):
    """Where a mesh is known, looked up from where particles were."""
    instant = field.instant(np.float64(0))
    return field.inside(places, field.velocity(places, instant, cell_hint)[1])


def step(field, condition, before, after):
    """One step of one particle, which stands in every row."""
    rows = [np.tile(np.array([x], np.float32), (COUNT, 1)) for x in (before, after)]
    return cross(wall_boundary(condition), *rows, field=field)


def test_a_mirror_returns_the_rest_of_the_way(bend):
    found = step(bend, "reflect", [1.75, 0.5, 0.5], [2.25, 0.6, 0.5])
    np.testing.assert_allclose(found.positions, [[1.75, 0.6, 0.5]] * COUNT, atol=1e-5)


@pytest.mark.slow  # many programs
def test_a_mirror_in_a_corner_returns_it_twice(bend):
    found = step(bend, "reflect", [0.2, 0.3, 0.5], [-0.3, -0.4, 0.5])
    np.testing.assert_allclose(found.positions[0], [0.3, 0.4, 0.5], atol=1e-5)


def test_a_slide_keeps_to_the_wall(bend):
    found = step(bend, "slide", [0.5, 0.1, 0.5], [0.9, -0.3, 0.5])
    np.testing.assert_allclose(found.positions[0], [0.9, 0.0, 0.5], atol=1e-5)
    found = step(bend, "slide", [0.3, 0.1, 0.5], [-0.4, -0.3, 0.6])
    np.testing.assert_allclose(found.positions[0], [0.0, 0.0, 0.6], atol=1e-5)


def test_glue_holds_for_good(bend):
    times = np.linspace(0, 4, 9)
    seeds = np.array([[0.3, 0.4, 0.5], [1.6, 0.4, 0.5]], np.float32)
    found = simulate(
        bend, seeds, times, boundary=wall_boundary("stick"), integrator="euler"
    )
    np.testing.assert_array_equal(found.final.status, ParticleStatus.STUCK)
    assert np.all(found.final.alive)
    np.testing.assert_allclose(found.positions[-1, :, 0], 2, atol=1e-5)
    np.testing.assert_array_equal(found.positions[5:, 1], found.positions[-4:, 1])
    assert np.isnan(found.final.exit_time).all()


@pytest.mark.slow  # many programs
def test_a_sink_takes_particles_at_the_wall_in_time(bend):
    seeds = np.array([[0.3, 0.4, 0.5], [1.6, 0.4, 0.5]], np.float32)
    limit = wall_boundary("absorb")
    found = simulate(bend, seeds, np.linspace(0, 4, 10), boundary=limit)
    np.testing.assert_array_equal(found.final.status, ParticleStatus.ABSORBED)
    np.testing.assert_allclose(found.final.exit_time, [1.7, 0.4], rtol=1e-5)
    np.testing.assert_allclose(found.final.positions[:, 0], 2, atol=1e-5)
    assert np.isnan(found.positions[-1]).all()


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_way_over_a_gap_is_stopped_at_its_edge(bend, condition):
    found = step(bend, condition, [0.5, 0.75, 0.5], [1.5, 1.75, 0.5])
    x, y = np.asarray(found.positions)[0, :2]
    assert y <= 1 + 1e-5 or x >= 1 - 1e-5
    if condition in ("stick", "absorb"):
        np.testing.assert_allclose([x, y], [0.75, 1.0], atol=1e-5)
    if condition == "slide":
        np.testing.assert_allclose([x, y], [1.5, 1.0], atol=1e-5)
    if condition == "reflect":
        np.testing.assert_allclose([x, y], [1.5, 0.25], atol=1e-5)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
def test_nobody_leaks(condition, scale):
    field = make_field(BEND, scale)
    rng = np.random.default_rng(round(np.log10(scale)) + 7)
    cells = np.array(BEND)[rng.integers(0, 3, COUNT)]
    before = (scale * (cells + rng.uniform(0, 1, (COUNT, 3)))).astype(np.float32)
    after = before + (scale * rng.normal(0, 0.8, (COUNT, 3))).astype(np.float32)
    found = cross(wall_boundary(condition), before, after, field=field)
    places = np.asarray(found.positions) / scale
    inside = np.zeros(COUNT, bool)
    for cell in BEND:
        near = (places >= np.array(cell) - 1e-5) & (places <= np.array(cell) + 1 + 1e-5)
        inside |= near.all(1)
    assert inside.all()
    known = np.asarray(holds(field, found.positions, found.cell_hint))
    assert known[np.asarray(found.alive)].all()


def test_ways_that_stay_inside_are_left_alone(bend):
    rng = np.random.default_rng(8)
    before, after = (rng.uniform([1, 0, 0], [2, 2, 1], (COUNT, 3)) for _ in range(2))
    for condition in CONDITIONS:
        found = cross(
            wall_boundary(condition),
            before.astype(np.float32),
            after.astype(np.float32),
            field=bend,
        )
        np.testing.assert_array_equal(found.positions, after.astype(np.float32))
        assert np.all(found.alive)


def test_a_mirror_mirrors_velocities_too(bend):
    before = jnp.tile(jnp.array([[1.75, 0.5, 0.5]]), (COUNT, 1))
    place = lambda x: cross(wall_boundary("reflect"), before, x, field=bend).positions
    speed = jnp.tile(jnp.array([[1.0, 2.0, 3.0]]), (COUNT, 1))
    both = jax.jit(lambda x, v: jax.jvp(place, (x,), (v,)))
    _, found = both(before + 0.3 * speed, speed)
    np.testing.assert_allclose(found[0], [-1, 2, -3], atol=1e-5)


def test_walls_need_a_mesh():
    limit = wall_boundary()
    with pytest.raises(ValueError, match="there is no field"):
        limit(np.zeros((1, 3), np.float32))
    with pytest.raises(ValueError, match="there is UniformFlow"):
        simulate(UniformFlow(), np.zeros((1, 3), np.float32), [0, 1], boundary=limit)
    with pytest.raises(ValueError, match=r"'bounce'.*slide"):
        wall_boundary("bounce")
