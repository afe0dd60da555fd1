import numpy as np
import pytest

import trace_vtk
from jaxtrace.files.collection import listed_steps
from jaxtrace.files.writers import VTKTrajectoryWriter

TIMES = np.linspace(0.0, 1.0, 5)


def test_the_package_convention(tmp_path):
    positions, velocities = trace_vtk.random_walks(5, 3)
    trajectory = trace_vtk.trajectory(positions, TIMES, velocities=velocities)
    writer = VTKTrajectoryWriter()
    path = writer.write_trajectory(trajectory, str(tmp_path / "a.vtp"))
    data = trace_vtk.arrays(trace_vtk.load(path).GetPointData())
    assert set(data) == {"ParticleID", "TimeStep", "Time", "Velocity"}
    path = writer.write_trajectory(
        trajectory,
        tmp_path / "a.vtp",
        include_velocities=False,
        include_particle_ids=False,
        include_timestep_data=False,
        format="binary",
    )
    assert path.suffix == ".vtk"
    assert not trace_vtk.arrays(trace_vtk.load(path).GetPointData())
    path = writer.write_time_series(
        trajectory, tmp_path / "series", filename_pattern="step-{:03d}.vtu"
    )
    names = [f"step-{i:03d}.vtu" for i in range(5)]
    assert listed_steps(path) == list(zip(TIMES, names, strict=True))
    assert path.name == "step.pvd"
    found = trace_vtk.load(tmp_path / "series" / names[3])
    np.testing.assert_array_equal(trace_vtk.points(found), positions[3])
    path = writer.write_particles_at_time(
        positions[0], velocities[0], time=2.5, filename=str(tmp_path / "p.vtu")
    )
    found = trace_vtk.load(path)
    np.testing.assert_array_equal(trace_vtk.points(found), positions[0])
    assert trace_vtk.arrays(found.GetFieldData())["TimeValue"] == [2.5]
    with pytest.raises(ValueError, match="no frame number"):
        writer.write_time_series(trajectory, tmp_path, filename_pattern="a.vtu")


def test_the_cloud_of_all_points(tmp_path):
    positions, _ = trace_vtk.random_walks(5, 3)
    extra = {
        "mass": np.array([1.0, 2.0, 3.0]),
        "heat": np.arange(15.0).reshape(5, 3),
    }
    writer = VTKTrajectoryWriter(tmp_path / "out")
    path = writer.write_trajectory_points(
        positions, TIMES, particle_data=extra, time_subset=slice(1, 5, 2)
    )
    assert path == tmp_path / "out" / "particle_trajectories.vtp"
    found = trace_vtk.load(path)
    np.testing.assert_array_equal(
        trace_vtk.points(found), positions[1::2].reshape(-1, 3)
    )
    assert trace_vtk.cells(found) == [(i,) for i in range(6)]
    data = trace_vtk.arrays(found.GetPointData())
    np.testing.assert_array_equal(data["mass"], [1, 2, 3, 1, 2, 3])
    np.testing.assert_array_equal(data["heat"], [3, 4, 5, 9, 10, 11])
    np.testing.assert_array_equal(data["TimeStep"], [1, 1, 1, 3, 3, 3])
    np.testing.assert_array_equal(data["Time"], np.repeat(TIMES[1::2], 3))
    np.testing.assert_array_equal(data["ParticleID"], [0, 1, 2, 0, 1, 2])
    with pytest.raises(ValueError, match="'mass' has shape"):
        writer.write_trajectory_points(
            positions, TIMES, particle_data={"mass": np.zeros(4)}
        )


def test_lines_have_their_lengths(tmp_path):
    positions, _ = trace_vtk.random_walks(5, 9)
    positions[1:, 4] = np.nan
    positions[3:, 8] = np.nan
    writer = VTKTrajectoryWriter(tmp_path)
    path = writer.write_trajectory_lines(positions, TIMES, "a.vtp", max_particles=3)
    found = trace_vtk.load(path)
    cells = trace_vtk.cells(found)
    place = trace_vtk.points(found).astype(float)
    data = trace_vtk.arrays(found.GetPointData())
    names = [data["ParticleID"][cell[0]] for cell in cells]
    assert names == [4, 0, 8]  # the particle of one point is a vertex, first in VTK
    assert [len(cell) for cell in cells] == [1, 5, 3]
    lengths = trace_vtk.arrays(found.GetCellData())["PathLength"]
    expected = [
        np.linalg.norm(np.diff(place[list(cell)], axis=0), axis=1).sum()
        for cell in cells
    ]
    np.testing.assert_allclose(lengths, expected, rtol=1e-12)


def test_particles_are_chosen(tmp_path):
    positions, _ = trace_vtk.random_walks(4, 6)
    writer = VTKTrajectoryWriter(tmp_path)

    def chosen(**options):
        path = writer.write_trajectory_lines(positions, np.arange(4.0), **options)
        found = trace_vtk.load(path)
        data = trace_vtk.arrays(found.GetPointData())["ParticleID"]
        return [data[cell[0]] for cell in trace_vtk.cells(found)]

    assert chosen() == [0, 1, 2, 3, 4, 5]
    assert chosen(max_particles=10) == [0, 1, 2, 3, 4, 5]
    assert chosen(max_particles=2) == [0, 5]
    assert chosen(particle_subset=np.array([5, 2]), max_particles=1) == [5, 2]
    with pytest.raises(ValueError, match="from 2 to 6"):
        chosen(particle_subset=[2, 6])
    with pytest.raises(ValueError, match="max_particles is 0"):
        chosen(max_particles=0)
