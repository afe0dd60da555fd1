"""The environment that keeps its state gives what the functions give."""

import jax
import pytest

from arc_states import assert_same, point, small_config, small_task
from jaxarc.config import ConfigValidationError, EnvironmentConfig, JaxArcConfig
from jaxarc.envs.functional import arc_reset, arc_step
from jaxarc.envs.stateful import ArcEnvironment

pytestmark = pytest.mark.slow  # many programs to compile


def test_it_follows_the_functions():
    config, task, key = small_config(), small_task(), jax.random.key(3)
    with ArcEnvironment(config) as environment:
        state, seen = arc_reset(key, config, task)
        assert_same(environment.reset(key, task), (state, seen))
        assert not environment.is_done
        for action in (point(3, 1, 1), point(34)):
            wanted = arc_step(state, action, config)
            found = environment.step(action)
            assert len(found) == 4
            assert_same(found, (*wanted[:3], wanted[4]))
            state = wanted[0]
            assert_same(environment.state, state)
        assert environment.is_done
        environment.reset(key, task, episode_mode=1)
        assert int(environment.state.episode_mode) == 1
    with pytest.raises(RuntimeError, match="call reset first"):
        environment.step(point(0))


def test_nothing_happens_before_a_reset():
    environment = ArcEnvironment(small_config())
    with pytest.raises(RuntimeError, match="call reset first"):
        environment.step(point(0))
    with pytest.raises(RuntimeError, match="call reset first"):
        _ = environment.is_done


def test_a_configuration_that_is_not_valid_is_refused():
    wrong = EnvironmentConfig(max_episode_steps=0)
    with pytest.raises(ConfigValidationError, match="max_episode_steps is 0"):
        ArcEnvironment(JaxArcConfig(environment=wrong))
    lax = EnvironmentConfig(max_episode_steps=0, strict_validation=False)
    ArcEnvironment(JaxArcConfig(environment=lax))
