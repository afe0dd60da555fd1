"""Many environments at once."""

from typing import Any

import jax

from jaxarc.envs.arguments import check_choice
from jaxarc.state import ArcEnvState
from jaxarc.wrappers.base import Wrapper


class Vectorize(Wrapper):
    """Maps an environment over leading axes of keys, states and actions.

    The tasks are not mapped: however many environments, they are held once. Equal keys
    make equal starts, which is how a group of environments begins alike.
    """

    def reset(self, key: Any, env_params: Any = None, **start: Any) -> Any:
        """A fresh episode for every key; what of a start is given has one for each."""
        params = self.params if env_params is None else env_params
        pair, task = start.get("pair"), start.get("task")
        check_choice(params.buffer, params.episode_mode, pair, task)
        one = lambda k, s: self.env.reset(k, env_params, **s)
        return jax.vmap(one)(key, start)

    def step(self, state: Any, action: Any, env_params: Any = None) -> Any:
        """What follows every action."""
        return jax.vmap(lambda s, a: self.env.step(s, a, env_params))(state, action)

    def renew(self, state: Any, done: Any, env_params: Any = None) -> Any:
        """The states, with another start for those that are done."""
        return jax.vmap(lambda s, d: self.env.renew(s, d, env_params))(state, done)

    def observe(self, state: Any, env_params: Any = None) -> Any:
        """What agents see of the states."""
        return jax.vmap(lambda s: self.env.observe(s, env_params))(state)

    def arc_state(self, state: Any) -> ArcEnvState:
        """The states with all their documented views, and the tasks once."""
        states = self.env.arc_state(state)
        shared = jax.tree.map(lambda x: x[None], states.tasks)
        return ArcEnvState(shared, states.episode)

    def render(self, state: Any, mode: str | None = None) -> tuple[Any, ...]:
        """A picture of every state."""
        count = self.arc_state(state).step_count.shape[0]
        rows = [jax.tree.map(lambda x, i=i: x[i], state) for i in range(count)]
        return tuple(self.env.render(row, mode) for row in rows)
