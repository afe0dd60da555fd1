"""What a learner asks of an environment and of a policy: two methods each.

Both speak of one environment at a time; the learners map them over batches. Both are
pytrees, so their arrays (task buffers, parameters) are arguments of the compiled
update and not constants inside it.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
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


def check_protocol(environment: Environment, policy: Policy) -> None:
    """Play two steps on paper and say in words what does not follow the protocol.

    Learners call this first: a value of shape (1,) would broadcast its way through a
    loss and train badly without an error.
    """
    for name, thing, kind in (
        ("environment", environment, Environment),
        ("policy", policy, Policy),
    ):
        if not isinstance(thing, kind):
            raise TypeError(
                f"the {name} is a {type(thing).__name__}, which lacks the methods of "
                f"jaxrig.learn.{kind.__name__}; are environment and policy swapped?"
            )
    eqx.filter_eval_shape(_play, environment, policy)


def _play(environment: Environment, policy: Policy) -> None:
    key = jax.random.key(0)
    first = environment.reset(key)
    if not (isinstance(first, tuple) and len(first) == 2):
        raise TypeError("environment.reset must return (state, observation)")
    choice = policy.sample(key, first[1])
    _check_fields("policy.sample", choice, Choice, log_prob="float", value="float")
    judged = policy.evaluate(first[1], choice.action)
    fields = {"log_prob": "float", "entropy": "float", "value": "float"}
    _check_fields("policy.evaluate", judged, Evaluation, **fields)
    after = environment.step(key, first[0], choice.action)
    flags = {"reward": "float", "terminated": "bool", "truncated": "bool"}
    _check_fields("environment.step", after, Step, **flags)
    for name, before, now in (
        ("state", first[0], after.state),
        ("observation", first[1], after.observation),
    ):
        shapes = [
            jax.tree.map(lambda x: f"{x.dtype}{list(x.shape)}", tree)
            for tree in (before, now)
        ]
        if shapes[0] != shapes[1]:
            raise TypeError(
                f"environment.step gives the {name} as {shapes[1]}, reset as "
                f"{shapes[0]}: they must agree"
            )


def _check_fields(where: str, found: Any, kind: type, **fields: str) -> None:
    if not isinstance(found, kind):
        raise TypeError(
            f"{where} returned a {type(found).__name__}, it must return "
            f"jaxrig.learn.{kind.__name__}"
        )
    for name, wanted in fields.items():
        value = jax.numpy.asarray(getattr(found, name))
        if value.shape or not jax.numpy.issubdtype(value.dtype, _KINDS[wanted]):
            raise TypeError(
                f"{where}: {name} is {value.dtype}{list(value.shape)}, it must be a "
                f"{wanted} scalar"
            )


_KINDS = {"float": jax.numpy.floating, "bool": jax.numpy.bool_}
