"""What is converted holds the same as before, whatever the format."""

import numpy as np
import pytest

from jaxtrace.files.columns import vertices
from jaxtrace.files.series import GridSeries, load
from jaxtrace.files.stores import open_store
from jaxtrace.files.vtk_write import write_vtu
from jaxtrace.io.sources import open_slices
from jaxtrace.workflow.conversion import (
    convert,
    describe_store,
    is_store,
    read_trajectory,
)
from trace_cases import write_slices

TIMES = np.linspace(0, 1, 70)
POSITIONS = np.random.default_rng(0).normal(size=(70, 4, 3)).astype(np.float32)


@pytest.fixture
def paths(tmp_path):
    path = tmp_path / "run.h5"
    with open_store(path, "x", metadata={"integrator": "rk4"}) as store:
        store.append(TIMES, {"positions": POSITIONS})
    return path


@pytest.mark.parametrize("suffix", [".zarr", ".h5", ".pvd"])
def test_paths_between_stores(paths, tmp_path, suffix):
    seen = []
    target = tmp_path / f"copy{suffix}"
    assert convert(paths, target, lambda *done: seen.append(done)) == [target]
    found = read_trajectory(target)
    np.testing.assert_array_equal(found.positions, POSITIONS)
    np.testing.assert_array_equal(found.times, TIMES)
    assert found.metadata["integrator"] == "rk4"
    assert seen[-1] == (70, 70)
    assert is_store(target)


def test_paths_to_lines(paths, tmp_path):
    (target,) = convert(paths, tmp_path / "lines.vtp")
    assert b"ParticleID" in target.read_bytes()


@pytest.mark.parametrize("suffix", [".pvd", ".nc", ".zarr"])
def test_velocities_on_a_grid(tmp_path, suffix):
    source = write_slices(tmp_path)
    target = tmp_path / f"again{suffix}"
    convert(source, target)
    assert not is_store(target)
    before, after = (load(open_slices(str(path))) for path in (source, target))
    np.testing.assert_array_equal(after.times, before.times)
    np.testing.assert_array_equal(after.velocities, before.velocities)
    assert isinstance(before, GridSeries)
    assert isinstance(after, GridSeries)
    assert after.geometry.same_as(before.geometry)


def test_velocities_on_a_mesh_go_to_vtk_only(tmp_path):
    points = np.random.default_rng(0).random((6, 3))
    flow = {"velocity": np.ones((6, 3), np.float32)}
    source = write_vtu(tmp_path / "m.vtu", points, vertices(6), point_data=flow)
    convert(source, tmp_path / "m.pvd")
    found = load(open_slices(str(tmp_path / "m.pvd")))
    np.testing.assert_array_equal(found.velocities[0], 1)
    with pytest.raises(ValueError, match=r"convert them to \.pvd"):
        convert(source, tmp_path / "m.nc")


def test_what_cannot_be_written_is_refused(paths, tmp_path):
    with pytest.raises(ValueError, match="recorded paths are written as"):
        convert(paths, tmp_path / "x.nc")
    with pytest.raises(ValueError, match="velocities are written as"):
        convert(write_slices(tmp_path), tmp_path / "x.vtp")
    with pytest.raises(FileExistsError, match="exists"):
        convert(paths, paths)


def test_a_store_in_words(paths):
    with open_store(paths, "r") as store:
        facts = describe_store(store)
    assert facts["frames"] == 70
    assert facts["times"] == "0 to 1"
    assert facts["integrator"] == "rk4"
