"""Training from the command line: jobs of the sizes asked for, and resuming."""

import json

import jax.numpy as jnp
import pytest
from typer.testing import CliRunner

from acbo.cli import app
from acbo.cli import train as command
from acbo.cli.train import Job, Kind, Sizes, policy_recipe, surrogate_recipe
from acbo.surrogate.predictor import load_surrogate
from jaxrig.atomic import write_file


def test_recipes_take_what_was_chosen_and_nothing_else():
    sizes = Sizes(steps=24, batch=5, variables=6, dim=16, layers=2, learning_rate=0.01)
    surrogate = surrogate_recipe(sizes)
    assert (surrogate.steps, surrogate.steps_per_update) == (24, 8)
    assert (surrogate.model.dim, surrogate.model.layers) == (16, 2)
    assert (surrogate.batches, surrogate.data[0].sizes) == ((5,), (3, 6))
    policy = policy_recipe(sizes)
    assert (policy.model.dim, policy.learner.states) == (16, 5)
    assert (policy.episodes.variables, policy.learner.learning_rate) == (6, 0.01)
    assert surrogate_recipe(Sizes()) == command.SurrogateRecipe()
    assert policy_recipe(Sizes()) == command.PolicyRecipe()


def counting_job(calls, stop_at=None):
    """Adds one with each update; told of every call, and interrupted if asked."""

    def update(state):
        if len(calls) == stop_at:
            raise KeyboardInterrupt
        calls.append(float(state))
        return state + 1, {"loss": state}

    trained = lambda state: {"weights.txt": f"{float(state):g}"}
    return lambda sizes, surrogate: Job(
        sizes, sizes.steps, lambda key: jnp.asarray(0.0), update, trained
    )


@pytest.fixture
def run(monkeypatch, tmp_path):
    def call(job, *words, steps=4):
        monkeypatch.setitem(command.JOBS, Kind.surrogate, job)
        monkeypatch.setitem(command.WRITERS, "weights.txt", write_file)
        out = ["--out", str(tmp_path / "run"), "--steps", str(steps)]
        return CliRunner().invoke(app, ["train", "surrogate", *out, *words])

    return call


def test_a_run_leaves_metrics_and_weights(run, tmp_path):
    done = run(counting_job(calls := []))
    assert done.exit_code == 0, done.output
    assert calls == [0.0, 1.0, 2.0, 3.0]
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3, 4]
    assert (tmp_path / "run" / "weights.txt").read_text() == "4"
    assert "loss: 3" in done.output


def test_an_interrupted_run_goes_on(run, tmp_path):
    stopped = run(counting_job([], stop_at=2))
    assert stopped.exit_code == 130
    assert "run again to resume" in stopped.output
    again = run(counting_job(calls := []))
    assert again.exit_code == 0, again.output
    assert calls == [2.0, 3.0]


def test_another_configuration_is_refused(run):
    run(counting_job([]))
    other = run(counting_job([]), "--seed", "7")
    assert other.exit_code == 2
    assert "different configuration" in " ".join(other.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("policy", "--layers", "2"), "--layers applies only to the surrogate"),
        (("joint", "--surrogate", __file__), "--surrogate applies only to the policy"),
    ],
)
def test_options_of_another_kind_are_refused(tmp_path, words, message):
    done = CliRunner().invoke(app, ["train", *words, "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert message in " ".join(done.output.replace("│", " ").split())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:2 items do not divide")  # of the tests' 8 devices
def test_a_surrogate_for_real(tmp_path):
    sizes = ("--steps", "2", "--dim", "8", "--layers", "1", "--batch", "2")
    words = ["train", "surrogate", "--out", str(tmp_path), *sizes, "--variables", "3"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    network = load_surrogate(tmp_path / "surrogate.ckpt").network
    assert network.config.dim == 8
