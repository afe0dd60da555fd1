"""Proximal policy optimisation (Schulman et al. 2017), one compiled update at a time.

Collecting, generalised advantage estimation (Schulman et al. 2016), and every epoch
of minibatches are one pure function of the learner's state.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from jaxrig.keys import named_key
from jaxrig.learn.optimizer import improve, make_optimizer, start_optimizer
from jaxrig.learn.protocol import Environment, Policy
from jaxrig.learn.rollout import Runner, Trajectory, rollout, start_runner


@dataclass(frozen=True)
class PPOConfig:
    """Sizes and coefficients of PPO."""

    environments: int = 64
    steps: int = 128
    epochs: int = 4
    minibatches: int = 4
    learning_rate: float = 3e-4
    discount: float = 0.99
    trace_decay: float = 0.95
    clip_ratio: float = 0.2
    entropy_coeff: float = 0.01
    value_coeff: float = 0.5
    max_grad_norm: float = 0.5

    def __post_init__(self) -> None:
        for name in ("environments", "steps", "epochs", "minibatches"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 1")
        if self.environments * self.steps % self.minibatches:
            raise ValueError(
                f"environments * steps = {self.environments * self.steps} does not "
                f"divide into minibatches={self.minibatches}"
            )
        for name in ("discount", "trace_decay"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}={getattr(self, name)} must be in [0, 1]")

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


def advantages(
    reward: Float[Array, "time batch"],
    value: Float[Array, "time batch"],
    next_value: Float[Array, "time batch"],
    done: Bool[Array, "time batch"],
    discount: float,
    trace_decay: float,
) -> Float[Array, "time batch"]:
    """A_t = d_t + (discount * trace_decay) A_{t+1} within an episode, where
    d_t = r_t + discount * V(s_{t+1}) - V(s_t).
    """
    surprise = reward + discount * next_value - value

    def back(following: Array, step: tuple[Array, Array]):
        delta, ends = step
        current = delta + discount * trace_decay * jnp.where(ends, 0.0, following)
        return current, current

    _, result = jax.lax.scan(
        back, jnp.zeros_like(reward[0]), (surprise, done), reverse=True
    )
    return result


def ppo_loss(policy: Policy, batch: _Batch, config: PPOConfig):
    """Clipped policy loss, squared value error and entropy; advantages normalised."""
    now = jax.vmap(policy.evaluate)(batch.observation, batch.action)
    advantage = batch.advantage - batch.advantage.mean()
    advantage = advantage / (batch.advantage.std() + 1e-8)
    log_ratio = now.log_prob - batch.log_prob
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1 - config.clip_ratio, 1 + config.clip_ratio)
    policy_loss = -jnp.minimum(ratio * advantage, clipped * advantage).mean()
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
        "approx_kl": (ratio - 1 - log_ratio).mean(),  # Schulman's low-variance form
        "clip_fraction": (jnp.abs(ratio - 1) > config.clip_ratio).mean(),
    }


def ppo_init(
    key: PRNGKeyArray, environment: Environment, policy: Policy, config: PPOConfig
) -> PPOState:
    """A learner at its start."""
    optimizer = make_optimizer(config.learning_rate, config.max_grad_norm)
    return PPOState(
        policy,
        start_optimizer(optimizer, policy),
        start_runner(named_key(key, "start"), environment, config.environments),
        named_key(key, "updates"),
        jnp.zeros((), jnp.int32),
    )


def ppo_update(
    state: PPOState, environment: Environment, config: PPOConfig
) -> tuple[PPOState, PPOMetrics]:
    """Collect `steps` steps from every environment and learn from them."""
    key = jax.random.fold_in(state.key, state.updates)
    runner, trajectory, episodes = rollout(
        named_key(key, "rollout"), environment, state.policy, state.runner, config.steps
    )
    batch = _flatten(trajectory, config)
    optimizer = make_optimizer(config.learning_rate, config.max_grad_norm)
    policy_arrays, policy_rest = eqx.partition(state.policy, eqx.is_array)

    def learn(carry: tuple[PyTree, PyTree], rows: Int[Array, " n"]):
        arrays, memory = carry
        minibatch = jax.tree.map(lambda x: x[rows], batch)
        policy, memory, metrics, norm = improve(
            optimizer,
            lambda policy: ppo_loss(policy, minibatch, config),
            eqx.combine(arrays, policy_rest),
            memory,
        )
        return (eqx.filter(policy, eqx.is_array), memory), metrics | {"grad_norm": norm}

    def epoch(carry: tuple[PyTree, PyTree], index: Int[Array, ""]):
        shuffle = jax.random.fold_in(named_key(key, "shuffle"), index)
        order = jax.random.permutation(shuffle, config.steps_per_update)
        return jax.lax.scan(learn, carry, order.reshape(config.minibatches, -1))

    (policy_arrays, memory), metrics = jax.lax.scan(
        epoch, (policy_arrays, state.optimizer), jnp.arange(config.epochs)
    )
    policy = eqx.combine(policy_arrays, policy_rest)
    return (
        PPOState(policy, memory, runner, state.key, state.updates + 1),
        PPOMetrics(
            episodes.mean_return,
            episodes.mean_length,
            episodes.count,
            **jax.tree.map(jnp.mean, metrics),
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
        advantage + trajectory.value,
    )
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), steps)
