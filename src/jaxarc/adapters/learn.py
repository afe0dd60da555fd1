"""Environments for the learners of `jaxrig.learn`."""

from typing import Any

import equinox as eqx

from jaxarc.wrappers.episodes import AnyEnvironment
from jaxrig.learn import Step


class LearnEnvironment(eqx.Module):
    """A wrapped environment with the protocol of `jaxrig.learn`.

    Learners start other episodes themselves, so the environment has no `AutoReset`; its
    tasks are arrays of this pytree and hence arguments of a compiled update. Steps draw
    nothing at random and leave their key unused.
    """

    env: AnyEnvironment

    def reset(self, key: Any) -> tuple[Any, Any]:
        """Start an episode; return its state and observation."""
        state, step = self.env.reset(key)
        return state, step.observation

    def step(self, key: Any, state: Any, action: Any) -> Step:
        """Advance by one action; return the state and what it earned."""
        after, step = self.env.step(state, action)
        return Step(
            state=after,
            observation=step.observation,
            reward=step.reward,
            terminated=step.terminated(),
            truncated=step.truncated(),
        )
