"""Meshes that change: every slice on its own mesh, blended in time."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.changing_mesh import MeshSlice, make_changing_field
from trace_meshes import SIX, lattice, split, warp
from trace_series import SLOPE, ask

pytestmark = pytest.mark.slow  # compiles programs of its own

COUNT = 800


def at(shape, factor, seed=0):
    """A slice on a lattice of some shape, linear in space, of some strength."""
    points, cells = lattice(shape)
    points = warp(points, 0.03, seed)
    return MeshSlice(points, split(cells, SIX), factor * points @ SLOPE, kind="tetra")


def record():
    return [at((3, 3, 3), 1.0), at((4, 3, 4), 2.0, 1), at((3, 5, 3), 4.0, 2)]


def places(seed=0):
    return np.random.default_rng(seed).random((COUNT, 3)).astype(np.float32)


def test_each_slice_answers_on_its_own_mesh():
    field = make_changing_field(record(), [0.0, 1.0, 2.0], dtype=np.float32)
    x = places()
    cell_hint = None
    for t, factor in ((0.0, 1.0), (0.5, 1.5), (1.0, 2.0), (1.75, 3.5), (2.0, 4.0)):
        velocity, cell_hint = ask(field, x, t, cell_hint)
        assert np.all(np.asarray(field.inside(jnp.asarray(x), cell_hint)))
        np.testing.assert_allclose(velocity, factor * x @ SLOPE, atol=1e-5)
    times = np.random.default_rng(1).uniform(0, 2, COUNT)  # its own for each particle
    velocity, _ = ask(field, x, times)
    factors = np.interp(times, [0, 1, 2], [1, 2, 4])
    np.testing.assert_allclose(velocity, factors[:, None] * (x @ SLOPE), atol=1e-5)


def test_equal_meshes_are_kept_once():
    first, second = at((3, 3, 3), 1.0), at((4, 3, 4), 4.0)
    again = first._replace(values=2 * first.values)
    field = make_changing_field([first, again, second], [0.0, 1.0, 2.0])
    assert len(field.parts.of_cell) == len(first.connectivity) + len(
        second.connectivity
    )
    x = places()
    np.testing.assert_allclose(ask(field, x, 0.5)[0], 1.5 * x @ SLOPE, atol=1e-5)
    np.testing.assert_allclose(ask(field, x, 1.5)[0], 3.0 * x @ SLOPE, atol=1e-5)


def test_meshes_of_different_kinds_follow_each_other():
    points, cells = lattice((3, 3, 3))
    hexes = MeshSlice(points, cells, 3 * points @ SLOPE)
    field = make_changing_field([at((3, 3, 3), 1.0), hexes], [0.0, 1.0])
    x = places()
    np.testing.assert_allclose(ask(field, x, 0.5)[0], 2 * x @ SLOPE, atol=1e-5)


def test_a_mesh_that_ends_earlier_answers_with_its_edge():
    near = at((3, 3, 3), 1.0)
    far = near._replace(points=near.points * [2, 1, 1])
    field = make_changing_field([near, far], [0.0, 1.0], dtype=np.float32)
    x = places() + np.array([1, 0, 0], np.float32)
    velocity, cell_hint = ask(field, x, 0.0)
    edge = np.clip(x, 0, 1)
    # Faces are compared by squared distances of about 1, which tell points apart that
    # lie the root of a rounding error sideways, and no closer.
    blur = float(np.sqrt(np.finfo(np.float32).eps) * abs(SLOPE).max())
    np.testing.assert_allclose(velocity, edge @ SLOPE, atol=blur)
    assert np.all(np.asarray(cell_hint)[:, 0] < 0)
    assert np.all(np.asarray(cell_hint)[:, 1] >= 0)
    low, high = field.get_spatial_bounds()
    np.testing.assert_allclose([low, high], [[0, 0, 0], [2, 1, 1]])
    assert field.get_time_bounds() == (0.0, 1.0)
    x = jnp.asarray(places() * np.array([0.5, 1, 1], np.float32))
    _, cell_hint = ask(field, x, 0.0)
    found = field.first_exit(x, x + jnp.asarray([[1.0, 0.0, 0.0]]), cell_hint)
    assert np.all(np.asarray(found.hit))
    np.testing.assert_allclose(found.point[:, 0], 1, atol=1e-6)


def test_records_need_slices_and_times():
    with pytest.raises(ValueError, match="at least one slice"):
        make_changing_field([], [])
    with pytest.raises(ValueError, match="3 slices and 2 times"):
        make_changing_field(record(), [0.0, 1.0])
