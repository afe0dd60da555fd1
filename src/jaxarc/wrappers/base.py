"""What every wrapper does unless it says otherwise: ask the environment inside."""

from typing import Any

import equinox as eqx

from jaxarc.envs.environment import Environment
from jaxarc.envs.spaces import Space
from jaxarc.envs.timestep import TimeStep
from jaxarc.state import ArcEnvState


class Wrapper(eqx.Module):
    """An environment around another one."""

    env: Any

    # Arrays have no hash, and JAX asks for one where a method is handed to it, as in
    # jax.lax.scan(env.step, ...).
    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    @property
    def unwrapped(self) -> Environment:
        """The environment at the heart."""
        return self.env.unwrapped

    @property
    def params(self) -> Any:
        """Tasks and rules of the environment at the heart."""
        return self.env.params

    def reset(self, key: Any, env_params: Any = None, **start: Any) -> Any:
        """A fresh episode."""
        return self.env.reset(key, env_params, **start)

    def step(self, state: Any, action: Any, env_params: Any = None) -> Any:
        """What follows an action."""
        return self.env.step(state, action, env_params)

    def renew(self, state: Any, done: Any, env_params: Any = None) -> Any:
        """The state, or where its episode is done the start of another one."""
        return self.env.renew(state, done, env_params)

    def observe(self, state: Any, env_params: Any = None) -> Any:
        """What an agent sees of a state."""
        return self.env.observe(state, env_params)

    def arc_state(self, state: Any) -> ArcEnvState:
        """The state with all its documented views."""
        return self.env.arc_state(state)

    def observation_space(self, env_params: Any = None) -> Space:
        """What observations may be."""
        return self.env.observation_space(env_params)

    def action_space(self, env_params: Any = None) -> Space:
        """What actions may be."""
        return self.env.action_space(env_params)

    def reward_space(self, env_params: Any = None) -> Space:
        """What rewards may be."""
        return self.env.reward_space(env_params)

    def discount_space(self, env_params: Any = None) -> Space:
        """What discounts may be."""
        return self.env.discount_space(env_params)

    def state_space(self, env_params: Any = None) -> Space:
        """What the grids of a state may be."""
        return self.env.state_space(env_params)

    def render(self, state: Any, mode: str | None = None) -> Any:
        """A picture of a state."""
        return self.env.render(state, mode)

    def close(self) -> None:
        """Close the environment inside."""
        self.env.close()


class KeepingWrapper(Wrapper):
    """A wrapper that keeps something itself: its state holds the inside one's as
    `inner`.
    """

    def observe(self, state: Any, env_params: Any = None) -> Any:
        """What an agent sees of a state."""
        return self.env.observe(state.inner, env_params)

    def render(self, state: Any, mode: str | None = None) -> Any:
        """A picture of a state."""
        return self.env.render(state.inner, mode)

    def arc_state(self, state: Any) -> ArcEnvState:
        """The state with all its documented views."""
        return self.env.arc_state(state.inner)


def has_wrapper(env: Any, *kinds: type[Wrapper]) -> bool:
    """Whether one of these wrappers is somewhere around an environment."""
    while isinstance(env, Wrapper):
        if isinstance(env, kinds):
            return True
        env = env.env
    return False


def replace_step(step: TimeStep, **changes: Any) -> TimeStep:
    """A time step with some of its fields changed."""
    names = ("step_type", "reward", "discount", "observation", "extras")
    values = {name: getattr(step, name) for name in names} | changes
    return TimeStep(**values)
