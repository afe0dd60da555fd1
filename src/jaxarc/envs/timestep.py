"""What an environment reports after a reset or a step."""

import enum
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class StepType(enum.IntEnum):
    """Where in an episode a time step lies, and how the episode ended."""

    FIRST = 0
    MID = 1
    TERMINATED = 2
    TRUNCATED = 3


class TimeStep(eqx.Module):
    """Observation, reward and discount, with the kind of the step.

    The discount is 0 only where the episode terminated: a truncated one could have gone
    on, so the value of its last state still counts.
    """

    step_type: Int[Array, "*batch"]
    reward: Float[Array, "*batch"]
    discount: Float[Array, "*batch"]
    observation: Any
    extras: dict[str, Any]

    def first(self) -> Bool[Array, "*batch"]:
        """Whether an episode begins here."""
        return self.step_type == StepType.FIRST

    def terminated(self) -> Bool[Array, "*batch"]:
        """Whether the rules ended the episode."""
        return self.step_type == StepType.TERMINATED

    def truncated(self) -> Bool[Array, "*batch"]:
        """Whether a step limit ended the episode."""
        return self.step_type == StepType.TRUNCATED

    def last(self) -> Bool[Array, "*batch"]:
        """Whether the episode ended, either way."""
        return self.step_type >= StepType.TERMINATED

    def done(self) -> Bool[Array, "*batch"]:
        """The same as `last`."""
        return self.last()


def ended_type(
    terminated: Bool[Array, "*batch"], truncated: Bool[Array, "*batch"]
) -> Int[Array, "*batch"]:
    """The kind of a step that is not a first one."""
    running = jnp.where(truncated, StepType.TRUNCATED, StepType.MID)
    return jnp.where(terminated, StepType.TERMINATED, running).astype(jnp.int32)
