"""VTK XML files hold every array exactly, block by block, whole or not at all."""

import numpy as np
import pytest

import trace_vtk
from jaxtrace.io import vtk_write
from jaxtrace.io.steps import listed_steps
from jaxtrace.io.vtk_write import CellArrays


def written(tmp_path, values):
    """An array of points as VTK reads it."""
    points = np.zeros((len(values), 3))
    path = vtk_write.write_vtp(tmp_path / "a.vtp", points, point_data={"a": values})
    return trace_vtk.arrays(trace_vtk.load(path).GetPointData())["a"]


@pytest.mark.parametrize("block", [1, 40, 10**6])
def test_blocks_of_any_size_lose_nothing(monkeypatch, tmp_path, block):
    monkeypatch.setattr(vtk_write, "BLOCK", block)
    values = np.arange(606.0).reshape(101, 6)[:, ::2]
    np.testing.assert_array_equal(written(tmp_path, values), values)
    swapped = values.astype(">f4")
    np.testing.assert_array_equal(written(tmp_path, swapped), values)
    shown = np.random.default_rng(0).random((4, 5)) < 0.7
    shown[0] = True
    places = np.random.default_rng(1).random((5, 4, 3)).swapaxes(0, 1)
    ids = np.broadcast_to(np.arange(5), (4, 5))
    path = vtk_write.write_vtp(
        tmp_path / "b.vtp", places, point_data={"id": ids}, shown=shown
    )
    found = trace_vtk.load(path)
    np.testing.assert_array_equal(trace_vtk.points(found), places[shown])
    named = trace_vtk.arrays(found.GetPointData())
    np.testing.assert_array_equal(named["id"], np.nonzero(shown)[1])


def test_booleans_are_bytes(tmp_path):
    assert written(tmp_path, np.array([True, False])).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", ["f2", "c8", "U3", "O"])
def test_kinds_that_no_file_holds_are_refused(tmp_path, dtype):
    with pytest.raises(TypeError, match="'a' has dtype"):
        written(tmp_path, np.zeros(3, dtype))


def test_positions_become_three_columns_of_floats():
    flat = vtk_write.as_points(np.ones((2, 5, 2), np.float32))
    assert flat.dtype == np.float32
    assert flat.shape == (2, 5, 3)
    assert not flat[..., 2].any()
    assert vtk_write.as_points([[1, 2, 3]]).dtype == np.float64
    with pytest.raises(ValueError, match=r"\(4, 5\)"):
        vtk_write.as_points(np.zeros((4, 5)))


def test_numbers_past_32_bits_get_64():
    assert vtk_write.index_kind(2**31 - 1) == np.int32
    assert vtk_write.index_kind(2**31) == np.int64


def sample_data(rows):
    rng = np.random.default_rng(1)
    data = {kind: rng.integers(0, 100, rows).astype(kind) for kind in vtk_write.KINDS}
    data["vector"] = rng.normal(size=(rows, 3))
    data['a <"name"> & more'] = rng.normal(size=rows).astype("f4")
    return data


def assert_same(found, expected):
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
        assert found[name].dtype == values.dtype


def line_cells(*sizes):
    return CellArrays(np.arange(sum(sizes)), np.cumsum(sizes, dtype=int))


def test_polydata_comes_back_exactly(tmp_path):
    rng = np.random.default_rng(0)
    points, data = rng.normal(size=(9, 3)).astype("f4"), sample_data(9)
    verts = CellArrays([8], [1])
    path = vtk_write.write_vtp(
        tmp_path / "deep" / "a.vtp",
        points,
        verts=verts,
        lines=line_cells(2, 3, 3),
        point_data=data,
    )
    found = trace_vtk.load(path)
    np.testing.assert_array_equal(trace_vtk.points(found), points)
    assert trace_vtk.cells(found) == [(8,), (0, 1), (2, 3, 4), (5, 6, 7)]
    assert_same(trace_vtk.arrays(found.GetPointData()), data)


def test_unstructured_grids_keep_mixed_cells(tmp_path):
    points = np.random.default_rng(0).normal(size=(8, 3))
    nodes, types = [0, 1, 2, 3, 0, 1, 2, *range(8)], np.array([10, 5, 12], np.uint8)
    cells = CellArrays(nodes, [4, 7, 15], types)
    path = vtk_write.write_vtu(tmp_path / "a.vtu", points, cells)
    found = trace_vtk.load(path)
    np.testing.assert_array_equal(trace_vtk.points(found), points)
    assert trace_vtk.cells(found) == [(0, 1, 2, 3), (0, 1, 2), tuple(range(8))]
    assert [found.GetCellType(i) for i in range(3)] == [10, 5, 12]


def test_nothing_is_a_valid_file(tmp_path):
    empty = np.zeros((0, 3), np.float32)
    path = vtk_write.write_vtu(tmp_path / "a.vtu", empty, vtk_write.vertices(0))
    assert trace_vtk.load(path).GetNumberOfPoints() == 0
    path = vtk_write.write_vtp(tmp_path / "a.vtp", empty, lines=line_cells())
    assert trace_vtk.load(path).GetNumberOfPoints() == 0


def test_an_error_while_writing_leaves_the_previous_file(tmp_path, monkeypatch):
    path = tmp_path / "a.vtp"
    vtk_write.write_vtp(path, np.ones((2, 3)))
    before = path.read_bytes()

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(np, "ascontiguousarray", fail)
    with pytest.raises(OSError, match="full"):
        vtk_write.write_vtp(path, np.zeros((2, 3)))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_cells_of_a_grid_need_types(tmp_path):
    with pytest.raises(ValueError, match="type numbers"):
        vtk_write.write_vtu(tmp_path / "a.vtu", np.zeros((2, 3)), line_cells(2))


def test_sizes_are_checked_before_anything_is_written(tmp_path):
    for rows in (3, 5):
        data = {"a": np.zeros(rows)}
        given = (np.zeros((4, 3)), vtk_write.vertices(4))
        with pytest.raises(ValueError, match="it needs"):
            vtk_write.write_vtu(tmp_path / "a.vtu", *given, point_data=data)
    assert not list(tmp_path.iterdir())


def test_times_and_names_of_a_collection_come_back_exactly(tmp_path):
    names = ["c.vtu", 'x/"<&>.vtu', "a b.vtu"]
    times = [-5.0, 1e-300, 0.1 + 0.2]
    path = tmp_path / "made" / "a.pvd"
    vtk_write.write_collection(path, zip(times, names, strict=True))
    for name in names:
        (path.parent / name).parent.mkdir(exist_ok=True)
        (path.parent / name).touch()
    steps = listed_steps(path)
    assert [step.time for step in steps] == times
    assert [step.files for step in steps] == [(path.parent / name,) for name in names]
