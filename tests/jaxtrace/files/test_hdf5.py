import sys

import numpy as np
import pytest

from jaxtrace.files.hdf5 import H5Series

h5py = pytest.importorskip("h5py")
VALUES = np.random.default_rng(0).normal(size=(3, 2, 4, 5, 3)).astype(np.float32)


def write(path, **content):
    with h5py.File(path, "w") as file:
        for name, values in content.items():
            file[name.replace("__", "/")] = values
    return path


def check(series, times=(0.0, 1.0, 2.0)):
    assert len(series) == 3
    assert series.times.tolist() == list(times)
    for index in range(3):
        np.testing.assert_array_equal(series.load_slice(index), VALUES[index])
    np.testing.assert_array_equal(series.load_slice(-1), VALUES[2])


def test_one_array_of_all_steps(tmp_path):
    path = write(tmp_path / "a.h5", velocity=VALUES, times=[0.5, 1.5, 4.0])
    check(H5Series(path), (0.5, 1.5, 4.0))
    other = write(tmp_path / "b.h5", wind=VALUES)
    check(H5Series(str(other), dataset="wind"))


@pytest.mark.parametrize("form", ["t{:04d}", "t{:03d}", "t{:05d}", "step_{}", "{}"])
@pytest.mark.parametrize("inside", ["velocity/{}", "{}", "{}/velocity"])
def test_one_array_per_step(tmp_path, form, inside):
    # Written last first, and past ten, so that order must come from the number.
    names = [inside.format(form.format(number)) for number in (2, 9, 10)]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, values in reversed(list(zip(names, VALUES, strict=True))):
            file[name] = values
    check(H5Series(tmp_path / "a.h5"))


@pytest.mark.parametrize("lead", [True, False])
def test_one_file_per_step(tmp_path, lead):
    for number, values in zip((2, 9, 10), VALUES, strict=True):
        data = values[None] if lead else values
        write(tmp_path / f"a_{number}.h5", velocity=data, time=float(number))
    check(H5Series(tmp_path / "a_*.h5"), (2.0, 9.0, 10.0))
    check(H5Series(tmp_path), (2.0, 9.0, 10.0))


def test_values_on_nodes_and_single_steps(tmp_path):
    nodes = VALUES.reshape(3, -1, 3)
    assert len(H5Series(write(tmp_path / "n.h5", velocity=nodes))) == 3
    single = H5Series(write(tmp_path / "s.h5", velocity=VALUES[0]))
    assert len(single) == 1
    np.testing.assert_array_equal(single.load_slice(0), VALUES[0])


def test_wrong_files_are_refused_by_name(tmp_path):
    whole = write(tmp_path / "a.h5", velocity=VALUES).read_bytes()
    cut = tmp_path / "cut.h5"
    for content in (b"", b"garbage" * 100, whole[:600], whole[: len(whole) // 2]):
        cut.write_bytes(content)
        with pytest.raises(ValueError, match=r"cut\.h5: HDF5 cannot read"):
            H5Series(cut)


def test_missing_arrays_list_what_there_is(tmp_path):
    path = write(tmp_path / "a.h5", pressure=[1.0], rho=[1.0])
    with pytest.raises(ValueError, match=r"a\.h5: no .*'velocity'.* pressure, rho"):
        H5Series(path)
    with pytest.raises(ValueError, match=r"must be \(T, Nx, Ny, Nz, C\).* \(1,\)"):
        H5Series(path, dataset="rho")
    steps = write(tmp_path / "b.h5", t0000__rho=[1.0])
    with pytest.raises(ValueError, match=r"b\.h5: no dataset or group"):
        H5Series(steps)
    write(tmp_path / "s_1.h5", velocity=VALUES)
    write(tmp_path / "s_2.h5", velocity=VALUES)
    with pytest.raises(ValueError, match=r"s_1\.h5: 'velocity' holds 3 steps"):
        H5Series(tmp_path / "s_*.h5")
    write(tmp_path / "s_1.h5", velocity=VALUES[0])
    write(tmp_path / "s_2.h5", rho=VALUES[0])
    with pytest.raises(ValueError, match=r"s_2\.h5: no dataset"):
        H5Series(tmp_path / "s_*.h5")


def test_steps_outside_and_files_not_there(tmp_path):
    series = H5Series(write(tmp_path / "a.h5", velocity=VALUES))
    with pytest.raises(IndexError, match=r"step 3 of a series of 3 in .*a\.h5"):
        series.load_slice(3)
    with pytest.raises(FileNotFoundError, match=r"none\.h5"):
        H5Series(tmp_path / "none.h5")


def test_without_h5py_the_error_names_the_extra(tmp_path, monkeypatch):
    path = write(tmp_path / "a.h5", velocity=VALUES)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[trace\]"'):
        H5Series(path)
