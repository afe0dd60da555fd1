"""Environments for Stoa and the Stoix learners built on it.

`StoaEnvironment` is made on first use, since it inherits from a class of the optional
package `stoa`.
"""

import functools
import importlib
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from jaxarc.envs.environment import TimeStep
from jaxarc.envs.spaces import Bounded, DictSpace, Discrete, MultiBinary, Space
from jaxrig.machine import missing_extra


def __getattr__(name: str) -> Any:
    if name == "StoaEnvironment":
        return environment_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
