"""Environments for Stoa and the Stoix learners built on it.

`StoaEnvironment` is made on first use, since it inherits from a class of the optional
package `stoa`.
"""

import dataclasses
import functools
import importlib
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from jaxarc.envs.environment import Environment, TimeStep
from jaxarc.envs.spaces import Bounded, DictSpace, Discrete, MultiBinary, Space
from jaxarc.registration import make
from jaxarc.wrappers.actions import (
    BboxActionWrapper,
    FlattenActionWrapper,
    PointActionWrapper,
)
from jaxarc.wrappers.episodes import MetricsWrapper
from jaxarc.wrappers.observations import (
    AnswerObservationWrapper,
    ContextualObservationWrapper,
    InputGridObservationWrapper,
)
from jaxrig.machine import missing_extra

ACTION_MODES = ("point", "bbox", "mask")


def __getattr__(name: str) -> Any:
    if name == "StoaEnvironment":
        return environment_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def make_jaxarc_env(config: Any) -> tuple[Any, Any]:
    """Make environments to train and to evaluate with, on the tasks of one scenario.

    Read from a configuration of attributes or of mappings: `env.scenario.name` (as for
    `jaxarc.registration.make`), `env.action.mode` (point, bbox or mask; the first two
    as one number), `env.observation_wrappers` (`answer_grid`, `input_grid`,
    `contextual`; all False unless given), `env.config` and `env.dataset_path`. The one
    to evaluate works on test pairs, and where answers are shown in training its channel
    for them is empty. Both report the figures of the episode.
    """
    scenario = _read(config, "env.scenario.name", None)
    if not scenario:
        raise ValueError("env.scenario.name is not set: name the tasks, as Mini-easy")
    _, params = make(
        scenario,
        _read(config, "env.config", None),
        episode_mode=0,
        dataset_path=_read(config, "env.dataset_path", ""),
    )
    testing = dataclasses.replace(params, episode_mode=1)
    stoa_environment = environment_class()
    return tuple(
        stoa_environment(_wrapped(Environment(params=one), config))
        for one in (params, testing)
    )


def jaxarc_custom_metrics(metrics: dict[str, Any]) -> dict[str, Any]:
    """Add rates and means to metrics of finished episodes that have "solved".

    Of the steps to a solution the mean is over solved episodes, and 0 without any.
    """
    if "solved" not in metrics:
        return metrics
    mean = lambda name: jnp.mean(jnp.asarray(metrics[name]).astype(jnp.float32))
    solved = jnp.asarray(metrics["solved"]).astype(jnp.float32)
    steps = jnp.asarray(metrics["steps_to_solve"]).astype(jnp.float32)
    count = jnp.maximum(jnp.sum(solved), 1.0)
    return metrics | {
        "success_rate": 100.0 * mean("solved"),
        "avg_steps_to_solve": jnp.sum(steps * solved) / count,
        "truncation_rate": 100.0 * mean("was_truncated"),
        "best_similarity_mean": mean("best_similarity"),
        "final_similarity_mean": mean("final_similarity"),
    }


@functools.cache
def environment_class() -> type:
    """Return the class `StoaEnvironment`, which needs the package `stoa`."""
    stoa = _stoa()

    class StoaEnvironment(stoa.Environment):
        """A wrapped environment with the interface of `stoa.Environment`.

        Under `MetricsWrapper`, `extras["episode_metrics"]` is a dictionary that holds
        what Stoa's own `RecordEpisodeMetrics` would put there, and more.
        """

        def __init__(self, env: Any):
            super().__init__()
            self._env = env

        def reset(self, rng_key: Any, env_params: Any = None) -> tuple[Any, Any]:
            """Start an episode."""
            state, step = self._env.reset(rng_key, env_params)
            return state, _as_stoa_step(stoa, step)

        def step(self, state: Any, action: Any, env_params: Any = None) -> Any:
            """Advance by one action."""
            after, step = self._env.step(state, action, env_params)
            return after, _as_stoa_step(stoa, step)

        def observation_space(self, env_params: Any = None) -> Any:
            """Return the space of observations."""
            return as_stoa_space(self._env.observation_space(env_params))

        def action_space(self, env_params: Any = None) -> Any:
            """Return the space of actions."""
            return as_stoa_space(self._env.action_space(env_params))

        def state_space(self, env_params: Any = None) -> Any:
            """Return the space of a state's grids."""
            return as_stoa_space(self._env.state_space(env_params))

        def render(self, state: Any, env_params: Any = None) -> Any:
            """Render a state."""
            return self._env.render(state)

        def close(self) -> None:
            """Close the environment inside."""
            self._env.close()

    StoaEnvironment.__qualname__ = "StoaEnvironment"
    return StoaEnvironment


def as_stoa_space(space: Space) -> Any:
    """Convert a space to one of Stoa's; sets of cells are arrays of zeros and ones."""
    spaces = _stoa("stoa.spaces")
    if isinstance(space, Discrete):
        return spaces.DiscreteSpace(space.num_values, dtype=jnp.int32)
    if isinstance(space, MultiBinary):
        return spaces.MultiDiscreteSpace(jnp.full(space.shape, 2), dtype=jnp.int32)
    if isinstance(space, Bounded):
        return spaces.BoundedArraySpace(space.shape, space.dtype, space.low, space.high)
    if isinstance(space, DictSpace):
        return spaces.DictSpace(
            {name: as_stoa_space(one) for name, one in space.spaces}
        )
    raise TypeError(f"a {type(space).__name__} has no counterpart in Stoa")


def _stoa(module: str = "stoa") -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise missing_extra("jaxarc.adapters.stoa needs stoa-env", "stoa") from error


def _as_stoa_step(stoa: Any, step: TimeStep) -> Any:
    last: Array = step.last()
    extras = {
        name: vars(value) | {"is_terminal_step": last}
        if isinstance(value, eqx.Module)
        else value
        for name, value in step.extras.items()
    }
    kind = step.step_type.astype(jnp.int8)
    return stoa.TimeStep(kind, step.reward, step.discount, step.observation, extras)


def _wrapped(env: Any, config: Any) -> Any:
    mode = _read(config, "env.action.mode", "point")
    if mode not in ACTION_MODES:
        raise ValueError(
            f"env.action.mode is {mode!r}: it is one of {', '.join(ACTION_MODES)}"
        )
    forms = {"point": PointActionWrapper, "bbox": BboxActionWrapper}
    if mode in forms:
        env = FlattenActionWrapper(forms[mode](env))
    channel = lambda name: _read(config, f"env.observation_wrappers.{name}", False)
    if channel("input_grid"):
        env = InputGridObservationWrapper(env)
    if channel("contextual"):
        env = ContextualObservationWrapper(env)
    if channel("answer_grid"):
        hidden = env.params.episode_mode == 1
        env = AnswerObservationWrapper(env, hidden=hidden)
    return MetricsWrapper(env)


def _read(config: Any, path: str, default: Any) -> Any:
    """Return what lies at a dotted path of attributes or keys."""
    for name in path.split("."):
        if isinstance(config, Mapping):
            config = config.get(name)
        else:
            config = getattr(config, name, None)
        if config is None:
            return default
    return config
