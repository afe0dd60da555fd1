"""Exported lines and points are those of the trajectory, and never cross it."""

from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import trace_vtk
from jaxtrace import paths
from jaxtrace.io.steps import listed_steps
from jaxtrace.io.vtk_export import (
    export_trajectory_to_vtk,
    line_starts,
    recording,
    split_lines,
    write_grid,
    write_points,
)


def naive_lines(record):
    """Lines as lists of (particle, frame), by the definition."""
    lines = []
    for particle in range(record.alive.shape[1]):
        line = []
        for frame in range(len(record.alive)):
            if not record.alive[frame, particle]:
                line = []
                continue
            if line and breaks(record, particle, frame):
                line = []
            if not line:
                lines.append(line)
            line.append((particle, frame))
    return lines


def breaks(record, particle, frame):
    step = record.positions[frame, particle] - record.positions[frame - 1, particle]
    before, after = record.generation[frame - 1 : frame + 1, particle]
    wrapped = any(
        0 < length < np.inf and abs(d) > length / 2
        for d, length in zip(step, record.metadata.get("period", ()), strict=False)
    )
    return before != after or wrapped


@st.composite
def records(draw):
    frames, particles = draw(st.integers(1, 7)), draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    positions = rng.random((frames, particles, 3))
    positions[rng.random((frames, particles)) < 0.1, 1] = np.nan
    alive = rng.random((frames, particles)) < 0.8 if draw(st.booleans()) else None
    generation = None
    if draw(st.booleans()):
        generation = (rng.random((frames, particles)) < 0.3).cumsum(axis=0)
    period = draw(
        st.sampled_from([None, (1.0, np.inf, 0.0), (0.0, 0.9, 1.2), (1.0, 0.0)])
    )
    metadata = {} if period is None else {"period": period}
    return trace_vtk.trajectory(
        positions, alive=alive, generation=generation, metadata=metadata
    )


@hypothesis.given(records())
@hypothesis.settings(max_examples=60)
def test_lines_are_those_of_the_definition(given):
    record = recording(given)
    starts = line_starts(record)
    in_order = starts.T[record.alive.T]
    verts, lines = split_lines(in_order)
    drawn = [p for line in naive_lines(record) for p in line]
    parts = np.split(lines.connectivity, lines.offsets)[:-1]
    found = [[drawn[i] for i in part] for part in parts]
    assert found == [line for line in naive_lines(record) if len(line) > 1]
    alone = [] if verts is None else [[drawn[i]] for i in verts.connectivity]
    assert alone == [line for line in naive_lines(record) if len(line) == 1]


@pytest.mark.parametrize("block", [1, 64, 10**6])
def test_wraps_are_found_for_any_block(monkeypatch, block):
    monkeypatch.setattr(paths, "BLOCK_POSITIONS", block)
    times = np.linspace(0.0, 3.0, 31)
    positions = np.zeros((31, 2, 3))
    positions[..., 0] = np.mod(np.array([0.05, 0.55]) + times[:, np.newaxis], 1.0)
    record = recording(
        trace_vtk.trajectory(positions, times, metadata={"period": (1.0, 0.0, np.inf)})
    )
    assert line_starts(record).sum(axis=0).tolist() == [4, 4]


def test_arrays_that_do_not_belong_together_are_refused():
    positions, _ = trace_vtk.random_walks(4, 3)
    with pytest.raises(ValueError, match="times has shape"):
        recording(trace_vtk.trajectory(positions, np.arange(3.0)))
    with pytest.raises(ValueError, match=r"alive has shape \(4, 2\)"):
        recording(trace_vtk.trajectory(positions, alive=np.ones((4, 2), bool)))
    with pytest.raises(ValueError, match="give three lengths"):
        recording(trace_vtk.trajectory(positions, metadata={"period": 1.0}))


def channel(frames=12, particles=3):
    """Particles that move along x, recycled at x = 1; one dies at frame 7."""
    times = np.linspace(0.0, 2.0, frames)
    traveled = np.linspace(0.0, 0.9, particles) + times[:, np.newaxis]
    positions = np.zeros((frames, particles, 3), np.float32)
    positions[..., 0] = np.mod(traveled, 1.0)
    positions[..., 1] = np.arange(particles)
    alive = np.ones((frames, particles), bool)
    alive[7:, 1] = False
    positions[7:, 1] = np.nan
    return trace_vtk.trajectory(
        positions,
        times,
        velocities=np.ones_like(positions),
        alive=alive,
        generation=(traveled // 1.0).astype(int),
    )


def test_every_particle_is_one_line_of_its_positions(tmp_path):
    positions, velocities = trace_vtk.random_walks(6, 4)
    times = 1e9 + np.arange(6.0)  # whose precision is kept
    made = export_trajectory_to_vtk(
        trace_vtk.trajectory(positions, times, velocities=velocities),
        str(tmp_path / "out.vtp"),
    )
    assert made == {"mode": "single", "file": str(tmp_path / "out.vtp")}
    found = trace_vtk.load(made["file"])
    major = positions.transpose(1, 0, 2)
    np.testing.assert_array_equal(trace_vtk.points(found), major.reshape(-1, 3))
    assert trace_vtk.cells(found) == [tuple(range(6 * p, 6 * p + 6)) for p in range(4)]
    data = trace_vtk.arrays(found.GetPointData())
    np.testing.assert_array_equal(data["ParticleID"], np.repeat(np.arange(4), 6))
    np.testing.assert_array_equal(data["TimeStep"], np.tile(np.arange(6), 4))
    np.testing.assert_array_equal(data["Time"], np.tile(times, 4))
    np.testing.assert_array_equal(
        data["Velocity"], velocities.transpose(1, 0, 2).reshape(-1, 3)
    )
    for axis, name in enumerate(["InitialX", "InitialY", "InitialZ"]):
        np.testing.assert_array_equal(data[name], np.repeat(positions[0, :, axis], 6))


def test_no_line_crosses_the_domain(tmp_path):
    made = export_trajectory_to_vtk(channel(), tmp_path / "out.vtp")
    found = trace_vtk.load(made["file"])
    place = trace_vtk.points(found)
    assert np.isfinite(place).all()
    assert len(place) == 12 * 3 - 5
    for cell in trace_vtk.cells(found):
        steps = np.diff(place[list(cell)], axis=0)
        assert (steps[:, 0] > 0).all()
        assert not steps[:, 1].any()
    assert sum(map(len, trace_vtk.cells(found))) == len(place)


def test_a_series_has_one_file_per_frame_and_their_times(tmp_path):
    trajectory = channel()
    made = export_trajectory_to_vtk(trajectory, tmp_path / "run.vtp", time_series=True)
    folder = tmp_path / "run_series"
    assert made["mode"] == "series"
    assert made["directory"] == str(folder)
    assert made["count"] == 12
    names = [f"trajectory_{i:04d}.vtu" for i in range(12)]
    collection = Path(made["collection"])
    assert {p.name for p in folder.iterdir()} == {*names, collection.name}
    steps = [(step.time, step.files[0].name) for step in listed_steps(collection)]
    assert steps == list(zip(trajectory.times, names, strict=True))
    for index, name in enumerate(names):
        found = trace_vtk.load(folder / name)
        living = trajectory.alive[index]
        np.testing.assert_array_equal(
            trace_vtk.points(found), trajectory.positions[index, living]
        )
        data = trace_vtk.arrays(found.GetPointData())
        np.testing.assert_array_equal(data["ParticleID"], np.flatnonzero(living))
        np.testing.assert_array_equal(data["Time"], trajectory.times[index])
        np.testing.assert_array_equal(data["Velocity"], np.ones((living.sum(), 3)))
        np.testing.assert_array_equal(
            data["InitialX"], trajectory.positions[0, living, 0]
        )
        when = trace_vtk.arrays(found.GetFieldData())["TimeValue"]
        assert when == trajectory.times[index]


def test_a_shorter_series_leaves_nothing_of_a_longer_one(tmp_path):
    for frames in (5, 3):
        positions, _ = trace_vtk.random_walks(frames, 2)
        made = export_trajectory_to_vtk(
            trace_vtk.trajectory(positions), tmp_path / "a", time_series=True
        )
    assert len(list(Path(made["directory"]).glob("*.vtu"))) == 3


def test_what_is_left_out_and_what_is_given(tmp_path):
    positions, velocities = trace_vtk.random_walks(3, 2)
    trajectory = trace_vtk.trajectory(positions, velocities=velocities)
    made = export_trajectory_to_vtk(
        trajectory, tmp_path / "a", include_velocities=False, include_metadata=False
    )
    assert made["file"] == str(tmp_path / "a.vtp")
    assert not trace_vtk.arrays(trace_vtk.load(made["file"]).GetPointData())
    starts = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    made = export_trajectory_to_vtk(
        trajectory, tmp_path / "b", initial_positions=starts
    )
    data = trace_vtk.arrays(trace_vtk.load(made["file"]).GetPointData())
    np.testing.assert_array_equal(data["InitialZ"], [3, 3, 3, 6, 6, 6])
    with pytest.raises(ValueError, match=r"initial_positions has shape \(3, 3\)"):
        export_trajectory_to_vtk(
            trajectory, tmp_path / "c", initial_positions=np.zeros((3, 3))
        )


@pytest.mark.parametrize("shape", [(1, 3), (4, 0), (0, 2)])
def test_a_trajectory_without_lines_is_written(tmp_path, shape):
    trajectory = trace_vtk.trajectory(np.zeros((*shape, 3), np.float32))
    made = export_trajectory_to_vtk(trajectory, tmp_path / "a.vtp")
    assert trace_vtk.load(made["file"]).GetNumberOfPoints() == np.prod(shape)
    made = export_trajectory_to_vtk(trajectory, tmp_path / "a.vtp", time_series=True)
    assert made["count"] == shape[0]


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


@pytest.mark.parametrize(
    ("suffix", "power", "kind"),
    [("", 1, ".vti"), (".vti", 1, ".vti"), (".vtr", 1, ".vtr"), ("", 2, ".vtr")],
)
def test_grids_are_written_as_plainly_as_they_can_be(tmp_path, suffix, power, kind):
    axes = [AXES[0] ** power, *AXES[1:]]
    values = ramp(*np.meshgrid(*axes, indexing="ij"))
    path = write_grid(tmp_path / f"a{suffix}", axes, values, "heat", time=0.5)
    assert path == tmp_path / f"a{kind}"
    found = check(path, "heat")
    assert trace_vtk.dimensions(found) == (3, 4, 5)
    assert trace_vtk.arrays(found.GetFieldData())["TimeValue"] == 0.5


def test_planar_grids_and_axes_of_one_node(tmp_path):
    X, Y = np.meshgrid(*AXES[:2], indexing="ij")
    found = check(write_grid(tmp_path / "a.vti", AXES[:2], ramp(X, Y, 0)))
    assert trace_vtk.dimensions(found) == (3, 4, 1)
    thin = [AXES[0], np.array([2.0]), AXES[2]]
    values = ramp(*np.meshgrid(*thin, indexing="ij"))
    assert trace_vtk.dimensions(check(write_grid(tmp_path / "b", thin, values)))[1] == 1


def test_grids_that_a_file_cannot_hold_are_refused(tmp_path):
    values = np.zeros((3, 4, 5))
    with pytest.raises(ValueError, match=r"use \.vtr"):
        write_grid(tmp_path / "a.vti", [AXES[0] ** 2, *AXES[1:]], values)
    with pytest.raises(ValueError, match=r"these axes need \(3, 4, 5\)"):
        write_grid(tmp_path / "a.vti", AXES, values[:2])


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
