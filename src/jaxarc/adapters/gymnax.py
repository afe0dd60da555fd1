"""Environments for learners written for gymnax: rejax, PureJaxRL and their like."""

import importlib
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxarc.envs.spaces import Bounded, Discrete, Space
from jaxarc.envs.starts import EnvParams
from jaxarc.wrappers.episodes import AnyEnvironment, AutoReset, refuse_resets

REPORTED = ("operation_id", "similarity", "solved")


class GymnaxParams(eqx.Module):
    """Tasks and rules, under the name that gymnax has for the step limit."""

    params: EnvParams

    @property
    def max_steps_in_episode(self) -> int:
        """The step limit."""
        return self.params.config.environment.max_episode_steps


class GymnaxEnvironment:
    """A wrapped environment with the interface of `gymnax.environments.Environment`.

    As there, a step that ends an episode begins the next one, and returns the first
    observation of that. Observations are float32, since networks take them as they are.
    Learners with discrete actions need `FlattenActionWrapper(PointActionWrapper(env))`
    around the environment. The spaces need the package `gymnax`; steps do not.
    """

    def __init__(self, env: AnyEnvironment):
        refuse_resets(env, "gymnax resets and maps by its own rules")
        self.env = AutoReset(env)

    @property
    def name(self) -> str:
        """The name of the environment."""
        return "jaxarc"

    @property
    def num_actions(self) -> int:
        """How many discrete actions there are."""
        return self.action_space().n

    @property
    def default_params(self) -> GymnaxParams:
        """The tasks and rules that the environment was made with."""
        return GymnaxParams(self.env.params)

    def reset(
        self, key: Any, params: GymnaxParams | None = None
    ) -> tuple[Float[Array, "..."], Any]:
        """Start an episode; return its observation and state."""
        state, step = self.env.reset(key, _inner(params))
        return step.observation.astype(jnp.float32), state

    def step(
        self, key: Any, state: Any, action: Any, params: GymnaxParams | None = None
    ) -> tuple[Float[Array, "..."], Any, Array, Array, dict[str, Any]]:
        """Return observation, state, reward, done and info; the key is not needed."""
        after, step = self.env.step(state, action, _inner(params))
        info: dict[str, Any] = {name: step.extras[name] for name in REPORTED}
        info["discount"] = step.discount
        seen = step.observation.astype(jnp.float32)
        return seen, after, step.reward, step.last(), info

    def action_space(self, params: GymnaxParams | None = None) -> Any:
        """Return the space of actions as one of gymnax."""
        return as_gymnax_space(self.env.action_space(_inner(params)))

    def observation_space(self, params: GymnaxParams | None = None) -> Any:
        """Return the space of observations as one of gymnax."""
        space = self.env.observation_space(_inner(params))
        as_float = Bounded(space.shape, space.low, space.high, jnp.float32)
        return as_gymnax_space(as_float)


def _inner(params: GymnaxParams | None) -> EnvParams | None:
    return None if params is None else params.params


def as_gymnax_space(space: Space) -> Any:
    """Convert a space to one of gymnax's."""
    try:
        spaces = importlib.import_module("gymnax.environments.spaces")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "jaxarc.adapters.gymnax needs gymnax for its spaces: pip install gymnax"
        ) from error
    if isinstance(space, Discrete):
        return spaces.Discrete(space.num_values)
    if isinstance(space, Bounded):
        return spaces.Box(space.low, space.high, space.shape, space.dtype)
    raise TypeError(
        f"gymnax has no space for a {type(space).__name__}: put "
        "FlattenActionWrapper(PointActionWrapper(env)) around the environment"
    )
