"""Series in HDF5: every layout of steps, with the coordinates beside them."""

import sys

import numpy as np
import pytest

from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.io.geometry import Cells, same_geometry
from jaxtrace.io.hdf5 import H5Slices
from jaxtrace.io.loader import load_variable

h5py = pytest.importorskip("h5py")
VALUES = np.random.default_rng(0).normal(size=(3, 2, 4, 5, 3)).astype(np.float32)


def write(path, **content):
    with h5py.File(path, "w") as file:
        for name, values in content.items():
            file[name.replace("__", "/")] = values
    return path


AXES = {axis: np.arange(float(n)) for axis, n in zip("xyz", (2, 4, 5), strict=True)}


def check(series, times=(0.0, 1.0, 2.0)):
    assert len(series) == 3
    assert series.times.tolist() == list(times)
    for index in range(3):
        np.testing.assert_array_equal(series.read(index), VALUES[index])


def test_one_array_of_all_steps(tmp_path):
    path = write(tmp_path / "a.h5", velocity=VALUES, times=[0.5, 1.5, 4.0], **AXES)
    check(H5Slices(path), (0.5, 1.5, 4.0))
    other = write(tmp_path / "b.h5", wind=VALUES, **AXES)
    check(H5Slices(str(other), velocity_field_name="wind"))


@pytest.mark.parametrize("form", ["t{:04d}", "t{:03d}", "t{:05d}", "step_{}", "{}"])
@pytest.mark.parametrize("inside", ["velocity/{}", "{}", "{}/velocity"])
def test_one_array_per_step(tmp_path, form, inside):
    # Written last first, and past ten, so that order must come from the number.
    names = [inside.format(form.format(number)) for number in (2, 9, 10)]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, values in reversed(list(zip(names, VALUES, strict=True))):
            file[name] = values
        for name, values in AXES.items():
            file[name] = values
    check(H5Slices(tmp_path / "a.h5"))


@pytest.mark.parametrize("lead", [True, False])
def test_one_file_per_step(tmp_path, lead):
    for number, values in zip((2, 9, 10), VALUES, strict=True):
        data = values[None] if lead else values
        write(tmp_path / f"a_{number}.h5", velocity=data, time=float(number), **AXES)
    check(H5Slices(tmp_path / "a_*.h5"), (2.0, 9.0, 10.0))
    check(H5Slices(tmp_path), (2.0, 9.0, 10.0))


def test_a_step_may_have_a_time_of_its_own(tmp_path):
    times = (0.5, 1.5, 4.0)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number, (time, values) in enumerate(zip(times, VALUES, strict=True)):
            step = file.create_dataset(f"velocity/t{number:04d}", data=values)
            step.attrs["time"] = time
            file[f"nested/step_{number}/nested"] = values
            file[f"nested/step_{number}/time"] = time
        file.attrs["time"] = 7.0
        for axis, nodes in AXES.items():
            file[axis] = nodes
    series = H5Slices(tmp_path / "a.h5")
    assert series.time_source == "the steps in the file"
    check(series, times)
    check(H5Slices(tmp_path / "a.h5", velocity_field_name="nested"), times)
    with h5py.File(tmp_path / "a.h5", "a") as file:
        for step in file["velocity"].values():
            del step.attrs["time"]
    series = H5Slices(tmp_path / "a.h5")
    assert series.time_source == "the index of the step (1 times for 3 steps)"
    check(series)


@pytest.mark.parametrize("name", ["U", "flow/Velocity", "run/flow/vel"])
def test_a_velocity_of_a_usual_name_is_found(tmp_path, name):
    place = name.rpartition("/")[0]
    beside = {f"{place}/{axis}".lstrip("/"): nodes for axis, nodes in AXES.items()}
    path = write(tmp_path / "a.h5", **{name: VALUES, "p": [1.0]}, **beside)
    series = H5Slices(path)
    assert series.velocity_name == name
    check(series)


def test_components_and_planes(tmp_path):
    parts = {name: VALUES[..., i] for i, name in enumerate("uvw")}
    path = write(tmp_path / "a.h5", t=[0.5, 1.5, 4.0], **parts, **AXES)
    assert H5Slices(path).velocity_name == "u, v, w"
    check(H5Slices(path), (0.5, 1.5, 4.0))
    flat, axes = VALUES[:, 0], {"x": AXES["y"], "y": AXES["z"]}
    plane = H5Slices(write(tmp_path / "b.h5", velocity=flat, **axes))
    assert len(plane) == 3
    np.testing.assert_array_equal(plane.read(1)[:, :, 0], flat[1])
    one = H5Slices(write(tmp_path / "c.h5", velocity=flat[0], **axes))
    np.testing.assert_array_equal(one.read(0)[:, :, 0], flat[0])


def test_values_on_nodes_and_single_steps(tmp_path):
    nodes = VALUES.reshape(3, -1, 3)
    assert len(H5Slices(write(tmp_path / "n.h5", velocity=nodes))) == 3
    single = H5Slices(write(tmp_path / "s.h5", velocity=VALUES[0], **AXES))
    assert len(single) == 1
    np.testing.assert_array_equal(single.read(0), VALUES[0])


def test_a_vector_is_one_also_where_two_of_its_components_are_nothing(tmp_path):
    force = VALUES * np.array([1, 0, 0], np.float32)
    arrays = {"force": force, "heat": VALUES[..., :1], **AXES}
    path = write(tmp_path / "a.h5", times=[0.0, 1.0, 2.0], **arrays)
    found = {name: load_variable(path, name) for name in ("force", "heat")}
    assert [variable.scalar for variable in found.values()] == [False, True]


def test_wrong_files_are_refused_by_name(tmp_path):
    whole = write(tmp_path / "a.h5", velocity=VALUES).read_bytes()
    cut = tmp_path / "cut.h5"
    for content in (b"", b"garbage" * 100, whole[:600], whole[: len(whole) // 2]):
        cut.write_bytes(content)
        with pytest.raises(ValueError, match=r"cut\.h5: HDF5 cannot read"):
            H5Slices(cut)


def test_missing_arrays_list_what_there_is(tmp_path):
    path = write(tmp_path / "a.h5", pressure=[1.0], rho=[1.0])
    with pytest.raises(ValueError, match=r"a\.h5: no .*'velocity'.* pressure, rho"):
        H5Slices(path)
    with pytest.raises(ValueError, match=r"must be \(T, Nx, Ny, Nz, C\).* \(1,\)"):
        H5Slices(path, velocity_field_name="rho")
    steps = write(tmp_path / "b.h5", t0000__rho=[1.0])
    with pytest.raises(ValueError, match=r"b\.h5: no dataset or group"):
        H5Slices(steps)
    write(tmp_path / "s_1.h5", velocity=VALUES)
    write(tmp_path / "s_2.h5", velocity=VALUES)
    with pytest.raises(ValueError, match=r"s_1\.h5: 'velocity' holds 3 steps"):
        H5Slices(tmp_path / "s_*.h5")
    write(tmp_path / "s_1.h5", velocity=VALUES[0])
    write(tmp_path / "s_2.h5", rho=VALUES[0])
    with pytest.raises(ValueError, match=r"s_2\.h5: no dataset"):
        H5Slices(tmp_path / "s_*.h5")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.h5"):
        H5Slices(tmp_path / "none.h5")


def test_without_h5py_the_error_names_the_extra(tmp_path, monkeypatch):
    path = write(tmp_path / "a.h5", velocity=VALUES)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"pip install .*\[trace\]"):
        H5Slices(path)


def test_a_grid_with_axes_down_and_up(tmp_path):
    values = np.random.default_rng(0).normal(size=(2, 3, 2, 1, 2))
    axes = {"x": [0.0, 1.0, 4.0], "y": [5.0, 3.0]}
    file = write(tmp_path / "a.h5", velocity=values, times=[1.0, 2.0], **axes)
    slices = H5Slices(file, dtype="float64")
    geometry, found = slices.read_slice(1)
    assert isinstance(geometry, TensorGrid)
    np.testing.assert_array_equal(geometry.axes[1], [3.0, 5.0])
    np.testing.assert_array_equal(geometry.axes[2], [0.0])
    np.testing.assert_array_equal(found[..., :2], values[1][:, ::-1])
    np.testing.assert_array_equal(found[..., 2], np.zeros((3, 2, 1)))
    assert slices.read_slice(0)[0] is geometry


def test_nodes_with_and_without_cells(tmp_path):
    points = np.random.default_rng(0).uniform(size=(4, 3))
    arrays = {"velocity": np.ones((3, 4, 3)), "points": points}
    cloud = H5Slices(write(tmp_path / "a.h5", **arrays)).read_slice(0)[0]
    assert isinstance(cloud, Cells)
    assert cloud.n_cells == 0
    cells = {
        "connectivity": np.arange(4),
        "cell_offsets": np.array([0, 4]),
        "cell_types": np.array([10]),
    }
    file = write(tmp_path / "b.h5", **arrays, **cells)
    mesh = H5Slices(file).read_slice(0)[0]
    assert isinstance(mesh, Cells)
    assert (mesh.n_points, mesh.n_cells) == (4, 1)
    rows = {"connectivity": np.arange(4)[None]}
    again = H5Slices(write(tmp_path / "c.h5", **arrays, **rows)).read_slice(0)[0]
    assert same_geometry(again, mesh)


@pytest.mark.parametrize(
    ("shape", "names"), [((2, 3, 2, 2, 3), "x, y, z"), ((2, 5, 3), "positions")]
)
def test_missing_coordinates_are_named(tmp_path, shape, names):
    slices = H5Slices(write(tmp_path / "a.h5", velocity=np.ones(shape)))
    with pytest.raises(ValueError, match=f"no coordinates; store them .* as {names}"):
        slices.read_slice(0)


def test_coordinates_that_do_not_fit_are_named(tmp_path):
    file = write(tmp_path / "a.h5", velocity=np.ones((2, 5, 3)), points=np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"shape \(5, 3\) at coordinates of \(4,\)"):
        H5Slices(file).read(0)
