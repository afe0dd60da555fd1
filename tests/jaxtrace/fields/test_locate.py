"""Point location against brute force, seams, and the search tree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.box_tree import build_tree, in_groups, select, traverse
from jaxtrace.fields.locate import make_locator, walk
from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.fields.topology import Elements, make_mesh
from trace_meshes import SIX, boundary_faces, holding_simplices, lattice, split, warp
from trace_series import ask as ask_field

SIZE = np.array([1.0, 0.8, 0.5])


def tetra():
    points, cells = lattice((4, 5, 4), SIZE)
    points = np.float32(warp(points, 0.03)).astype(float)
    return points, split(cells, SIX)


def test_the_cell_found_is_one_that_holds_the_place():
    points, cells = tetra()
    rng = np.random.default_rng(0)
    middles = [points[cells[:, face]].mean(1) for face in ([0, 1, 2], [1, 2, 3])]
    on_faces = rng.permutation(np.concatenate([points, *middles]))[:300]
    spread = rng.uniform(-0.2, 1.2, (300, 3)) * SIZE
    x = np.concatenate([spread, on_faces]).astype(np.float32)
    field = make_mesh_field(points, cells, points, kind="tetra", dtype=np.float32)
    hint = np.asarray(ask_field(field, x, cell_hint=jnp.full(600, -1, np.int32))[1])
    inside = np.all((x >= 0) & (x <= SIZE.astype(np.float32)), axis=1)
    inside[300:] = True
    np.testing.assert_array_equal(hint >= 0, inside)
    for i in np.flatnonzero(inside[:300]):
        depth = holding_simplices(points, np.asarray(field.nodes), x[i].astype(float))
        assert depth[hint[i]] > -1e-5


def test_a_walk_ends_in_the_cell_or_says_it_does_not():
    points, cells = tetra()
    mesh = make_mesh(points, Elements(cells, kind="tetra"))
    found_by, cells = make_locator(mesh, points, np.dtype("f4")), mesh.nodes
    rng = np.random.default_rng(1)
    x = (rng.random((500, 3)) * SIZE).astype(np.float32)
    start = rng.integers(0, len(cells), 500).astype(np.int32)
    cell, found = jax.jit(walk)(found_by, x, start, jnp.ones(500, bool))
    assert np.mean(found) > 0.5
    for i in np.flatnonzero(found):
        assert holding_simplices(points, cells, x[i].astype(float))[cell[i]] > -1e-5


@jax.jit
def ask(field, start, end):
    velocity, cell_hint = field.velocity(
        start, field.instant(jnp.float32(0)), field.start(start)
    )
    return velocity, cell_hint, field.first_exit(start, end, cell_hint)


def hanging():
    """Two big cubes beside eight small ones: faces meet, nodes do not."""
    coarse, big = lattice((2, 2, 3), (1.0, 1.0, 2.0))
    fine, small = lattice((3, 3, 5), (1.0, 1.0, 2.0))
    points = np.concatenate([coarse, fine + np.array([1, 0, 0])])
    return points, np.concatenate([big, small + len(coarse)])


def slope(x):
    return x @ [[1.0, 2.0, 0.0], [0.0, 1.0, -1.0], [0.5, 0.0, 1.0]]


@pytest.mark.parametrize("kind", ["tetra", "hexahedron"])
@pytest.mark.slow  # compiles a program of its own
def test_refined_cells_are_joined(kind):
    points, cells = hanging()
    cells = split(cells, SIX) if kind == "tetra" else cells
    field = make_mesh_field(points, cells, slope(points), kind=kind, dtype=np.float32)
    assert boundary_faces(field).areas.sum() == pytest.approx(2 * (2 + 4 + 2))
    rng = np.random.default_rng(0)
    start = np.float32(rng.random((500, 3)) * [2, 1, 2])
    end = np.float32(rng.random((500, 3)) * [2, 1, 2])
    velocity, cell_hint, found = ask(field, start, end)
    assert np.all(np.asarray(cell_hint) >= 0)
    np.testing.assert_allclose(velocity, slope(start), atol=3e-6)
    assert not np.any(np.asarray(found.hit))


@pytest.mark.slow  # compiles a program of its own
def test_cells_without_volume_leave_no_wall_behind():
    points, (left, right) = lattice((3, 2, 2), (2.0, 1.0, 1.0))
    # The right cube is cut in mirror image: between the cuts lies a flat cell.
    cut = [split(left[None], SIX), split(right[None, [3, 2, 1, 0, 7, 6, 5, 4]], SIX)]
    cells = np.concatenate([*cut, [left[[1, 2, 6, 5]]]])
    with pytest.warns(UserWarning, match="1 of 13 tetra cells have no volume"):
        field = make_mesh_field(points, cells, slope(points), kind="tetra")
    assert boundary_faces(field).areas.sum() == pytest.approx(10)


@pytest.mark.slow  # compiles a program of its own
def test_true_walls_stay():
    points, cells = lattice((4, 4, 2), (3.0, 3.0, 1.0))
    hole = np.abs(points[cells].mean(1)[:, :2] - 1.5).max(1) < 0.1
    field = make_mesh_field(points, cells[~hole], slope(points), dtype=np.float32)
    assert boundary_faces(field).areas.sum() == pytest.approx(12 + 2 * 8 + 4)
    start = jnp.asarray([[0.5, 1.5, 0.5]], np.float32)
    _, _, found = ask(field, start, jnp.asarray([[2.5, 1.5, 0.5]], np.float32))
    assert found.hit.tolist() == [True]
    np.testing.assert_allclose(found.point, [[1.0, 1.5, 0.5]], atol=1e-6)


def boxes(count, dimension, seed=0):
    rng = np.random.default_rng(seed)
    low = rng.random((count, dimension), np.float32)
    return low, low + 0.3 * rng.random((count, dimension), np.float32) ** 4


@jax.jit
def holding(tree, x, active):
    """The sum of (item + 1)² over boxes that hold a place, and how many there are."""
    d = x.shape[1]

    def touches(lanes, box):
        return jnp.all((x >= box[:, :d]) & (x <= box[:, d:]), -1)

    def visit(lanes, item, here):
        total, count = lanes
        return select(here, (total + (item + 1) ** 2, count + 1), lanes), ~here

    zero = jnp.zeros(x.shape[0], jnp.int32)
    return traverse(tree, (zero, zero), active, touches, visit)


@pytest.mark.parametrize(("count", "dimension"), [(1, 3), (2, 2), (37, 2), (300, 3)])
@pytest.mark.slow  # compiles a program of its own
def test_every_box_that_is_touched_is_visited_once(count, dimension):
    low, high = boxes(count, dimension)
    x = np.random.default_rng(1).random((64, dimension), np.float32)
    inside = ((x[:, None] >= low) & (x[:, None] <= high)).all(-1)
    tree = build_tree(low, high)
    total, visits = holding(tree, x, jnp.ones(64, bool))
    np.testing.assert_array_equal(visits, inside.sum(1))
    np.testing.assert_array_equal(total, inside @ (np.arange(count) + 1) ** 2)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.6, 1.0])
@pytest.mark.slow  # compiles a program of its own
def test_groups_change_the_wanted_rows_alone(share):
    wanted = np.random.default_rng(0).random(3000) < share
    given = np.arange(3000, dtype=np.int32)

    def work(rows, active):
        return jnp.where(active, rows**2, -1)

    found = in_groups(jnp.asarray(wanted), jnp.asarray(given), jnp.asarray(given), work)
    np.testing.assert_array_equal(found, np.where(wanted, given**2, given))
