"""Fields written are those that VTK reads back, on grids, meshes and points."""

import itertools

import numpy as np
import pytest

import trace_vtk
from jaxtrace.io.vtk_fields import write_grid, write_points

AXES = [np.linspace(0.0, 1.0, 3), np.linspace(-1.0, 1.0, 4), np.linspace(0.0, 3e-6, 5)]


def ramp(x, y, z):
    return x + 10 * y + 1e5 * z


def check(path, name="velocity"):
    """The values in a file are those of the ramp at its points."""
    found = trace_vtk.load(path)
    count = found.GetNumberOfPoints()
    points = np.array([found.GetPoint(i) for i in range(count)]).T
    data = trace_vtk.arrays(found.GetPointData())[name]
    np.testing.assert_allclose(data, ramp(*points), rtol=1e-5, atol=1e-6)
    return found


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_axes_may_come_in_any_order(tmp_path, order, dtype):
    mesh = np.meshgrid(*[axis.astype(dtype) for axis in AXES], indexing="ij")
    turned = [m.transpose(order) for m in mesh]
    path = write_grid(tmp_path / "a", turned, ramp(*turned))
    assert path == tmp_path / "a.vti"
    found = check(path)
    assert trace_vtk.dimensions(found) == (3, 4, 5)
    np.testing.assert_allclose(found.GetOrigin(), [0, -1, 0])
    np.testing.assert_allclose(found.GetSpacing(), [0.5, 2 / 3, 0.75e-6], rtol=1e-6)


@pytest.mark.parametrize("suffix", [".vti", ".vtr", ".vts"])
def test_the_suffix_asks_for_a_kind(tmp_path, suffix):
    values = ramp(*np.meshgrid(*AXES, indexing="ij"))
    path = write_grid(tmp_path / f"a{suffix}", AXES, values, "heat", time=0.5)
    assert path.suffix == suffix
    found = check(path, "heat")
    assert trace_vtk.arrays(found.GetFieldData())["TimeValue"] == 0.5


def test_the_plainest_kind_that_holds_the_grid(tmp_path):
    uneven = np.meshgrid(AXES[0] ** 2, AXES[1], AXES[2], indexing="ij")
    assert check(write_grid(tmp_path / "a", uneven, ramp(*uneven))).IsA(
        "vtkRectilinearGrid"
    )
    bent = [uneven[0] + 0.1 * uneven[1], uneven[1], uneven[2]]
    assert check(write_grid(tmp_path / "b", bent, ramp(*bent))).IsA("vtkStructuredGrid")
    falling = np.meshgrid(AXES[0][::-1], AXES[1], AXES[2], indexing="ij")
    assert write_grid(tmp_path / "c", falling, falling[0]).suffix == ".vtr"


def test_a_grid_that_the_file_cannot_hold_is_refused(tmp_path):
    uneven = np.meshgrid(AXES[0] ** 2, AXES[1], AXES[2], indexing="ij")
    with pytest.raises(ValueError, match=r"use \.vtr or \.vts"):
        write_grid(tmp_path / "a.vti", uneven, uneven[0])
    with pytest.raises(ValueError, match="have the shapes"):
        write_grid(tmp_path / "a.vti", uneven, uneven[0][:2])


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_planar_grids(tmp_path, indexing):
    X, Y = np.meshgrid(np.linspace(0, 1, 4), np.linspace(2, 3, 3), indexing=indexing)
    found = check(write_grid(tmp_path / "a.vti", (X, Y), ramp(X, Y, 0)))
    assert trace_vtk.dimensions(found) == (4, 3, 1)
    thin = np.meshgrid(AXES[0], [2.0], AXES[2], indexing="ij")
    found = check(write_grid(tmp_path / "b", thin, ramp(*thin)))
    assert trace_vtk.dimensions(found) == (3, 1, 5)


def test_points_with_scalars_and_vectors(tmp_path):
    positions = np.random.default_rng(0).normal(size=(8, 3))
    found = check(write_points(tmp_path / "a", positions, ramp(*positions.T)))
    assert trace_vtk.cells(found) == [(i,) for i in range(8)]
    path = write_points(tmp_path / "b.vtu", positions, 2 * positions, "U", time=1.5)
    found = trace_vtk.load(path)
    data = trace_vtk.arrays(found.GetPointData())["U"]
    np.testing.assert_array_equal(data, 2 * positions)
    assert trace_vtk.arrays(found.GetFieldData())["TimeValue"] == 1.5
    with pytest.raises(ValueError, match="write_collection"):
        write_points(tmp_path / "c", positions, positions[np.newaxis])


@pytest.mark.parametrize(("nodes", "kind"), [(3, 5), (4, 10), (8, 12)])
def test_cells_have_the_type_of_their_nodes(tmp_path, nodes, kind):
    rng = np.random.default_rng(nodes)
    positions = rng.normal(size=(9, 3))
    cells = np.array([rng.permutation(9)[:nodes] for _ in range(5)])
    path = write_points(tmp_path / "a.vtu", positions, positions, cells=cells)
    found = trace_vtk.load(path)
    assert trace_vtk.cells(found) == [tuple(cell) for cell in cells.tolist()]
    assert {found.GetCellType(i) for i in range(5)} == {kind}


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        (np.zeros((2, 7), int), "one row per cell"),
        (np.zeros(4, int), "one row per cell"),
        ([[0, 1, 3]], "name node 3, there are 3"),
        ([[0, 1, -1]], "numbered from 0"),
    ],
)
def test_wrong_cells_are_refused(tmp_path, cells, problem):
    with pytest.raises(ValueError, match=problem):
        write_points(tmp_path / "a", np.zeros((3, 3)), np.zeros(3), cells=cells)
