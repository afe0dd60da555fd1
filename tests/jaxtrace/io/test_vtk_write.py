"""VTK XML files hold every array exactly, block by block, whole or not at all."""

import numpy as np
import pytest

import trace_vtk
from jaxtrace.io import vtk_write
from jaxtrace.io.steps import listed_steps
from jaxtrace.io.vtk_write import CellColumns, Column, column


def content(column):
    return b"".join(bytes(part) for part in column.stream())


@pytest.mark.parametrize("kind", vtk_write.KINDS)
def test_a_column_streams_every_kind(kind):
    values = np.arange(12).reshape(4, 3).astype(kind)
    column = vtk_write.column("a", values)
    assert (column.rows, column.components, column.nbytes) == (4, 3, values.nbytes)
    assert content(column) == values.astype(values.dtype.newbyteorder("<")).tobytes()


def test_blocks_are_small_and_lose_nothing(monkeypatch):
    monkeypatch.setattr(vtk_write, "BLOCK", 40)
    values = np.arange(101.0).reshape(101, 1)
    parts = list(vtk_write.column("a", values).stream())
    assert max(len(part) for part in parts) <= 40
    assert b"".join(map(bytes, parts)) == values.tobytes()
    numbers = vtk_write.integers("i", 33, 100, start=3, step=3)
    assert content(numbers) == np.arange(3, 102, 3, dtype="i4").tobytes()


def test_strided_arrays_and_booleans():
    values = np.arange(24.0).reshape(4, 6)[:, ::2]
    assert content(vtk_write.column("a", values)) == values.copy().tobytes()
    assert content(vtk_write.column("b", [True, False])) == b"\x01\x00"


def test_a_column_with_the_wrong_amount_of_data_is_an_error():
    short = Column("a", np.dtype("f4"), 3, 1, lambda: [np.zeros(2, "f4")])
    with pytest.raises(ValueError, match="'a' has -4 bytes"):
        content(short)


@pytest.mark.parametrize("dtype", ["f2", "c8", "U3", "O"])
def test_kinds_that_no_file_holds_are_refused(dtype):
    with pytest.raises(TypeError, match="'a' has dtype"):
        vtk_write.column("a", np.zeros(3, dtype))


def test_rows_are_checked():
    with pytest.raises(ValueError, match="'a' has shape \\(3,\\), it needs 4 rows"):
        vtk_write.columns({"a": np.zeros(3)}, 4)
    with pytest.raises(ValueError, match="needs an array"):
        vtk_write.column("a", 1.0)
    with pytest.raises(ValueError, match="has 3 rows, it needs 4"):
        vtk_write.columns({"a": vtk_write.column("a", np.zeros(3))}, 4)


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


TYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


def sample_data(rows):
    rng = np.random.default_rng(1)
    data = {kind: rng.integers(0, 100, rows).astype(kind) for kind in TYPES}
    data["vector"] = rng.normal(size=(rows, 3))
    data['a <"name"> & more'] = rng.normal(size=rows).astype("f4")
    return data


def assert_same(found, expected):
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
        assert found[name].dtype == values.dtype


def line_cells(*sizes):
    return CellColumns(
        column("connectivity", np.arange(sum(sizes))),
        column("offsets", np.cumsum(sizes)),
    )


def test_polydata_comes_back_exactly(tmp_path):
    rng = np.random.default_rng(0)
    points, data = rng.normal(size=(9, 3)).astype("f4"), sample_data(9)
    verts = CellColumns(column("connectivity", [8]), column("offsets", [1]))
    path = vtk_write.write_vtp(
        tmp_path / "deep" / "a.vtp",
        points,
        verts=verts,
        lines=line_cells(2, 3, 3),
        point_data=data,
        field_data={"TimeValue": 2.5},
    )
    found = trace_vtk.load(path)
    np.testing.assert_array_equal(trace_vtk.points(found), points)
    assert trace_vtk.cells(found) == [(8,), (0, 1), (2, 3, 4), (5, 6, 7)]
    assert_same(trace_vtk.arrays(found.GetPointData()), data)
    assert trace_vtk.arrays(found.GetFieldData())["TimeValue"] == [2.5]


def test_unstructured_grids_keep_mixed_cells(tmp_path):
    points = np.random.default_rng(0).normal(size=(8, 3))
    cells = CellColumns(
        column("connectivity", [0, 1, 2, 3, 0, 1, 2, *range(8)]),
        column("offsets", [4, 7, 15]),
        column("types", np.array([10, 5, 12], np.uint8)),
    )
    path = vtk_write.write_vtu(tmp_path / "a.vtu", points, cells)
    found = trace_vtk.load(path)
    np.testing.assert_array_equal(trace_vtk.points(found), points)
    assert trace_vtk.cells(found) == [(0, 1, 2, 3), (0, 1, 2), tuple(range(8))]
    assert [found.GetCellType(i) for i in range(3)] == [10, 5, 12]


def test_grids_run_x_fastest(tmp_path):
    shape, origin, spacing = (3, 4, 5), (0.1, -2.0, 1e-6), (0.25, 1e-3, 3.0)
    data = {"n": np.arange(60)}
    path = vtk_write.write_vti(
        tmp_path / "a.vti", shape, origin, spacing, point_data=data
    )
    image = trace_vtk.load(path)
    assert trace_vtk.dimensions(image) == shape
    assert image.GetOrigin() == origin
    assert image.GetSpacing() == spacing
    assert_same(trace_vtk.arrays(image.GetPointData()), data)

    axes = [np.array([0.0, 1, 4]), np.array([0.0, 1, 2, 9]), np.arange(5.0)]
    path = vtk_write.write_vtr(tmp_path / "a.vtr", axes, point_data=data)
    grid = trace_vtk.load(path)
    assert trace_vtk.dimensions(grid) == shape
    np.testing.assert_array_equal(trace_vtk.as_numpy(grid.GetYCoordinates()), axes[1])
    assert_same(trace_vtk.arrays(grid.GetPointData()), data)


def test_nothing_is_a_valid_file(tmp_path):
    empty = np.zeros((0, 3), np.float32)
    path = vtk_write.write_vtu(tmp_path / "a.vtu", empty, vtk_write.vertices(0))
    assert trace_vtk.load(path).GetNumberOfPoints() == 0
    path = vtk_write.write_vtp(tmp_path / "a.vtp", empty, lines=line_cells())
    assert trace_vtk.load(path).GetNumberOfPoints() == 0


def test_an_error_while_writing_leaves_the_previous_file(tmp_path):
    path = tmp_path / "a.vtp"
    vtk_write.write_vtp(path, np.ones((2, 3)))
    before = path.read_bytes()

    def blocks():
        yield np.zeros((1, 3))
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        vtk_write.write_vtp(path, Column("Points", np.dtype("f8"), 2, 3, blocks))
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
