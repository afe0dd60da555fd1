"""Oracle: a run without interruption."""

import dataclasses
import json
import multiprocessing
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import killed_run
from jaxrig.checkpoint import CheckpointManager
from jaxrig.compile_guard import compile_once
from jaxrig.learn.ppo import PPOConfig, ppo_init, ppo_update
from jaxrig.learn.tabular import corridor, uniform_policy
from jaxrig.learn.train import JsonLines, train
from jaxrig.progress import Meter
from jaxrig.testing import assert_trees_close

PROBLEM = corridor(3)
CONFIG = PPOConfig(environments=4, steps=8, minibatches=2, epochs=1)


@pytest.fixture(scope="module")
def update():
    compiled = compile_once(ppo_update)
    return lambda state: compiled(state, PROBLEM, CONFIG)


@pytest.fixture
def start():
    return ppo_init(jax.random.key(0), PROBLEM, uniform_policy(PROBLEM), CONFIG)


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class Stop(Meter):
    """Interrupts after a number of updates, as a user at the keyboard would."""

    def __init__(self, after):
        self.after, self.shown, self.stopped = after, [], False

    def show(self, done):
        self.shown.append(done)
        if done == self.after:
            raise KeyboardInterrupt

    def stop(self):
        self.stopped = True


def test_interrupted_and_resumed_equals_uninterrupted(update, start, tmp_path):
    whole, history = train(update, start, 10)
    manager, meter = CheckpointManager(tmp_path / "run"), Stop(after=7)
    lines = JsonLines(tmp_path / "metrics.jsonl")
    options = {"manager": manager, "save_every": 5, "sinks": (lines,)}
    with pytest.raises(KeyboardInterrupt) as caught:
        train(update, start, 10, meter=meter, **options)
    assert "saved update 7" in caught.value.__notes__[0]
    assert meter.stopped
    assert manager.latest() == 7
    resumed, rest = train(update, start, 10, **options)
    assert_trees_close(resumed, whole)
    assert len(rest) == 3
    records = read_lines(tmp_path / "metrics.jsonl")
    assert [r.pop("step") for r in records] == list(range(1, 11))
    assert records == [
        {name: None if np.isnan(value) else value for name, value in metrics.items()}
        for metrics in history
    ]


def test_a_killed_run_redoes_what_was_not_saved(update, start, tmp_path):
    manager = CheckpointManager(tmp_path / "run")
    lines = JsonLines(tmp_path / "metrics.jsonl")
    train(update, start, 4, manager=manager, sinks=(lines,))
    lines(5, {"loss": 1.0})  # written, then killed before the checkpoint
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 6, "lo')  # and in the middle of a line
    with pytest.warns(UserWarning, match=r"line 6 is not a record"):
        train(update, start, 6, manager=manager, sinks=(lines,))
    records = read_lines(tmp_path / "metrics.jsonl")
    assert [r["step"] for r in records] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("save_every", "save_seconds"),
    [pytest.param(5, 60.0, marks=pytest.mark.slow), (10**6, 0.0)],
)
def test_killed_anywhere_and_run_again_equals_not_killed(
    save_every, save_seconds, tmp_path
):
    """Kill child processes at random lines of the code that trains and saves."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["killed_run"])  # imports JAX once, not per child

    def run(name, kill_at=None):
        arguments = (tmp_path / name, save_every, save_seconds, kill_at)
        child = context.Process(target=killed_run.run, args=arguments)
        child.start()
        child.join()
        return child.exitcode

    def result(name):
        folder = tmp_path / name
        lines = (folder / "metrics.jsonl").read_text()
        return lines, killed_run.restore(folder)

    assert run("whole") == 0
    lines = int((tmp_path / "whole" / "lines.txt").read_text())
    random = np.random.default_rng(save_every % 97)
    moments = random.integers(1, lines, size=3)
    exits = [run("killed", int(moment)) for moment in moments]
    assert exits[0] == -signal.SIGKILL
    assert set(exits) <= {0, -signal.SIGKILL}  # 0: it was done before that line
    assert run("killed") == 0
    metrics, state = result("killed")
    expected_metrics, expected_state = result("whole")
    assert metrics == expected_metrics
    np.testing.assert_array_equal(state, expected_state)


def test_a_finished_run_does_nothing_more(update, start, tmp_path):
    manager = CheckpointManager(tmp_path)
    done, _ = train(update, start, 3, manager=manager)
    again, history = train(update, start, 3, manager=manager)
    assert history == []
    assert_trees_close(again, done)


def test_an_interrupt_while_waiting_saves_a_state_that_fits_its_number(tmp_path):
    """Ctrl-C comes while the loop waits for the metrics of an update under way."""

    class Late(float):
        shape = ()

        def item(self):
            raise KeyboardInterrupt

    def update(count):
        return count + 1, {"loss": Late() if int(count) == 3 else jnp.asarray(0.5)}

    manager = CheckpointManager(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        train(update, jnp.asarray(0), 10, manager=manager)
    restored = manager.restore(jnp.asarray(0))
    assert restored.step == int(restored.tree) == 3


def test_interrupted_after_a_damaged_checkpoint_still_saves(update, start, tmp_path):
    manager = CheckpointManager(tmp_path)
    train(update, start, 4, manager=manager, save_every=2)
    manager.path(4).write_bytes(b"damaged")
    with (
        pytest.warns(UserWarning, match="damaged checkpoint"),
        pytest.raises(KeyboardInterrupt),
    ):
        train(update, start, 10, manager=manager, meter=Stop(after=3))
    assert manager.restore(start, step=3).step == 3


def test_another_runs_metrics_are_not_overwritten(update, start, tmp_path):
    path = tmp_path / "metrics.jsonl"
    train(update, start, 2, sinks=(JsonLines(path),))
    before = path.read_text()
    with pytest.raises(ValueError, match="contains another run"):
        train(update, start, 2, sinks=(JsonLines(path),))
    assert path.read_text() == before


def test_what_cannot_work_is_refused(update, start, tmp_path):
    for updates in (-1, 2.5):
        with pytest.raises(ValueError, match=f"updates is {updates}: give a whole"):
            train(update, start, updates)  # pyright: ignore
    with pytest.raises(ValueError, match="save_every is 0"):
        train(update, start, 2, save_every=0)
    with pytest.raises(ValueError, match="save_seconds is -1"):
        train(update, start, 2, save_seconds=-1)
    manager = CheckpointManager(tmp_path)
    train(update, start, 3, manager=manager)
    with pytest.raises(ValueError, match="at update 3, beyond updates=2"):
        train(update, start, 2, manager=manager)
    with pytest.raises(ValueError, match=r"'losses' is not a scalar: .*\(3,\)"):
        train(lambda s: (s, {"losses": jnp.ones(3)}), start, 1)


def test_metrics_may_be_plain_numbers():
    found = {"loss": 0.5, "episodes": np.int32(3), "best": jnp.float32(2)}
    assert train(lambda s: (s, found), 0, 1)[1] == [found]


def test_a_changed_configuration_does_not_resume_unnoticed(update, start, tmp_path):
    manager = CheckpointManager(tmp_path)
    train(update, start, 2, manager=manager, config=CONFIG)
    train(update, start, 3, manager=manager, config=CONFIG)
    other = dataclasses.replace(CONFIG, learning_rate=0.1)
    with pytest.raises(ValueError, match=r"different configuration \(learning_rate: "):
        train(update, start, 4, manager=manager, config=other)


def test_a_loss_that_is_not_finite_ends_the_run_and_is_not_saved(tmp_path):
    def update(count):
        return count + 1, {"loss": jnp.where(count < 3, 0.5, jnp.nan)}

    manager = CheckpointManager(tmp_path)
    with pytest.raises(FloatingPointError, match="update 4: loss is nan"):
        train(update, jnp.asarray(0), 9, manager=manager, save_every=1)
    assert manager.latest() == 3
