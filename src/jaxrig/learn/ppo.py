"""Proximal policy optimization (Schulman et al. 2017), one compiled update at a time.

Collecting, estimating advantages and every epoch of minibatches are one pure function
of the learner's state.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jaxrig.keys import batch_keys, named_key
from jaxrig.learn.optimizer import (
    advantages,
    clipped_surrogate,
    descend,
    make_optimizer,
    standardize,
    start_optimizer,
)
from jaxrig.learn.rollout import (
    Environment,
    Policy,
    Runner,
    Trajectory,
    check_protocol,
    rollout,
    start_runner,
    strong,
)
from jaxrig.settings import Checked, Count, Fraction, NotNegative, Positive
from jaxrig.sharding import AXIS, constrain


@dataclass(frozen=True)
class PPOConfig(Checked):
    """Sizes and coefficients of PPO."""

    environments: Count = 64
    steps: Count = 128
    epochs: Count = 4
    minibatches: Count = 4
    learning_rate: Positive = 3e-4
    discount: Fraction = 0.99
    trace_decay: Fraction = 0.95
    clip_ratio: Positive = 0.2
    entropy_coeff: NotNegative = 0.01
    value_coeff: NotNegative = 0.5
    max_grad_norm: Positive = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        rows, left = divmod(self.steps_per_update, self.minibatches)
        if left or rows < 2:
            raise ValueError(
                f"environments * steps = {self.steps_per_update} cannot be split into "
                f"minibatches={self.minibatches} of at least two rows"
            )

    @property
    def steps_per_update(self) -> int:
        """Environment steps that one update learns from."""
        return self.environments * self.steps


class PPOState(eqx.Module):
    """Everything the next update needs; save it and training resumes exactly."""

    policy: Any  # a Policy
    optimizer: PyTree
    runner: Runner
    key: PRNGKeyArray
    updates: Int[Array, ""]


class PPOMetrics(eqx.Module):
    """What one update did, means over its minibatches."""

    mean_return: Float[Array, ""]  # of episodes that ended; NaN when none did
    mean_length: Float[Array, ""]
    episodes: Int[Array, ""]
    loss: Float[Array, ""]
    policy_loss: Float[Array, ""]
    value_loss: Float[Array, ""]
    entropy: Float[Array, ""]
    approx_kl: Float[Array, ""]
    clip_fraction: Float[Array, ""]
    grad_norm: Float[Array, ""]


class _Batch(eqx.Module):
    """What the loss needs of each step, in any order of steps."""

    observation: PyTree
    action: PyTree
    log_prob: Float[Array, "*n"]
    advantage: Float[Array, "*n"]
    target: Float[Array, "*n"]


def ppo_loss(policy: Policy, batch: _Batch, config: PPOConfig):
    """Return clipped policy loss, squared value error and entropy, weighted."""
    now = jax.vmap(policy.evaluate)(batch.observation, batch.action)
    # Per minibatch, as in the reference implementations (Huang et al. 2022, detail 7).
    advantage = standardize(batch.advantage)
    log_ratio = now.log_prob - batch.log_prob
    ratio = jnp.exp(log_ratio)
    policy_loss = -clipped_surrogate(ratio, advantage, config.clip_ratio).mean()
    value_loss = jnp.square(now.value - batch.target).mean()
    entropy = now.entropy.mean()
    loss = (
        policy_loss + config.value_coeff * value_loss - config.entropy_coeff * entropy
    )
    return loss, {
        "loss": loss,
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": entropy,
        # E[(r - 1) - log r]: never negative, and of lower variance than E[-log r]
        # (Schulman 2020, "Approximating KL divergence").
        "approx_kl": (ratio - 1 - log_ratio).mean(),
        "clip_fraction": (jnp.abs(ratio - 1) > config.clip_ratio).mean(),
    }


def ppo_init(
    key: PRNGKeyArray, environment: Environment, policy: Policy, config: PPOConfig
) -> PPOState:
    """Return a learner at its start."""
    check_protocol(environment, policy)
    optimizer = make_optimizer(config.learning_rate, config.max_grad_norm)
    policy = jax.tree.map(strong, policy)
    return PPOState(
        policy,
        start_optimizer(optimizer, policy),
        start_runner(named_key(key, "start"), environment, config.environments),
        named_key(key, "updates"),
        jnp.zeros((), jnp.int32),
    )


def ppo_update(
    state: PPOState,
    environment: Environment,
    config: PPOConfig,
    mesh: Mesh | None = None,
) -> tuple[PPOState, PPOMetrics]:
    """Collect `steps` steps from every environment and learn from them.

    With a mesh, environments and the rows of a minibatch are shared out over devices.
    """
    key = jax.random.fold_in(state.key, state.updates)
    runner, trajectory, episodes = rollout(
        named_key(key, "rollout"),
        environment,
        state.policy,
        state.runner,
        config.steps,
        mesh,
    )
    # Minibatches mix the steps of all devices, so each gets a copy, once an update.
    batch = constrain(_flatten(trajectory, config), mesh)
    shuffles = batch_keys(named_key(key, "shuffle"), config.epochs)
    order = jax.vmap(jax.random.permutation, (0, None))(
        shuffles, config.steps_per_update
    )
    updates = config.epochs * config.minibatches
    policy, memory, metrics, norms = descend(
        make_optimizer(config.learning_rate, config.max_grad_norm),
        # Rows are gathered inside each step: shuffled copies of all observations,
        # one per epoch, would take `epochs` times the memory of the trajectory.
        lambda policy, rows: ppo_loss(
            policy, jax.tree.map(lambda x: x[rows], batch), config
        ),
        state.policy,
        state.optimizer,
        constrain(order.reshape(updates, -1), mesh, None, AXIS),
        updates,
    )
    # Copied again, or the next call would compile for what XLA chose instead.
    policy, memory, key, done = constrain(
        (policy, memory, state.key, state.updates + 1), mesh
    )
    return (
        PPOState(policy, memory, runner, key, done),
        PPOMetrics(
            episodes.mean_return,
            episodes.mean_length,
            episodes.count,
            **jax.tree.map(jnp.mean, metrics | {"grad_norm": norms}),
        ),
    )


def _flatten(trajectory: Trajectory, config: PPOConfig) -> _Batch:
    advantage = advantages(
        trajectory.reward,
        trajectory.value,
        trajectory.next_value,
        trajectory.done,
        config.discount,
        config.trace_decay,
    )
    steps = _Batch(
        trajectory.observation,
        trajectory.action,
        trajectory.log_prob,
        advantage,
        advantage + trajectory.value,  # the lambda-return, target of the value
    )
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), steps)
