"""Joint training: rounds of surrogate steps, then of policy updates on what it says."""

from dataclasses import dataclass, field

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from acbo.surrogate.predictor import Surrogate
from acbo.training.policy import PolicyRecipe, start_policy, update_policy
from acbo.training.surrogate import (
    SurrogateRecipe,
    SurrogateState,
    start_surrogate,
    update_surrogate,
)
from jaxrig.keys import named_key
from jaxrig.learn import GRPOState


@dataclass(frozen=True)
class JointRecipe:
    """The two recipes, and how many policy updates follow each surrogate update."""

    surrogate: SurrogateRecipe = field(default_factory=SurrogateRecipe)
    policy: PolicyRecipe = field(default_factory=PolicyRecipe)
    policy_updates: int = 1

    def __post_init__(self) -> None:
        if self.policy_updates < 1:
            raise ValueError(f"policy_updates={self.policy_updates} must be at least 1")


class JointState(eqx.Module):
    """Both learners where they stand."""

    surrogate: SurrogateState
    policy: GRPOState


class JointMetrics(eqx.Module):
    """The surrogate's losses by variable, and what the policy's steps earned."""

    loss: Float[Array, ""]
    parents: Float[Array, ""]
    mean_reward: Float[Array, ""]
    mean_entropy: Float[Array, ""]


def start_joint(key: PRNGKeyArray, recipe: JointRecipe) -> JointState:
    """Both learners at their start."""
    surrogate = start_surrogate(named_key(key, "surrogate"), recipe.surrogate)
    policy = start_policy(
        named_key(key, "policy"), recipe.policy, Surrogate(surrogate.network)
    )
    return JointState(surrogate, policy)


def update_joint(
    state: JointState, recipe: JointRecipe
) -> tuple[JointState, JointMetrics]:
    """One round of both."""
    surrogate, seen = update_surrogate(state.surrogate, recipe.surrogate)
    reader = Surrogate(surrogate.network)
    arrays, rest = eqx.partition(state.policy, eqx.is_array)

    def improve(arrays: GRPOState, _: None):
        policy, update = update_policy(eqx.combine(arrays, rest), recipe.policy, reader)
        return eqx.filter(policy, eqx.is_array), update

    arrays, updates = jax.lax.scan(improve, arrays, None, recipe.policy_updates)
    metrics = JointMetrics(
        seen.loss, seen.parents, updates.mean_reward.mean(), updates.mean_entropy.mean()
    )
    return JointState(surrogate, eqx.combine(arrays, rest)), metrics
