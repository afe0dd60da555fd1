"""Cases fitted to files: every solver's layout runs as it is, and what was found."""

import dataclasses
import os
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

import trace_solvers
from jaxtrace.cli import app
from jaxtrace.io.formats import open_slices
from jaxtrace.types import ParticleStatus
from jaxtrace.workflow.case import load_case
from jaxtrace.workflow.run import run_case
from jaxtrace.workflow.starter import (
    files_pattern,
    starter,
    survey,
    two_digits,
)
from trace_cases import bare
from trace_files import hexahedra, image, write_xml


@pytest.mark.parametrize("name", trace_solvers.FORMATS)
def test_a_solvers_case_fits_its_files_and_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "files").mkdir()
    files = trace_solvers.FORMATS[name](tmp_path / "files")
    names = [os.path.relpath(file, tmp_path) for file in files]
    done = CliRunner().invoke(app, ["new", "case.toml", *names])
    assert done.exit_code == 0, done.exception
    case = load_case("case.toml")
    assert (case.time.time_span, case.time.n_timesteps) == ((0.0, 1.0), 101)
    # At speed 2 half a cell of length 1 takes a quarter, and a frame less than that.
    assert case.time.dt == 0.01
    assert (case.boundary.type, case.pictures.plane) == ("walls", "xy")
    assert np.prod(case.particles.concentrations) > 1000
    slices = open_slices(names[0] if len(names) == 1 else names)
    for index, time in enumerate(slices.times.tolist()):
        expected = np.broadcast_to(
            (1 + time) * trace_solvers.AXIS, slices.read(0).shape
        )
        np.testing.assert_allclose(slices.read(index), expected, atol=1e-6)
    fewer = dataclasses.replace(case.particles, concentrations=(24, 8, 3))
    # Two stages are exact for a velocity that is linear in time.
    tracking = dataclasses.replace(case.tracking, integrator="rk2")
    frames = dataclasses.replace(case.time, n_timesteps=6)
    case = dataclasses.replace(case, particles=fewer, tracking=tracking, time=frames)
    outcome = run_case(bare(case))
    seeds, found = outcome.plan.seeds, outcome.trajectory
    assert found.N > 100
    moved = lambda t: (t + t**2 / 2) * trace_solvers.AXIS
    inside = seeds[:, 0] + moved(1.0)[0] < 4
    assert (found.alive[-1] == inside).all()
    exact = seeds[inside] + moved(1.0)
    np.testing.assert_allclose(found.positions[-1, inside], exact, atol=1e-5)
    # t + t^2/2 is the way to the outlet when a particle leaves.
    left = np.sqrt(1 + 2 * (4 - seeds[~inside, 0])) - 1
    np.testing.assert_allclose(found.exit_time[~inside], left, atol=1e-4)
    assert (found.status[~inside] == ParticleStatus.ABSORBED).all()


def test_a_steady_file_says_so_and_ends_when_it_is_passed(tmp_path):
    grid = image((5, 4, 3))
    grid["velocity"] = np.tile([0.5, 0.0, 0.0], (grid.n_points, 1))
    path = write_xml(grid, tmp_path / "flow.vti")
    text = starter(survey(os.path.relpath(path)), tmp_path)
    case = tomllib.loads(text)
    assert "# one instant: a steady flow" in text
    assert case["data"]["pattern"] == "flow.vti"
    # The longest way is 4 along z, at the mean speed 0.5.
    assert case["time"]["time_span"] == [0.0, 8.0]
    rules = {"x": "absorbing", "y": "reflective", "z": "reflective"}
    assert case["boundary"] == {"type": "mixed", "boundary_types": rules}
    assert case["pictures"]["plane"] == "xz"
    assert "slice" in case["pictures"]["which"]
    counts = case["particles"]["concentrations"]
    assert 3000 < np.prod(list(counts.values())) < 8000


def test_a_flat_domain_gets_no_slice_across_it(tmp_path):
    grid = image((5, 4, 1))
    grid["velocity"] = np.tile([0.5, 0.0, 0.0], (grid.n_points, 1))
    found = survey(str(write_xml(grid, tmp_path / "flow.vti")))
    assert "slice" not in tomllib.loads(starter(found))["pictures"]["which"]
    shallow = dataclasses.replace(found, high=np.add(found.low, [6e4, 6e4, 20]))
    counts = tomllib.loads(starter(shallow))["particles"]["concentrations"]
    assert counts == {"x": 50, "y": 50, "z": 2}


def test_a_mesh_that_is_a_grid_gets_the_walls_of_a_box(tmp_path):
    found = survey(str(write_xml(hexahedra(), tmp_path / "flow.vtu")))
    assert tomllib.loads(starter(found))["boundary"]["type"] == "absorbing"


def test_files_are_named_by_a_pattern_that_matches_no_other(tmp_path):
    names = [tmp_path / f"run1_{i}.vtu" for i in (2, 9, 10)]
    for name in names:
        name.touch()
    all_of_them = tuple(map(str, names))
    assert files_pattern(all_of_them, tmp_path) == str(tmp_path / "run1_*.vtu")
    assert files_pattern(all_of_them[:2], tmp_path) == list(all_of_them[:2])
    one = os.path.relpath(names[0])
    assert files_pattern((one,), tmp_path) == "run1_2.vtu"


def test_numbers_are_rounded_down():
    assert [two_digits(x) for x in (0.0129, 1.0, 0.3, 457.0)] == [0.012, 1, 0.3, 450]


def test_what_has_no_velocity_is_refused_in_the_words_of_a_case(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    grid = image((3, 3, 3))
    grid["velocity"] = np.zeros((27, 3))
    write_xml(grid, tmp_path / "still.vti")
    for name in ("a", "b"):
        grid[name] = np.ones((27, 3))
    del grid.point_data["velocity"]
    write_xml(grid, tmp_path / "two.vti")
    new = lambda *words: CliRunner().invoke(app, ["new", "case.toml", *words])
    assert "is zero everywhere" in str(new("still.vti").exception)
    words = str(new("two.vti").exception)
    assert "the arrays are a, b: give one as --velocity" in words
    assert new("two.vti", "--velocity", "b").exit_code == 0
    data = load_case("case.toml").data
    assert data is not None
    assert data.velocity_name == "b"
