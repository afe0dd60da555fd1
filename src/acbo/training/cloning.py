"""Behavioral cloning: the policy learns to choose as an expert does."""

from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from acbo.environment import Action, Proposer, setting_of
from acbo.policy.encode import CANDIDATES, Outlook
from acbo.policy.environment import EpisodeConfig, ExperimentEnvironment
from acbo.policy.model import Move, PolicyConfig, PolicyNetwork
from acbo.surrogate.predictor import Surrogate
from jaxrig.keys import batch_keys, named_key
from jaxrig.learn.optimizer import improve, make_optimizer, start_optimizer


@dataclass(frozen=True)
class CloningRecipe:
    """How an expert is imitated: where it is asked, and how fast is learned."""

    model: PolicyConfig = field(default_factory=PolicyConfig)
    episodes: EpisodeConfig = field(default_factory=EpisodeConfig)
    batch_size: int = 32
    learning_rate: float = 1e-3
    max_grad_norm: float = 1.0

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError(f"batch_size={self.batch_size} must be at least 1")


class CloningState(eqx.Module):
    """Everything the next update needs."""

    policy: PolicyNetwork
    optimizer: PyTree
    key: PRNGKeyArray
    updates: Int[Array, ""]


class CloningMetrics(eqx.Module):
    """Negative log likelihood of the expert's choices, and how often the variable
    that the policy finds likeliest is the expert's.
    """

    loss: Float[Array, ""]
    agreement: Float[Array, ""]
    grad_norm: Float[Array, ""]


def as_move(action: Action, outlook: Outlook) -> Move:
    """An intervention as the nearest cell of the policy's grid, and the rest."""
    low, high = outlook.low[action.variable], outlook.high[action.variable]
    width = jnp.where(high > low, high - low, 1.0)
    share = (action.value - low) / width * (CANDIDATES - 1)
    index = jnp.clip(jnp.round(share), 0, CANDIDATES - 1)
    cell = action.variable * CANDIDATES + index.astype(action.variable.dtype)
    return Move(cell, share - index, action.variable, action.value)


def start_cloning(
    key: PRNGKeyArray, recipe: CloningRecipe, network: PolicyNetwork | None = None
) -> CloningState:
    """A fresh policy, or one trained before."""
    if network is None:
        network = PolicyNetwork(recipe.model, named_key(key, "network"))
    optimizer = make_optimizer(recipe.learning_rate, recipe.max_grad_norm)
    memory = start_optimizer(optimizer, network)
    return CloningState(network, memory, named_key(key, "updates"), jnp.asarray(0))


def update_cloning(
    state: CloningState, recipe: CloningRecipe, surrogate: Surrogate, expert: Proposer
) -> tuple[CloningState, CloningMetrics]:
    """Ask the expert about fresh histories, and move towards its answers."""
    environment = ExperimentEnvironment(surrogate, recipe.episodes)
    key = jax.random.fold_in(state.key, state.updates)

    def ask(key: PRNGKeyArray) -> tuple[Outlook, Move]:
        start, choose = jax.random.split(key)
        episode, outlook = environment.reset(start)
        setting = setting_of(episode.scm)
        action = expert.propose(choose, episode.history, setting, episode.scm)
        if not isinstance(action, Action):
            raise TypeError(
                f"{type(expert).__qualname__} sets several variables at once, and the "
                "policy one: give an expert that proposes an Action"
            )
        return outlook, as_move(action, outlook)

    outlooks, moves = jax.vmap(ask)(batch_keys(key, recipe.batch_size))

    def loss(policy: Any) -> tuple[Float[Array, ""], Float[Array, "2"]]:
        found = jax.vmap(policy.evaluate)(outlooks, moves)
        chosen = jax.vmap(lambda each: policy(each).variable_logits.argmax())(outlooks)
        value = -found.log_prob.mean()
        return value, jnp.stack([value, (chosen == moves.variable).mean()])

    optimizer = make_optimizer(recipe.learning_rate, recipe.max_grad_norm)
    policy, memory, seen, norm = improve(optimizer, loss, state.policy, state.optimizer)
    following = CloningState(policy, memory, state.key, state.updates + 1)
    return following, CloningMetrics(seen[0], seen[1], norm)
