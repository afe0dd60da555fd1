"""What a learner asks of an environment and of a policy: two methods each.

Both speak of one environment at a time; the learners map them over batches. Both are
pytrees, so their arrays (task buffers, parameters) are arguments of the compiled
update and not constants inside it.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree


class Step(eqx.Module):
    """What one step of an environment leads to, before any reset."""

    state: PyTree
    observation: PyTree
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]  # the episode is over: nothing more can be earned
    truncated: Bool[Array, ""]  # it was cut short: more could have been earned


@runtime_checkable
class Environment(Protocol):
    """Pure reset and step, of fixed shapes."""

    def reset(self, key: PRNGKeyArray) -> tuple[Any, Any]:
        """A first state and its observation."""
        ...

    def step(self, key: PRNGKeyArray, state: Any, action: Any) -> Step:
        """The state after an action, and what it earned."""
        ...


class Choice(NamedTuple):
    """An action a policy drew, its log probability, and the value of the state."""

    action: PyTree
    log_prob: Float[Array, ""]
    value: Float[Array, ""]


class Evaluation(NamedTuple):
    """What a policy now thinks of an action: log probability, entropy, value."""

    log_prob: Float[Array, ""]
    entropy: Float[Array, ""]
    value: Float[Array, ""]


@runtime_checkable
class Policy(Protocol):
    """Draws actions and evaluates them; GRPO ignores the value, which may be 0."""

    def sample(self, key: PRNGKeyArray, observation: Any) -> Choice:
        """Draw an action."""
        ...

    def evaluate(self, observation: Any, action: Any) -> Evaluation:
        """Evaluate an action that was drawn earlier."""
        ...
