"""The protocol of environments and policies, and running many of them at once.

Both speak of one environment at a time; the learners map them over batches. Both are
pytrees, so their arrays (task buffers, parameters) are arguments of the compiled
update and not constants inside it.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from jaxrig.keys import batch_keys, named_key
from jaxrig.sharding import AXIS, map_shares


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
        """Return a first state and its observation."""
        ...

    def step(self, key: PRNGKeyArray, state: Any, action: Any) -> Step:
        """Return the state after an action, and what it earned."""
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
    """Trace two steps without running them, and say what breaks the protocol.

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
                f"environment.step returns {name} as {shapes[1]}, but reset returns "
                f"{shapes[0]}: they must be equal"
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


class Runner(eqx.Module):
    """Environments under way: what the next rollout goes on from."""

    state: PyTree
    observation: PyTree
    episode_return: Float[Array, " batch"]
    episode_length: Int[Array, " batch"]


class Trajectory(eqx.Module):
    """Steps of every environment, time first. `next_value` is 0 after termination."""

    observation: PyTree
    action: PyTree
    log_prob: Float[Array, "time batch"]
    value: Float[Array, "time batch"]
    next_value: Float[Array, "time batch"]
    reward: Float[Array, "time batch"]
    done: Bool[Array, "time batch"]


class Episodes(eqx.Module):
    """How many episodes ended, and their mean return and length (NaN for none)."""

    count: Int[Array, ""]
    mean_return: Float[Array, ""]
    mean_length: Float[Array, ""]


def select(mask: Bool[Array, " batch"], chosen: PyTree, other: PyTree) -> PyTree:
    """Choose row by row: `chosen` where the mask is True and `other` elsewhere."""

    def pick(a: Array, b: Array) -> Array:
        return jnp.where(mask.reshape(mask.shape + (1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(pick, chosen, other)


@eqx.filter_jit
def reset_all(
    key: PRNGKeyArray, environment: Environment, count: int
) -> tuple[PyTree, PyTree]:
    """Return states and observations of `count` fresh episodes.

    Compiled, so that every array has a buffer of its own (which can be donated), and
    never weakly typed, so that a state fed back to an update is no new signature.
    """
    fresh = jax.vmap(environment.reset)(batch_keys(key, count))
    return jax.tree.map(strong, fresh)


def strong(x: Any) -> Any:
    """Return the same array, not weakly typed; anything else as it is."""
    return jax.lax.convert_element_type(x, x.dtype) if getattr(x, "weak_type", 0) else x


def start_runner(key: PRNGKeyArray, environment: Environment, count: int) -> Runner:
    """Return fresh episodes in `count` environments."""
    return Runner(
        *reset_all(key, environment, count),
        jnp.zeros(count),
        jnp.zeros(count, dtype=jnp.int32),
    )


class _Record(eqx.Module):
    """One step of every environment, as the scan stacks it."""

    observation: PyTree
    choice: Choice
    reward: Float[Array, " batch"]
    done: Bool[Array, " batch"]
    cut: Bool[Array, " batch"]  # ended by truncation alone
    last_value: Float[Array, " batch"]  # of the last observation, where cut
    total: Float[Array, " batch"]
    length: Int[Array, " batch"]


def _keys(key: PRNGKeyArray, name: str, items: Int[Array, " batch"]) -> Any:
    return jax.vmap(jax.random.fold_in, (None, 0))(named_key(key, name), items)


def _step_all(
    key: PRNGKeyArray,
    environment: Environment,
    policy: Policy,
    runner: Runner,
    items: Int[Array, " batch"],
) -> tuple[Runner, _Record]:
    """Take one step in every environment; ended episodes are replaced.

    `items` are the numbers of the environments, from which their keys are made.
    """
    act, go, reset = (_keys(key, name, items) for name in ("act", "step", "reset"))
    choice = jax.vmap(policy.sample)(act, runner.observation)
    after: Step = jax.vmap(environment.step)(go, runner.state, choice.action)
    reward = after.reward.astype(choice.value.dtype)
    done = after.terminated | after.truncated
    # Only where nothing more could be earned is the value 0: to treat a time limit
    # like that biases the values (Pardo et al. 2018, arXiv:1712.00378).
    cut = after.truncated & ~after.terminated
    # Truncation and endings are rare in most steps: without a whole batch of them the
    # conditions save a forward pass of the network and a reset of every environment.
    last_value = jax.lax.cond(
        cut.any(),
        lambda: jax.vmap(policy.sample)(act, after.observation).value,
        lambda: jnp.zeros_like(choice.value),
    )
    going_on = (after.state, after.observation)
    state, observation = jax.lax.cond(
        done.any(),
        lambda: select(done, jax.vmap(environment.reset)(reset), going_on),
        lambda: going_on,
    )
    total = runner.episode_return + reward.astype(runner.episode_return.dtype)
    length = runner.episode_length + 1
    following = Runner(
        state, observation, jnp.where(done, 0.0, total), jnp.where(done, 0, length)
    )
    record = _Record(
        runner.observation, choice, reward, done, cut, last_value, total, length
    )
    return following, record


def rollout(
    key: PRNGKeyArray,
    environment: Environment,
    policy: Policy,
    runner: Runner,
    steps: int,
    mesh: Mesh | None = None,
) -> tuple[Runner, Trajectory, Episodes]:
    """Take `steps` steps in every environment; a finished episode is replaced at once.

    A truncated episode is credited with the value of its last observation, which the
    replacement would otherwise hide. With a mesh, environments are shared out over its
    devices.
    """

    def collect(whole: Any, share: Any) -> tuple[Runner, tuple[Trajectory, Any, Any]]:
        key, environment, policy = whole
        runner, items = share

        def take_step(runner: Runner, index: Int[Array, ""]):
            now = jax.random.fold_in(key, index)
            return _step_all(now, environment, policy, runner, items)

        runner, record = jax.lax.scan(take_step, runner, jnp.arange(steps))
        draws = _keys(key, "final", items)
        final = jax.vmap(policy.sample)(draws, runner.observation).value
        return runner, (_trajectory(record, final), record.total, record.length)

    items = jnp.arange(runner.episode_return.shape[0])
    runner, (trajectory, totals, lengths) = map_shares(
        collect,
        mesh,
        (key, environment, policy),
        (runner, items),
        (PartitionSpec(AXIS), PartitionSpec(None, AXIS)),
    )
    return runner, trajectory, summarize(trajectory.done, totals, lengths)


def _trajectory(record: _Record, final: Float[Array, " batch"]) -> Trajectory:
    """Return the steps with the values after them, `final` after the last."""
    choice = record.choice
    # Shifted by one step: the value of the next observation was computed by the next
    # step's forward pass, so only the last one needs a pass of its own.
    following = jnp.concatenate([choice.value[1:], final[None]])
    at_end = jnp.where(record.cut, record.last_value, 0.0)
    return Trajectory(
        record.observation,
        choice.action,
        choice.log_prob,
        choice.value,
        jnp.where(record.done, at_end, following),
        record.reward,
        record.done,
    )


def summarize(
    done: Bool[Array, "time batch"],
    totals: Float[Array, "time batch"],
    lengths: Int[Array, "time batch"],
) -> Episodes:
    """Return the means over the episodes that ended."""
    count = done.sum()
    mean = lambda x: x.mean(where=done, dtype=jnp.float32)
    return Episodes(count, mean(totals), mean(lengths))
