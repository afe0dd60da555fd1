"""Group-relative policy optimization: no value function, a baseline per state.

From each state a group of actions (or short episodes) is drawn; an outcome is good
when it is better than the mean of its own group, never of another state's.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from jaxrig.keys import batch_keys, named_key
from jaxrig.learn.optimizer import (
    clipped_surrogate,
    descend,
    make_optimizer,
    standardize,
    start_optimizer,
)
from jaxrig.learn.rollout import (
    Choice,
    Environment,
    Policy,
    Step,
    check_protocol,
    reset_all,
    select,
    strong,
)
from jaxrig.settings import (
    Checked,
    Count,
    Fraction,
    NotNegative,
    Positive,
    flag,
    one_of,
    whole,
)
from jaxrig.sharding import AXIS, constrain, map_shares

KL_ALLOWANCE = 0.01  # drift from the sampling policy that costs nothing
REWARD_SCALE = 10.0
REWARD_SCALINGS = {
    "none": lambda reward: reward,
    "tanh": lambda reward: jnp.tanh(reward / REWARD_SCALE) * REWARD_SCALE,
    "clip": lambda reward: jnp.clip(reward, -REWARD_SCALE, REWARD_SCALE),
}


@dataclass(frozen=True)
class GRPOConfig(Checked):
    """Sizes and coefficients of GRPO.

    `horizon` steps are taken from each state: 1 compares single actions. `advance`
    says where the next update starts: at fresh states ("reset"), or where the best
    member of each group ended ("best").
    """

    states: Count = 16
    group_size: Annotated[int, whole(at_least=2)] = 64
    horizon: Count = 1
    num_iterations: Count = 4
    learning_rate: Positive = 3e-4
    clip_ratio: Positive = 0.2
    entropy_coeff: NotNegative = 0.01
    kl_penalty_coeff: NotNegative = 0.0
    max_grad_norm: Positive = 1.0
    scale_rewards: Annotated[bool, flag] = True
    reward_scaling: Annotated[str, one_of(*REWARD_SCALINGS)] = "none"
    discount: Fraction = 1.0
    advance: Annotated[str, one_of("reset", "best")] = "reset"

    @property
    def steps_per_update(self) -> int:
        """Environment steps that one update learns from, at most."""
        return self.states * self.group_size * self.horizon


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


class LaterSteps(eqx.Module):
    """Steps after the first; those after an episode's end do not count."""

    observation: PyTree
    drawn: Choice
    counts: Bool[Array, "*n"]


class Group(eqx.Module):
    """What was drawn from each state: first actions, later steps, rewards."""

    first: Choice
    later: LaterSteps | None  # None for a horizon of one step
    reward: Float[Array, "*n"]


def grpo_advantages(
    rewards: Float[Array, "*states group"], scale: bool = True
) -> Float[Array, "*states group"]:
    """Return (r - mean) / (std + 1e-8) along the last axis, one group per state;
    population std. Without `scale`, r - mean.
    """
    return standardize(rewards, axis=-1, scale=scale)


def grpo_terms(
    new_logp: Float[Array, "*n"],
    old_logp: Float[Array, "*n"],
    advantages: Float[Array, "*n"],
    entropy: Float[Array, "*n"],
    *,
    clip: float = 0.2,
    entropy_coeff: float = 0.01,
    kl_coeff: float = 0.0,
    counts: Bool[Array, "*n"] | None = None,
) -> dict[str, Float[Array, ""]]:
    """Return the loss of GRPO with its terms, after Shao et al. 2024
    (arXiv:2402.03300):

    L = -mean(min(rA, clip(r, 1-e, 1+e)A)) - c_H mean(H) + b max(0, KL - 0.01),
    with r = exp(new_logp - old_logp) and KL = mean(old_logp - new_logp), as means over
    what `counts` (default: all).
    """
    counted = jnp.ones(new_logp.shape, bool) if counts is None else counts
    mean = lambda x: x.mean(where=counted)
    # 1 in the first iteration, where the gradient is that of plain policy gradients.
    ratio = jnp.exp(new_logp - old_logp)
    policy_loss = -mean(clipped_surrogate(ratio, advantages, clip))
    mean_entropy = mean(entropy)
    entropy_loss = -entropy_coeff * mean_entropy
    # Unbiased, but of a sample it may be negative (k1 in Schulman 2020, "Approximating
    # KL divergence"): only drift beyond the allowance is penalized.
    approx_kl = mean(old_logp - new_logp)
    penalty = kl_coeff * jnp.maximum(0.0, approx_kl - KL_ALLOWANCE)
    return {
        "total_loss": policy_loss + entropy_loss + penalty,
        "policy_loss": policy_loss,
        "entropy_loss": entropy_loss,
        "kl_penalty": penalty,
        "mean_entropy": mean_entropy,
        "approx_kl": approx_kl,
    }


def grpo_loss(
    new_logp: Float[Array, "*n"],
    old_logp: Float[Array, "*n"],
    advantages: Float[Array, "*n"],
    entropy: Float[Array, "*n"],
    **coefficients: Any,
) -> Float[Array, ""]:
    """Return the loss of GRPO alone; `grpo_terms` names the coefficients."""
    terms = grpo_terms(new_logp, old_logp, advantages, entropy, **coefficients)
    return terms["total_loss"]


def grpo_init(
    key: PRNGKeyArray, environment: Environment, policy: Policy, config: GRPOConfig
) -> GRPOState:
    """Return a learner at its start."""
    check_protocol(environment, policy)
    optimizer = make_optimizer(config.learning_rate, config.max_grad_norm)
    policy = jax.tree.map(strong, policy)
    return GRPOState(
        policy,
        start_optimizer(optimizer, policy),
        *reset_all(named_key(key, "start"), environment, config.states),
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
    """Sample a group of episodes of up to `horizon` steps from one start.

    The first action of every member is drawn from one observation, so the policy
    evaluates that once.
    """
    state, observation = start
    act, go, on = (
        batch_keys(named_key(key, name), config.group_size)
        for name in ("act", "step", "later")
    )
    # The observation is not mapped, so vmap evaluates the network once per state and
    # only the sampling `group_size` times.
    choice = jax.vmap(policy.sample, (0, None))(act, observation)
    after = jax.vmap(environment.step, (0, None, 0))(go, state, choice.action)
    reward = after.reward.astype(choice.log_prob.dtype)
    if config.horizon == 1:
        return Group(choice, None, reward), after
    later, earned, end = jax.vmap(_continue_episode, (0, None, None, 0, None, 0, None))(
        on, environment, policy, after, observation, choice, config
    )
    return Group(choice, later, reward + earned.astype(reward.dtype)), end


def _continue_episode(
    key: PRNGKeyArray,
    environment: Environment,
    policy: Policy,
    after: Step,
    start_observation: PyTree,
    first: Choice,
    config: GRPOConfig,
) -> tuple[LaterSteps, Float[Array, ""], Step]:
    """Return steps 2 to `horizon` of a member, their rewards, and the end."""

    def take_step(before: Step, index: Int[Array, ""]):
        act, go = jax.random.split(jax.random.fold_in(key, index))
        choice = policy.sample(act, before.observation)
        after = environment.step(go, before.state, choice.action)
        ended = before.terminated | before.truncated
        keep = lambda a, b: jax.tree.map(lambda x, y: jnp.where(ended, x, y), a, b)
        # A policy may be undefined at an end (nothing left to choose), and a gradient
        # through it NaN, so ended steps repeat the first step and do not count.
        record = LaterSteps(
            keep(start_observation, before.observation),
            keep(first, choice),
            ~ended,
        )
        return keep(before, after), (record, jnp.where(ended, 0.0, after.reward))

    end, (later, rewards) = jax.lax.scan(
        take_step, after, jnp.arange(config.horizon - 1)
    )
    # In float64 on the host: a high power of the discount loses digits in float32.
    worth = config.discount ** np.arange(1, config.horizon)
    return later, (rewards * jnp.asarray(worth, rewards.dtype)).sum(), end


def grpo_update(
    state: GRPOState,
    environment: Environment,
    config: GRPOConfig,
    mesh: Mesh | None = None,
) -> tuple[GRPOState, GRPOUpdate]:
    """Draw a group from each state and improve the policy on them.

    With a mesh, states are shared out over its devices.
    """
    key = jax.random.fold_in(state.key, state.updates)

    def sample(whole: Any, share: Any) -> tuple[Group, Step]:
        environment, policy = whole
        keys, starts = share
        each = jax.vmap(sample_group, (0, None, None, 0, None))
        return each(keys, environment, policy, starts, config)

    keys = batch_keys(named_key(key, "group"), config.states)
    starts = (state.state, state.observation)
    group, ends = map_shares(sample, mesh, (environment, state.policy), (keys, starts))
    reward = group.reward
    scaled = REWARD_SCALINGS[config.reward_scaling](reward)
    advantage = grpo_advantages(scaled, config.scale_rewards)
    policy, optimizer, losses, norms = descend(
        make_optimizer(config.learning_rate, config.max_grad_norm),
        lambda policy, _: _loss(policy, state.observation, group, advantage, config),
        state.policy,
        state.optimizer,
        None,
        config.num_iterations,
    )
    last = jax.tree.map(lambda x: x[-1], losses)
    update = GRPOUpdate(
        **last,
        grad_norm=norms[-1],
        group_baseline=scaled.mean(axis=-1).mean(),
        mean_reward=reward.mean(),
        reward_std=reward.std(),
        mean_advantage=advantage.mean(),
        advantage_std=advantage.std(),
    )
    following = _advance(named_key(key, "reset"), environment, reward, ends, config)
    # Laid out as they came, or the next call would compile for what XLA chose.
    policy, optimizer, key, done = constrain(
        (policy, optimizer, state.key, state.updates + 1), mesh
    )
    start, seen = constrain(following, mesh, AXIS)
    after = GRPOState(policy, optimizer, start, seen, key, done)
    return after, update


def _loss(
    policy: Policy,
    observation: PyTree,
    group: Group,
    advantage: Float[Array, "states group"],
    config: GRPOConfig,
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """Return the loss over all samples; first steps share an observation."""
    of_state = jax.vmap(policy.evaluate, (None, 0))
    now = jax.vmap(of_state)(observation, group.first.action)
    new, old, entropy = now.log_prob, group.first.log_prob, now.entropy
    counts = jnp.ones_like(advantage, bool)
    if group.later is not None:
        later, drawn = group.later, group.later.drawn
        evaluate = jax.vmap(jax.vmap(jax.vmap(policy.evaluate)))
        then = evaluate(later.observation, drawn.action)
        join = lambda first, rest: jnp.concatenate([first[..., None], rest], axis=-1)
        new, old = join(new, then.log_prob), join(old, drawn.log_prob)
        entropy, counts = join(entropy, then.entropy), join(counts, later.counts)
        advantage = jnp.broadcast_to(advantage[..., None], new.shape)
    losses = grpo_terms(
        *(new, old, advantage, entropy),
        clip=config.clip_ratio,
        entropy_coeff=config.entropy_coeff,
        kl_coeff=config.kl_penalty_coeff,
        counts=counts,
    )
    return losses["total_loss"], losses


def _advance(
    key: PRNGKeyArray,
    environment: Environment,
    reward: Float[Array, "states group"],
    ends: Step,
    config: GRPOConfig,
) -> tuple[PyTree, PyTree]:
    """Return where the next update starts."""
    fresh = reset_all(key, environment, config.states)
    if config.advance == "reset":
        return fresh
    best = reward.argmax(axis=-1)
    end = jax.tree.map(lambda x: jax.vmap(lambda row, i: row[i])(x, best), ends)
    return select(end.terminated | end.truncated, fresh, (end.state, end.observation))
