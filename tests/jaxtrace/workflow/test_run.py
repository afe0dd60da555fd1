"""A case runs to its end, and continues where it was stopped."""

import dataclasses

import numpy as np
import pytest

from jaxrig import Meter
from jaxtrace.io.convert import read_recorded
from jaxtrace.io.store import open_store
from jaxtrace.workflow.case import load_case
from jaxtrace.workflow.run import run_case, store_path, stored_case
from trace_cases import SMALL, bare, write_slices, write_small

pytest.importorskip("matplotlib")


class Stopping(Meter):
    """Interrupts a run after some frames."""

    def __init__(self, after):
        self.after = after

    def show(self, done):
        if done >= self.after:
            raise KeyboardInterrupt


@pytest.fixture
def case(tmp_path):
    return load_case(write_small(tmp_path))


@pytest.mark.slow  # compiles a program of its own
def test_everything_is_written(case):
    lines = []
    outcome = run_case(case, tell=lines.append)
    names = {path.name for path in outcome.files}
    assert names == {
        "trajectory.zarr",
        "density.npz",
        "final_particles.png",
        "trajectories.png",
        "density_kde.png",
        "density_sph.png",
        "trajectory.vtp",
        "trajectory.pvd",
        "analysis_summary.txt",
        "report.html",
    }
    assert all(path.exists() for path in outcome.files)
    assert lines[0] == "12 particles, 41 frames from t = 0 to 1"
    assert any("the domain is flat" in line for line in lines)
    turned = outcome.trajectory.positions
    np.testing.assert_allclose(turned[-1], turned[0], atol=1e-4)
    assert outcome.rate > 0
    assert {
        "loading",
        "tracking",
        "compiling",
        "density",
        "pictures",
        "exports",
    } == set(outcome.seconds)


def test_nothing_but_the_store_where_nothing_else_is_asked_for(case):
    # The step is the largest: that frames are nearer is nothing to warn of.
    case = dataclasses.replace(case, time=dataclasses.replace(case.time, dt=100.0))
    outcome = run_case(bare(case))
    assert outcome.files == [store_path(case)]
    np.testing.assert_array_equal(
        read_recorded(store_path(case)).positions, outcome.trajectory.positions
    )


@pytest.mark.bitwise
@pytest.mark.parametrize("store", ["zarr", "h5"])
def test_a_run_that_was_stopped_continues_bit_for_bit(case, store):
    case = bare(case)
    whole = run_case(case).trajectory
    folder = str(case.folder.with_name("stopped"))
    output = dataclasses.replace(case.output, folder=folder, store=store)
    case = dataclasses.replace(case, output=output)
    with pytest.raises(KeyboardInterrupt):
        run_case(case, meter=Stopping(20))
    assert len(read_recorded(store_path(case)).times) < whole.T
    outcome = run_case(stored_case(folder))
    np.testing.assert_array_equal(outcome.trajectory.positions, whole.positions)
    assert 0 < outcome.share < 1
    assert outcome.files == [case.folder / f"trajectory.{store}"]
    exported = read_recorded(outcome.files[0])
    np.testing.assert_array_equal(exported.positions, whole.positions)
    assert run_case(case).share == 0
    with open_store(store_path(case), "a") as frames:
        frames.truncate(0)  # as a kill before the first frame leaves it
    assert run_case(case).share == 1


def test_the_run_of_another_case_is_not_replaced_unasked(case):
    case = bare(case)
    run_case(case)
    table = dataclasses.replace(case.tracking, seed=1)
    other = dataclasses.replace(case, tracking=table)
    with pytest.raises(FileExistsError, match=r"another tracking\.seed"):
        run_case(other)
    moved = dataclasses.replace(case.particles, bounds_fraction=None)
    with pytest.raises(FileExistsError, match=r"another \[particles\]"):
        run_case(dataclasses.replace(case, particles=moved))
    assert run_case(other, overwrite=True).share == 1
    assert stored_case(case.folder).tracking.seed == 1


def test_exports_follow_the_run(case):
    output = dataclasses.replace(bare(case).output, formats=("csv", "npz"))
    outcome = run_case(dataclasses.replace(bare(case), output=output))
    assert [path.name for path in outcome.files[1:]] == [
        "trajectory.csv",
        "trajectory.npz",
    ]
    assert all(path.exists() for path in outcome.files)


def test_a_folder_knows_its_case(case, tmp_path):
    case = bare(case)
    run_case(case)
    moved = case.folder.rename(tmp_path / "moved")
    found = stored_case(moved)
    assert found.folder == moved
    assert found.flow == case.flow
    with pytest.raises(FileNotFoundError, match="is not a run"):
        stored_case(tmp_path)


@pytest.mark.slow  # compiles a program of its own
def test_files_to_results_through_a_channel(tmp_path):
    write_slices(tmp_path)
    text = SMALL.replace('name = "rotation"', "").replace(
        "rate = 6.283185307179586", ""
    )
    text = text.replace("[flow]", '[data]\npattern = "flow.pvd"')
    text = text.replace("z = 1", "z = 2").replace('type = "reflective"', "")
    text = text.replace("bounds = [-1, 1, -1, 1]", 'inlet = "none"')
    outcome = run_case(bare(load_case(write_small(tmp_path, text))))
    exited = outcome.trajectory.exit_time
    # x = x0 + t + t^2 / 2 reaches 2.
    start = outcome.trajectory.positions[0, :, 0]
    exact = np.sqrt(1 + 2 * (2 - start)) - 1
    left = exact < 1
    np.testing.assert_allclose(
        exited[left & (start < 2)], exact[left & (start < 2)], rtol=1e-3
    )
    assert np.isnan(exited[~left]).all()
