"""How episodes end and begin again: step limits, automatic resets."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxarc.envs.timestep import ended_type
from jaxarc.wrappers.base import KeepingWrapper, Wrapper, replace_step


class Counted(eqx.Module):
    """A state and the steps since its reset."""

    inner: Any
    steps: Int[Array, "*batch"]


class StepLimit(KeepingWrapper):
    """Truncates episodes after `max_steps`, on top of the environment's own limit."""

    max_steps: int = eqx.field(default=100, static=True)

    def __check_init__(self):
        if self.max_steps < 1:
            raise ValueError(f"max_steps is {self.max_steps}: allow at least one step")

    def reset(self, key: Any, env_params: Any = None, **start: Any) -> Any:
        """A fresh episode."""
        state, step = self.env.reset(key, env_params, **start)
        return Counted(state, jnp.zeros((), jnp.int32)), step

    def step(self, state: Counted, action: Any, env_params: Any = None) -> Any:
        """What follows an action, truncated at the limit."""
        inner, step = self.env.step(state.inner, action, env_params)
        steps = state.steps + 1
        truncated = step.truncated() | (steps >= self.max_steps)
        kind = ended_type(step.terminated(), truncated)
        return Counted(inner, steps), replace_step(step, step_type=kind)

    def renew(self, state: Counted, done: Any, env_params: Any = None) -> Counted:
        """The state, or where its episode is done the start of another one."""
        steps = jnp.where(done, 0, state.steps)
        return Counted(self.env.renew(state.inner, done, env_params), steps)


class AutoReset(Wrapper):
    """Starts another episode in the step that ends one.

    That step keeps its kind, reward and discount; its observation is already the first
    of the next episode, and `extras["final_observation"]` the last of the one that
    ended. Starts come from a hash, so that no key is split at every step. With
    `environment.auto_reset` off it begins nothing: a finished episode stays finished.
    """

    def reset(self, key: Any, env_params: Any = None, **start: Any) -> Any:
        """A fresh episode."""
        state, step = self.env.reset(key, env_params, **start)
        extras = step.extras | {"final_observation": step.observation}
        return state, replace_step(step, extras=extras)

    def step(self, state: Any, action: Any, env_params: Any = None) -> Any:
        """What follows an action."""
        after, step = self.env.step(state, action, env_params)
        extras = step.extras | {"final_observation": step.observation}
        params = self.params if env_params is None else env_params
        if not params.config.environment.auto_reset:
            return after, replace_step(step, extras=extras)
        renewed = self.env.renew(after, step.last(), env_params)
        seen = self.env.observe(renewed, env_params)
        return renewed, replace_step(step, observation=seen, extras=extras)
