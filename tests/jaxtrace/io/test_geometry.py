import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.io.geometry import (
    Cells,
    ascending,
    cell_dimensions,
    cells_to_nodes,
    find_coincident,
    grid_cells_to_nodes,
    grid_order,
    grid_points,
    grid_to_cells,
    keep_cells,
    same_geometry,
    storage_order,
    structured_cells,
)


def axes(x=(0.0, 1.0), y=(0.0, 2.0, 3.0), z=(5.0,)):
    return TensorGrid((np.array(x), np.array(y), np.array(z)))


def triangle(x=1.0):
    points = np.array([[0.0, 0, 0], [x, 0, 0], [0, 1, 0]])
    return Cells(points, np.arange(3), np.array([0, 3]), np.array([5], np.uint8))


def test_grid_points_run_x_fastest():
    grid = axes()
    assert grid.shape == (2, 3, 1)
    assert grid.n_points == 6
    expected = [[x, y, 5.0] for y in (0.0, 2.0, 3.0) for x in (0.0, 1.0)]
    np.testing.assert_array_equal(grid_points(grid.axes), expected)


def test_grid_order_of_stored_points_is_the_index_of_each_axis():
    grid = axes(x=(0.0, 1.0, 4.0), z=(1.0, 2.0, 7.0, 8.0))
    points = grid_points(grid.axes)
    values = grid_order(points, grid.shape)
    np.testing.assert_array_equal(values[2, 1, 3], [4.0, 2.0, 8.0])
    np.testing.assert_array_equal(storage_order(values), points)


def test_equal_geometry_is_recognized():
    assert same_geometry(triangle(), triangle())
    assert not same_geometry(triangle(), triangle(x=np.nextafter(1, 2)))
    assert same_geometry(axes(), axes())
    assert not same_geometry(axes(), axes(z=(6.0,)))


def test_descending_axes_are_flipped_with_their_values():
    x, y, z = np.array([3.0, 1.0]), np.array([0.0, 1.0]), np.array([2.0])
    values = np.arange(4.0).reshape(2, 2, 1, 1)
    (fx, fy, _), flipped = ascending((x, y, z), {"a": values})
    assert fx.tolist() == [1.0, 3.0]
    assert fy.tolist() == [0.0, 1.0]
    np.testing.assert_array_equal(flipped["a"], values[::-1])


@pytest.mark.parametrize("axis", [[0.0, 0.0], [0.0, 2.0, 1.0]])
def test_an_axis_that_turns_back_is_refused(axis):
    with pytest.raises(ValueError, match="axis y must run strictly"):
        ascending((np.zeros(1), np.array(axis), np.zeros(1)), {})


def mixed() -> Cells:
    """A tetrahedron, one of its faces and one of its edges."""
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [9, 9, 9]])
    return Cells(
        points,
        np.array([0, 1, 0, 1, 2, 0, 1, 2, 3]),
        np.array([0, 2, 5, 9]),
        np.array([3, 5, 10], np.uint8),
    )


def test_only_the_cells_of_the_highest_dimension_stay():
    mesh = mixed()
    assert cell_dimensions(mesh.types).tolist() == [1, 2, 3]
    volume = keep_cells(mesh, cell_dimensions(mesh.types) == 3)
    assert volume.types.tolist() == [10]
    assert volume.connectivity.tolist() == [0, 1, 2, 3]
    assert volume.offsets.tolist() == [0, 4]
    assert volume.points is mesh.points


coordinates = hnp.arrays(
    np.float32, st.tuples(st.integers(1, 30), st.just(3)), elements=st.integers(-1, 1)
)


@given(coordinates)
def test_coincident_nodes_are_those_a_dictionary_finds(points):
    weld = find_coincident(points)
    known: dict[tuple[float, ...], int] = {}
    expected = [known.setdefault(tuple(p.tolist()), len(known)) for p in points]
    assert weld.label.tolist() == expected
    np.testing.assert_array_equal(points[weld.first][weld.label], points)
    assert weld.removed == len(points) - len(known)


def test_zero_and_minus_zero_are_one_place_at_any_scale():
    points = np.array([[0.0, 1e-30, 0], [-0.0, 1e-30, 0], [0.0, 2e-30, 0]])
    assert find_coincident(points).label.tolist() == [0, 0, 1]


def test_welding_keeps_equal_values_exactly_and_averages_others():
    weld = find_coincident(np.array([[0.0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]))
    same = np.array([[0.1], [7.0], [0.1], [0.1]])
    assert weld.mean(same).tolist() == [[0.1], [7.0]]
    different = np.array([[1.0], [7.0], [2.0], [6.0]], np.float32)
    assert weld.mean(different).tolist() == [[3.0], [7.0]]
    assert weld.mean(different).dtype == np.float32


def naive_average(cells: Cells, values: np.ndarray) -> np.ndarray:
    out = np.zeros((cells.n_points, values.shape[1]))
    for node in range(cells.n_points):
        around = [
            values[c]
            for c in range(cells.n_cells)
            if node in cells.connectivity[cells.offsets[c] : cells.offsets[c + 1]]
        ]
        out[node] = np.mean(around, axis=0) if around else 0
    return out


def test_cell_values_reach_nodes_as_plain_means():
    mesh = mixed()
    values = np.random.default_rng(0).normal(size=(3, 3))
    np.testing.assert_allclose(
        cells_to_nodes(mesh, values), naive_average(mesh, values), rtol=1e-14
    )


def test_grid_and_mesh_average_alike():
    axes = TensorGrid((np.arange(3.0), np.arange(4.0), np.arange(2.0)))
    values = np.random.default_rng(1).normal(size=(2, 3, 1, 2))
    on_grid = grid_cells_to_nodes(values, axes.shape)
    rows = values.transpose(2, 1, 0, 3).reshape(-1, 2)
    on_mesh = naive_average(grid_to_cells(axes), rows)
    np.testing.assert_allclose(
        on_grid.transpose(2, 1, 0, 3).reshape(-1, 2), on_mesh, rtol=1e-14
    )


def test_structured_cells_are_those_vtk_makes():
    import pyvista

    x, y, z = np.meshgrid([0.0, 1, 3], [0.0, 2], [0.0, 1, 5, 6], indexing="ij")
    grid = pyvista.StructuredGrid(x + 0.1 * y, y, z)
    theirs = grid.cast_to_unstructured_grid()
    ours = structured_cells(np.asarray(grid.points), (3, 2, 4))
    np.testing.assert_array_equal(ours.connectivity, theirs.cell_connectivity)
    np.testing.assert_array_equal(ours.types, theirs.celltypes)


def test_flat_and_thin_grids_become_quads_lines_and_points():
    for shape, code, count in [((3, 1, 4), 9, 6), ((1, 1, 4), 3, 3), ((1, 1, 1), 1, 1)]:
        points = np.zeros((int(np.prod(shape)), 3))
        cells = structured_cells(points, shape)
        assert set(cells.types.tolist()) == {code}
        assert cells.n_cells == count
