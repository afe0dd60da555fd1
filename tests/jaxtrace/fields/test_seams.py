"""Seams within meshes: paths cross them, places beside them are inside."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.mesh import make_mesh_field
from trace_meshes import SIX, lattice, split

pytestmark = pytest.mark.slow  # compiles many programs


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


@pytest.mark.parametrize(
    "kind", ["tetra", pytest.param("hexahedron", marks=pytest.mark.slow)]
)
def test_refined_cells_are_joined(kind):
    points, cells = hanging()
    cells = split(cells, SIX) if kind == "tetra" else cells
    field = make_mesh_field(points, cells, slope(points), kind=kind, dtype=np.float32)
    assert field.boundary_faces.areas.sum() == pytest.approx(2 * (2 + 4 + 2))
    rng = np.random.default_rng(0)
    start = np.float32(rng.random((500, 3)) * [2, 1, 2])
    end = np.float32(rng.random((500, 3)) * [2, 1, 2])
    velocity, cell_hint, found = ask(field, start, end)
    assert np.all(np.asarray(cell_hint) >= 0)
    np.testing.assert_allclose(velocity, slope(start), atol=3e-6)
    assert not np.any(np.asarray(found.hit))


def test_cells_without_volume_leave_no_wall_behind():
    points, (left, right) = lattice((3, 2, 2), (2.0, 1.0, 1.0))
    # The right cube is cut in mirror image: between the cuts lies a flat cell.
    cut = [split(left[None], SIX), split(right[None, [3, 2, 1, 0, 7, 6, 5, 4]], SIX)]
    cells = np.concatenate([*cut, [left[[1, 2, 6, 5]]]])
    with pytest.warns(UserWarning, match="1 of 13 tetra cells have no volume"):
        field = make_mesh_field(points, cells, slope(points), kind="tetra")
    assert field.boundary_faces.areas.sum() == pytest.approx(10)


def test_thin_walls_stay_on_request():
    points, (left, right) = lattice((3, 2, 2), (2.0, 1.0, 1.0))
    wall = left[[1, 2, 6, 5]]
    twin = dict(zip(wall, range(len(points), len(points) + 4), strict=True))
    cells = np.array([left, [twin.get(n, n) for n in right]])
    points = np.concatenate([points, points[wall]])
    values = slope(points)
    values[-4:] += 1
    field = make_mesh_field(points, cells, values, thin_walls=True)
    assert field.boundary_faces.areas.sum() == pytest.approx(12)
    field = make_mesh_field(points, cells, values)
    assert field.boundary_faces.areas.sum() == pytest.approx(10)


def test_true_walls_stay():
    points, cells = lattice((4, 4, 2), (3.0, 3.0, 1.0))
    hole = np.abs(points[cells].mean(1)[:, :2] - 1.5).max(1) < 0.1
    field = make_mesh_field(points, cells[~hole], slope(points), dtype=np.float32)
    assert field.boundary_faces.areas.sum() == pytest.approx(12 + 2 * 8 + 4)
    start = jnp.asarray([[0.5, 1.5, 0.5]], np.float32)
    _, _, found = ask(field, start, jnp.asarray([[2.5, 1.5, 0.5]], np.float32))
    assert found.hit.tolist() == [True]
    np.testing.assert_allclose(found.point, [[1.0, 1.5, 0.5]], atol=1e-6)
