"""The commands of `jaxrig trace`: run, continue, describe, convert, test."""

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxtrace.cli import app, describe
from jaxtrace.io.store import open_store
from jaxtrace.workflow import results, selftest
from jaxtrace.workflow import run as workflow
from jaxtrace.workflow.case import load_case
from trace_cases import NO_EXTRAS, SMALL, write_slices, write_small

BARE = SMALL + NO_EXTRAS


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path, BARE)
    return lambda *words: CliRunner().invoke(app, list(map(str, words)))


def test_the_help_names_every_command(call):
    text = call("--help").output
    for word in ("run", "new", "info", "convert", "ftle", "test"):
        assert f" {word} " in text


def test_run_and_run_again(call, tmp_path):
    done = call("run", "case.toml")
    assert done.exit_code == 0, done.output
    assert "12 particles, 41 frames" in done.output
    assert "particle-steps per second" in done.output
    assert "there" in call("run", "result", "--out", "there").output
    assert (tmp_path / "there" / "trajectory.zarr").exists()
    for words in (("run", "case.toml"), ("run", "result")):
        assert "all frames already existed" in call(*words).output
    assert "compilation" in call("run", "case.toml", "--overwrite").output


def test_a_run_that_writes_very_much_needs_a_yes(call, tmp_path, monkeypatch):
    monkeypatch.setattr(workflow, "ASK_ABOVE", 1000)
    refused = call("run", "case.toml")
    assert "will write about" in refused.output
    words = str(refused.exception)
    assert "allow it (--yes), or do less: fewer n_timesteps or a larger dt" in words
    assert not (tmp_path / "result" / "trajectory.zarr").exists()
    assert call("run", "case.toml", "--yes").exit_code == 0


def test_a_run_of_very_many_steps_needs_a_yes(call, monkeypatch):
    monkeypatch.setattr(workflow, "STEP_BYTES", 2**40)
    refused = call("run", "case.toml")
    assert "of memory for 40 steps" in refused.output
    assert "a larger dt in [time]" in str(refused.exception)


def test_an_interrupt_says_how_to_continue(call, monkeypatch):
    def interrupted(*given, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(workflow, "run_case", interrupted)
        early = call("run", "case.toml")
    assert early.exit_code == 130
    assert early.output == "stopped\n"
    call("run", "case.toml")
    monkeypatch.setattr(workflow, "run_case", interrupted)
    stopped = call("run", "case.toml", "--overwrite")
    assert "resume with: jaxrig trace run case.toml" in stopped.output


def test_a_wrong_case_is_an_error_that_names_it(call, tmp_path):
    write_small(tmp_path, BARE.replace("which", "wich"))
    wrong = call("run", "case.toml")
    assert wrong.exit_code == 1
    assert "did you mean 'which'" in str(wrong.exception)


def test_new_cases_for_a_flow_and_for_files(call, tmp_path):
    done = call("new", "a.toml")
    assert "next: jaxrig trace run a.toml" in done.output
    assert load_case("a.toml").flow is not None
    assert load_case("a.toml").folder == tmp_path / "a_out"
    series = write_slices(tmp_path)
    done = call("new", "deep/b.toml", series.name)
    assert "3 slices from t = 0 to 1" in done.output
    data = load_case("deep/b.toml").data
    assert data is not None
    assert data.pattern == str(tmp_path / "deep" / ".." / series.name)
    done = call("new", "s.toml", series.name, "--time-scale", "0.25")
    assert "3 slices from t = 0 to 0.25" in done.output
    scaled = load_case("s.toml")
    assert scaled.data is not None
    assert (scaled.data.time_scale, scaled.time.time_span) == (0.25, (0.0, 0.25))
    missing = call("new", "c.toml", "nothing/*.vtu")
    assert "no files found for nothing/*.vtu" in str(missing.exception)
    assert not (tmp_path / "c.toml").exists()
    (tmp_path / "a.toml").write_text("mine")
    refused = call("new", "a.toml")
    assert refused.exit_code == 2
    assert "exists" in refused.output
    assert (tmp_path / "a.toml").read_text() == "mine"


def test_what_a_series_a_store_and_a_case_hold(call, tmp_path):
    facts = describe(str(write_slices(tmp_path)))
    assert facts["slices"] == 3
    assert facts["times"] == "0 to 1"
    assert facts["geometry"] == "grid of 4 x 3 x 2 nodes"
    assert facts["highest corner"] == "2, 1, 1"
    assert facts["speed of the first slice"] == "1 to 1, mean 1"
    assert "other variables" not in facts
    with open_store(tmp_path / "run.zarr", "x", metadata={"seed": 3}) as store:
        store.append([0.0, 1.0], {"positions": np.zeros((2, 5, 3), np.float32)})
    facts = describe(str(tmp_path / "run.zarr"))
    assert (facts["frames"], facts["seed"], facts["times"]) == (2, "3", "0 to 1")
    assert "(5, 3) float32" in facts["arrays"]
    facts = describe("case.toml")
    assert facts["flow.name"] == "rotation"
    assert facts["particles.concentrations"] == (4, 3, 1)
    shown = call("info", "flow.pvd", "case.toml").output
    assert "grid of 4 x 3 x 2 nodes" in shown
    assert "rotation" in shown


def test_convert(call, tmp_path):
    source, target = write_slices(tmp_path), tmp_path / "deep" / "flow.nc"
    done = call("convert", source, target)
    assert done.exit_code == 0, done.output
    assert target.exists()
    assert f"wrote {target}" in done.output
    missing = call("convert", "none.zarr", "flow.vtp")
    assert "none.zarr: no such" in str(missing.exception)
    unknown = call("convert", source, "flow.doc")
    assert "velocities are written as" in str(unknown.exception)


EXPONENTS = ("-T", "0.5", "--resolution", "5", "--out")


@pytest.mark.parametrize(
    "kind", ["case", pytest.param("files", marks=pytest.mark.slow)]
)
def test_exponents(call, tmp_path, kind):
    pytest.importorskip("matplotlib")
    text = (
        '[flow]\nname = "saddle"\n[particles]\nbounds = [0, 1, 0, 1]\n[ftle]\ndt = 0.1'
    )
    source = write_small(tmp_path, text) if kind == "case" else write_slices(tmp_path)
    done = call("ftle", source, *EXPONENTS, tmp_path)
    assert done.exit_code == 0, done.output
    with np.load(tmp_path / "ftle.npz") as found:
        exponents = found["ftle"]
    # A saddle parts particles at its rate, a uniform velocity does not part them.
    exact = {"case": 1.0, "files": 0.0}[kind]
    np.testing.assert_allclose(exponents, exact, rtol=1e-4, atol=1e-6)
    assert (tmp_path / "ftle.png").exists()


def test_exponents_of_a_flow_by_its_name(call, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(results, "compute_ftle", lambda case, meter: asked.append(case))
    monkeypatch.setattr(results, "save_ftle", lambda found, folder: [folder / "a.npz"])
    done = call("ftle", "double_gyre", *EXPONENTS, tmp_path)
    assert f"wrote {tmp_path / 'a.npz'}" in done.output.replace("\n", "")
    typo = call("ftle", "duble_gyre", *EXPONENTS, tmp_path)
    assert "did you mean 'double_gyre'" in str(typo.exception)
    (case,) = asked
    assert (case.flow.name, case.ftle.T, case.ftle.resolution) == (
        "double_gyre",
        0.5,
        5,
    )


@pytest.mark.parametrize(("error", "code", "word"), [(0.5, 0, "ok"), (2.0, 1, "WRONG")])
def test_trials_are_judged(call, monkeypatch, error, code, word):
    trial = selftest.Trial("one", 1.0, lambda: error)
    monkeypatch.setattr(selftest, "TRIALS", (trial,))
    done = call("test")
    assert done.exit_code == code
    assert done.output.startswith(word)
