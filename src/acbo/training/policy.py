"""Training of the policy: imitation of an expert first, then GRPO, on the device."""

from dataclasses import dataclass, field

from jaxtyping import PRNGKeyArray

from acbo.policy.environment import EpisodeConfig, ExperimentEnvironment
from acbo.policy.model import PolicyConfig, PolicyNetwork
from acbo.surrogate.predictor import Surrogate
from jaxrig.keys import named_key
from jaxrig.learn import GRPOConfig, GRPOState, GRPOUpdate, grpo_init, grpo_update


@dataclass(frozen=True)
class PolicyRecipe:
    """How the policy is trained: episodes, the network, and the learner."""

    model: PolicyConfig = field(default_factory=PolicyConfig)
    episodes: EpisodeConfig = field(default_factory=EpisodeConfig)
    learner: GRPOConfig = field(
        default_factory=lambda: GRPOConfig(
            states=32, group_size=16, horizon=5, entropy_coeff=0.002
        )
    )


def start_policy(
    key: PRNGKeyArray,
    recipe: PolicyRecipe,
    surrogate: Surrogate,
    network: PolicyNetwork | None = None,
) -> GRPOState:
    """A learner at its start, or with a network trained before."""
    if network is None:
        network = PolicyNetwork(recipe.model, named_key(key, "network"))
    environment = ExperimentEnvironment(surrogate, recipe.episodes)
    return grpo_init(key, environment, network, recipe.learner)


def update_policy(
    state: GRPOState, recipe: PolicyRecipe, surrogate: Surrogate
) -> tuple[GRPOState, GRPOUpdate]:
    """One round of episodes and what they teach."""
    environment = ExperimentEnvironment(surrogate, recipe.episodes)
    return grpo_update(state, environment, recipe.learner)
