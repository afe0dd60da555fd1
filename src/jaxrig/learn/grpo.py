"""Group-relative policy optimisation: no value function, a baseline per state.

From each state a group of actions (or short episodes) is drawn; an outcome is good
when it is better than the mean of its own group, never of another state's.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from jaxrig.keys import batch_keys, named_key
from jaxrig.learn.optimizer import improve, make_optimizer, start_optimizer
from jaxrig.learn.protocol import Environment, Policy, Step
from jaxrig.learn.rollout import select

KL_ALLOWANCE = 0.01  # drift from the sampling policy that costs nothing
REWARD_SCALE = 10.0
REWARD_SCALINGS = {
    "none": lambda reward: reward,
    "tanh": lambda reward: jnp.tanh(reward / REWARD_SCALE) * REWARD_SCALE,
    "clip": lambda reward: jnp.clip(reward, -REWARD_SCALE, REWARD_SCALE),
}


@dataclass(frozen=True)
class GRPOConfig:
    """Sizes and coefficients of GRPO.

    `horizon` steps are taken from each state: 1 compares single actions. `advance`
    says where the next update starts: at fresh states ("reset"), or where the best
    member of each group ended ("best").
    """

    states: int = 16
    group_size: int = 64
    horizon: int = 1
    num_iterations: int = 4
    learning_rate: float = 3e-4
    clip_ratio: float = 0.2
    entropy_coeff: float = 0.01
    kl_penalty_coeff: float = 0.0
    max_grad_norm: float = 1.0
    scale_rewards: bool = True
    reward_scaling: str = "none"
    discount: float = 1.0
    advance: str = "reset"

    def __post_init__(self) -> None:
        for name, least in {
            "states": 1,
            "group_size": 2,
            "horizon": 1,
            "num_iterations": 1,
        }.items():
            if getattr(self, name) < least:
                raise ValueError(
                    f"{name}={getattr(self, name)} must be at least {least}"
                )
        if self.reward_scaling not in REWARD_SCALINGS:
            raise ValueError(
                f"reward_scaling={self.reward_scaling!r} is not one of: "
                f"{', '.join(REWARD_SCALINGS)}"
            )
        if self.advance not in ("reset", "best"):
            raise ValueError(f"advance={self.advance!r} is not one of: reset, best")


class GRPOState(eqx.Module):
    """Everything the next update needs; save it and training resumes exactly."""

    policy: Any  # a Policy
    optimizer: PyTree
    state: PyTree
    observation: PyTree
    key: PRNGKeyArray
    updates: Int[Array, ""]


class GRPOUpdate(eqx.Module):
    """What one update did; losses of its last iteration."""

    policy_loss: Float[Array, ""]
    entropy_loss: Float[Array, ""]
    kl_penalty: Float[Array, ""]
    total_loss: Float[Array, ""]
    grad_norm: Float[Array, ""]
    group_baseline: Float[Array, ""]
    mean_reward: Float[Array, ""]
    reward_std: Float[Array, ""]
    mean_advantage: Float[Array, ""]
    advantage_std: Float[Array, ""]
    mean_entropy: Float[Array, ""]
    approx_kl: Float[Array, ""]


class Group(eqx.Module):
    """Steps drawn from the same states, members and time after the state axis."""

    observation: PyTree
    action: PyTree
    log_prob: Float[Array, "*groups time"]
    counts: Bool[Array, "*groups time"]  # False after an episode has ended
    reward: Float[Array, "*groups"]


class Losses(NamedTuple):
    """The terms of the loss, and what they were computed from."""

    total: Float[Array, ""]
    policy: Float[Array, ""]
    entropy_loss: Float[Array, ""]
    kl_penalty: Float[Array, ""]
    mean_entropy: Float[Array, ""]
    approx_kl: Float[Array, ""]


def group_advantages(
    reward: Float[Array, "states group"], scale_rewards: bool = True
) -> Float[Array, "states group"]:
    """A = (r - mean) / (std + 1e-8) within each group; population std."""
    # Rewards that are all equal must give 0, but the float mean of equal numbers may be
    # off by a rounding that division by the std of roundings would blow up.
    shifted = reward - reward[..., :1]
    advantage = shifted - shifted.mean(axis=-1, keepdims=True)
    if scale_rewards:
        advantage = advantage / (shifted.std(axis=-1, keepdims=True) + 1e-8)
    return advantage


def grpo_loss(
    log_prob: Float[Array, "*n"],
    old_log_prob: Float[Array, "*n"],
    advantage: Float[Array, "*n"],
    entropy: Float[Array, "*n"],
    config: GRPOConfig,
    counts: Bool[Array, "*n"] | None = None,
) -> Losses:
    """L = -mean(min(rA, clip(r, 1-e, 1+e)A)) - c_H mean(H) + b max(0, KL - 0.01),
    with r = exp(log_prob - old_log_prob) and KL = mean(old_log_prob - log_prob).
    """
    counted = jnp.ones_like(log_prob) if counts is None else counts.astype(jnp.float32)
    mean = lambda x: (x * counted).sum() / counted.sum()
    ratio = jnp.exp(log_prob - old_log_prob)
    clipped = jnp.clip(ratio, 1 - config.clip_ratio, 1 + config.clip_ratio)
    policy_loss = -mean(jnp.minimum(ratio * advantage, clipped * advantage))
    mean_entropy = mean(entropy)
    entropy_loss = -config.entropy_coeff * mean_entropy
    approx_kl = mean(old_log_prob - log_prob)
    penalty = config.kl_penalty_coeff * jnp.maximum(0.0, approx_kl - KL_ALLOWANCE)
    total = policy_loss + entropy_loss + penalty
    return Losses(total, policy_loss, entropy_loss, penalty, mean_entropy, approx_kl)


def grpo_init(
    key: PRNGKeyArray, environment: Environment, policy: Policy, config: GRPOConfig
) -> GRPOState:
    """A learner at its start."""
    optimizer = make_optimizer(config.learning_rate, config.max_grad_norm)
    keys = batch_keys(named_key(key, "start"), config.states)
    state, observation = jax.vmap(environment.reset)(keys)
    return GRPOState(
        policy,
        start_optimizer(optimizer, policy),
        state,
        observation,
        named_key(key, "updates"),
        jnp.zeros((), jnp.int32),
    )


def sample_group(
    key: PRNGKeyArray,
    environment: Environment,
    policy: Policy,
    start: tuple[PyTree, PyTree],
    config: GRPOConfig,
) -> tuple[Group, Step]:
    """A group of episodes of at most `horizon` steps from one start, and their ends."""

    def episode(key: PRNGKeyArray):
        def take_step(carry: tuple[Step, Array], index: Int[Array, ""]):
            before, factor = carry
            act, go = jax.random.split(jax.random.fold_in(key, index))
            choice = policy.sample(act, before.observation)
            after = environment.step(go, before.state, choice.action)
            ended = before.terminated | before.truncated
            after = jax.tree.map(lambda a, b: jnp.where(ended, a, b), before, after)
            reward = jnp.where(ended, 0.0, after.reward) * factor
            record = (
                before.observation,
                choice.action,
                choice.log_prob,
                ~ended,
                reward,
            )
            return (after, factor * config.discount), record

        no = jnp.zeros((), bool)
        first = Step(*start, jnp.zeros(()), no, no)
        (end, _), record = jax.lax.scan(
            take_step, (first, jnp.ones(())), jnp.arange(config.horizon)
        )
        observation, action, log_prob, counts, reward = record
        return Group(observation, action, log_prob, counts, reward.sum()), end

    return jax.vmap(episode)(batch_keys(key, config.group_size))


def grpo_update(
    state: GRPOState, environment: Environment, config: GRPOConfig
) -> tuple[GRPOState, GRPOUpdate]:
    """Draw a group from each state and improve the policy on them."""
    key = jax.random.fold_in(state.key, state.updates)
    keys = batch_keys(named_key(key, "group"), config.states)
    starts = (state.state, state.observation)
    group, ends = jax.vmap(sample_group, (0, None, None, 0, None))(
        keys, environment, state.policy, starts, config
    )
    reward = REWARD_SCALINGS[config.reward_scaling](group.reward)
    advantage = group_advantages(reward, config.scale_rewards)
    policy, optimizer, losses, grad_norm = _improve(state, group, advantage, config)
    next_state, next_observation = _advance(
        named_key(key, "reset"), environment, reward, ends, config
    )
    update = GRPOUpdate(
        losses.policy,
        losses.entropy_loss,
        losses.kl_penalty,
        losses.total,
        grad_norm,
        group_baseline=reward.mean(axis=-1).mean(),
        mean_reward=group.reward.mean(),
        reward_std=group.reward.std(),
        mean_advantage=advantage.mean(),
        advantage_std=advantage.std(),
        mean_entropy=losses.mean_entropy,
        approx_kl=losses.approx_kl,
    )
    return (
        GRPOState(
            policy,
            optimizer,
            next_state,
            next_observation,
            state.key,
            state.updates + 1,
        ),
        update,
    )


def _improve(
    state: GRPOState,
    group: Group,
    advantage: Float[Array, "states group"],
    config: GRPOConfig,
):
    """Reuse the group for `num_iterations` gradient steps."""
    optimizer = make_optimizer(config.learning_rate, config.max_grad_norm)
    policy_arrays, policy_rest = eqx.partition(state.policy, eqx.is_array)
    spread = jnp.broadcast_to(advantage[..., None], group.log_prob.shape)

    def loss(policy: Policy):
        evaluate = jax.vmap(jax.vmap(jax.vmap(policy.evaluate)))
        now = evaluate(group.observation, group.action)
        losses = grpo_loss(
            now.log_prob, group.log_prob, spread, now.entropy, config, group.counts
        )
        return losses.total, losses

    def iterate(carry: tuple[PyTree, PyTree], _: None):
        arrays, memory = carry
        policy = eqx.combine(arrays, policy_rest)
        policy, memory, losses, norm = improve(optimizer, loss, policy, memory)
        return (eqx.filter(policy, eqx.is_array), memory), (losses, norm)

    (policy_arrays, memory), history = jax.lax.scan(
        iterate, (policy_arrays, state.optimizer), None, config.num_iterations
    )
    losses, norm = jax.tree.map(lambda x: x[-1], history)
    return eqx.combine(policy_arrays, policy_rest), memory, losses, norm


def _advance(
    key: PRNGKeyArray,
    environment: Environment,
    reward: Float[Array, "states group"],
    ends: Step,
    config: GRPOConfig,
):
    """Where the next update starts."""
    fresh = jax.vmap(environment.reset)(batch_keys(key, config.states))
    if config.advance == "reset":
        return fresh
    best = reward.argmax(axis=-1)
    end = jax.tree.map(lambda x: jax.vmap(lambda row, i: row[i])(x, best), ends)
    return select(end.terminated | end.truncated, fresh, (end.state, end.observation))
