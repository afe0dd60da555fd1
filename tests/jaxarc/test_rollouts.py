"""Oracle: the recorded episode runs again; figures agree with each other."""

import math

import pytest

from jaxarc.benchmarks import made_up_tasks, small_environment
from jaxarc.config import DatasetConfig, EnvironmentConfig, JaxArcConfig
from jaxarc.envs.environment import Environment
from jaxarc.recording import run_again
from jaxarc.registration import make
from jaxarc.rollouts import random_rollout
from jaxrig.progress import Meter

pytestmark = pytest.mark.slow  # many programs to compile


@pytest.fixture(scope="module")
def env():
    return make("AGI1-00d62c1b")[0]


@pytest.mark.parametrize("form", ["point", "bbox", "mask"])
def test_the_recording_is_the_episode_that_ran(env, form):
    result = random_rollout(env, form, environments=3, steps=40, seed=1)
    assert result.recording is not None
    frames = run_again(result.recording, result.recording.load_task())
    assert len(frames) - 1 == len(result.recording.rewards) <= 40
    assert result.recording.form == form


def test_figures_of_a_rollout(env):
    seen = []

    class Watch(Meter):
        silent = False

        def show(self, done):
            seen.append(done)

    result = random_rollout(env, "point", environments=8, steps=150, meter=Watch())
    assert seen[-1] == 150
    assert 0 < result.episodes <= 8 * 150
    assert 1 <= result.mean_length <= 100
    assert 0.9 < result.best_similarity <= 1.0
    assert result.steps_per_second == 8 * 150 / result.seconds
    again = random_rollout(env, "point", environments=8, steps=150)
    assert again.mean_return == result.mean_return


def test_tasks_without_ids_leave_no_recording():
    config = JaxArcConfig(dataset=DatasetConfig(max_grid_height=5, max_grid_width=5))
    env = Environment(config, made_up_tasks(3))
    result = random_rollout(env, environments=2, steps=1)
    assert result.recording is None
    if result.episodes == 0:
        assert math.isnan(result.mean_return)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"environments": 0}, "both are at least 1"),
        ({"steps": 0}, "both are at least 1"),
        ({"form": "circle"}, "'circle' are not one of: point, bbox, mask"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        random_rollout(small_environment(), **arguments)


def test_without_resets_each_environment_plays_one_episode():
    rules = EnvironmentConfig(max_episode_steps=4, auto_reset=False)
    sides = DatasetConfig(max_grid_height=5, max_grid_width=5)
    config = JaxArcConfig(environment=rules, dataset=sides)
    env = Environment(config, made_up_tasks(3))
    short = random_rollout(env, environments=6, steps=4)
    longer = random_rollout(env, environments=6, steps=9)
    assert short.episodes == longer.episodes == 6
    assert longer.mean_length <= 4.0
