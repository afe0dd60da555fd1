"""Many environments at once."""

from typing import Any

import jax

from jaxarc.wrappers.base import Wrapper


class Vectorise(Wrapper):
    """Maps an environment over leading axes of keys, states and actions.

    The tasks are not mapped: however many environments, they are held once. Equal keys
    make equal starts, which is how a group of environments begins alike.
    """

    def reset(self, key: Any, env_params: Any = None, **start: Any) -> Any:
        """A fresh episode for every key; what of a start is given has one for each."""
        one = lambda k, s: self.env.reset(k, env_params, **s)
        return jax.vmap(one)(key, start)

    def step(self, state: Any, action: Any, env_params: Any = None) -> Any:
        """What follows every action."""
        return jax.vmap(lambda s, a: self.env.step(s, a, env_params))(state, action)

    def renew(self, state: Any, done: Any) -> Any:
        """The states, with another start for those that are done."""
        return jax.vmap(self.env.renew)(state, done)

    def observe(self, state: Any) -> Any:
        """What agents see of the states."""
        return jax.vmap(self.env.observe)(state)
