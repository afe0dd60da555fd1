"""Training of the policy on the device: by imitation of an expert, by GRPO, and jointly
with the surrogate. The recipes of the shipped surrogate and policy are here too.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from acbo.environment import Action, Proposer, problem_spec
from acbo.policy.features import CANDIDATES, PolicyObservation
from acbo.policy.model import PolicyAction, PolicyConfig, PolicyNetwork
from acbo.policy.rl_environment import EpisodeConfig, ExperimentEnvironment
from acbo.random_models import DataConfig, SCMConfig
from acbo.surrogate.model import SurrogateConfig
from acbo.surrogate.predictor import Surrogate
from acbo.training.surrogate import (
    SurrogateRecipe,
    SurrogateState,
    start_surrogate,
    update_surrogate,
)
from jaxrig.keys import batch_keys, named_key
from jaxrig.learn import GRPOConfig, GRPOState, GRPOUpdate, grpo_init, grpo_update
from jaxrig.learn.optimizer import improve, make_optimizer, start_optimizer
from jaxrig.settings import whole


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
    """Return a learner at its start, or with a network trained before."""
    if network is None:
        network = PolicyNetwork(recipe.model, named_key(key, "network"))
    environment = ExperimentEnvironment(surrogate, recipe.episodes)
    return grpo_init(key, environment, network, recipe.learner)


def update_policy(
    state: GRPOState,
    recipe: PolicyRecipe,
    surrogate: Surrogate,
    mesh: Mesh | None = None,
) -> tuple[GRPOState, GRPOUpdate]:
    """Run one round of episodes and what they teach, over the devices of a mesh."""
    environment = ExperimentEnvironment(surrogate, recipe.episodes)
    return grpo_update(state, environment, recipe.learner, mesh)


@dataclass(frozen=True)
class CloningRecipe:
    """How an expert is imitated: where it is asked, and how fast is learned."""

    model: PolicyConfig = field(default_factory=PolicyConfig)
    episodes: EpisodeConfig = field(default_factory=EpisodeConfig)
    batch_size: int = 32
    learning_rate: float = 1e-3
    max_grad_norm: float = 1.0

    def __post_init__(self) -> None:
        whole()(self.batch_size, "batch_size")


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


def as_policy_action(action: Action, observation: PolicyObservation) -> PolicyAction:
    """Return an intervention as the nearest cell of the policy's grid, and the rest."""
    low, high = observation.low[action.variable], observation.high[action.variable]
    width = jnp.where(high > low, high - low, 1.0)
    share = (action.value - low) / width * (CANDIDATES - 1)
    index = jnp.clip(jnp.round(share), 0, CANDIDATES - 1)
    cell = action.variable * CANDIDATES + index.astype(action.variable.dtype)
    return PolicyAction(cell, share - index, action.variable, action.value)


def start_cloning(
    key: PRNGKeyArray, recipe: CloningRecipe, network: PolicyNetwork | None = None
) -> CloningState:
    """Return a fresh policy, or one trained before."""
    if network is None:
        network = PolicyNetwork(recipe.model, named_key(key, "network"))
    optimizer = make_optimizer(recipe.learning_rate, recipe.max_grad_norm)
    memory = start_optimizer(optimizer, network)
    return CloningState(network, memory, named_key(key, "updates"), jnp.asarray(0))


def update_cloning(
    state: CloningState, recipe: CloningRecipe, surrogate: Surrogate, expert: Proposer
) -> tuple[CloningState, CloningMetrics]:
    """Ask the expert about fresh histories, and fit its answers."""
    environment = ExperimentEnvironment(surrogate, recipe.episodes)
    key = jax.random.fold_in(state.key, state.updates)

    def ask(key: PRNGKeyArray) -> tuple[PolicyObservation, PolicyAction]:
        start, choose = jax.random.split(key)
        episode, observation = environment.reset(start)
        spec = problem_spec(episode.scm)
        action = expert.propose(choose, episode.history, spec, episode.scm)
        if not isinstance(action, Action):
            raise TypeError(
                f"{type(expert).__qualname__} sets several variables at once, and the "
                "policy one: give an expert that proposes an Action"
            )
        return observation, as_policy_action(action, observation)

    observations, actions = jax.vmap(ask)(batch_keys(key, recipe.batch_size))

    def loss(policy: Any) -> tuple[Float[Array, ""], Float[Array, "2"]]:
        found = jax.vmap(policy.evaluate)(observations, actions)
        chosen = jax.vmap(lambda each: policy(each).variable_logits.argmax())(
            observations
        )
        value = -found.log_prob.mean()
        return value, jnp.stack([value, (chosen == actions.variable).mean()])

    optimizer = make_optimizer(recipe.learning_rate, recipe.max_grad_norm)
    policy, memory, seen, norm = improve(optimizer, loss, state.policy, state.optimizer)
    following = CloningState(policy, memory, state.key, state.updates + 1)
    return following, CloningMetrics(seen[0], seen[1], norm)


@dataclass(frozen=True)
class JointRecipe:
    """The two recipes, and how many policy updates follow each surrogate update."""

    surrogate: SurrogateRecipe = field(default_factory=SurrogateRecipe)
    policy: PolicyRecipe = field(default_factory=PolicyRecipe)
    policy_updates: int = 1

    def __post_init__(self) -> None:
        whole()(self.policy_updates, "policy_updates")


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
    """Return both learners at their start."""
    surrogate = start_surrogate(named_key(key, "surrogate"), recipe.surrogate)
    policy = start_policy(
        named_key(key, "policy"), recipe.policy, Surrogate(surrogate.network)
    )
    return JointState(surrogate, policy)


def update_joint(
    state: JointState, recipe: JointRecipe, mesh: Mesh | None = None
) -> tuple[JointState, JointMetrics]:
    """Run one round of both, over the devices of a mesh."""
    surrogate, seen = update_surrogate(state.surrogate, recipe.surrogate, mesh)
    reader = Surrogate(surrogate.network)
    # A scan carries arrays alone; activation functions and sizes stay outside of it.
    arrays, rest = eqx.partition(state.policy, eqx.is_array)

    def improve(arrays: GRPOState, _: None):
        policy = eqx.combine(arrays, rest)
        policy, update = update_policy(policy, recipe.policy, reader, mesh)
        return eqx.filter(policy, eqx.is_array), update

    arrays, updates = jax.lax.scan(improve, arrays, None, recipe.policy_updates)
    metrics = JointMetrics(
        seen.loss, seen.parents, updates.mean_reward.mean(), updates.mean_entropy.mean()
    )
    return JointState(surrogate, eqx.combine(arrays, rest)), metrics


# A name given more than once is drawn as often.
_SPARSE = ("er1", "er2") * 3 + ("scale_free",) * 2
_GRAPHS = ("chain", "fork", *_SPARSE, "collider", "mixed", "two_layer")
_NOISES = ("gaussian", "laplace", "uniform", "heteroscedastic")


def shipped_surrogate() -> SurrogateRecipe:
    """Return the recipe of the included surrogate: linear and nonlinear models, in four
    sizes of data.

    `docs/baselines.md` tells how the steps were taken in several runs.
    """
    graphs = (*_GRAPHS, "random", "star")
    wide = SCMConfig(graphs, ("linear",), ("gaussian",), (0, 3), (0.2, 1), 0.7, 0.15)
    firm = SCMConfig(graphs, ("linear",), ("gaussian",), (0.5, 2), (0.5, 2), 0.6, 0.15)
    bent = SCMConfig(
        graphs,
        ("linear", "tanh", "mlp", "rff"),
        _NOISES,
        (0.3, 2.5),
        (0.2, 2),
        equal_noise=0.5,
        any_target=0.15,
    )
    wavy = SCMConfig(graphs, ("wave",), _NOISES, (0, 1), (0.3, 2), 0.5, 0.15)
    plain = SCMConfig(graphs, any_target=0.1)
    scms = (wide, wide, firm, firm, bent, wavy)
    few = tuple(
        replace(each, families=("er2", *graphs)) for each in (*scms, plain, plain)
    )
    return SurrogateRecipe(
        model=SurrogateConfig(
            dim=64,
            layers=2,
            heads=4,
            key_size=16,
            widening_factor=2,
            dropout=0.0,
            pair_dim=64,
            pair_layers=6,
            compute_dtype="bfloat16",
        ),
        data=(
            DataConfig((wide, firm), 4, 32, (2, 4), (8, 22), (0, 10), exact=True),
            DataConfig(few, 8, 32, (3, 8), (8, 22), (0, 10)),
            DataConfig((*scms, plain), 8, 128, (3, 8), (20, 100), (0, 28)),
            DataConfig(scms, 16, 128, (6, 16), (20, 100), (0, 28)),
        ),
        batches=(128, 512, 192, 96),
        steps=23_000,
        steps_per_update=20,
        learning_rate=1e-3,
        warmup=300,
        set_weight=0.2,
    )


def shipped_policy() -> PolicyRecipe:
    """Return the recipe of the included policy: episodes of twenty experiments on
    models of three to eight variables.
    """
    graphs = ("chain", "fork", *("er1", "er2") * 2, "scale_free", *_GRAPHS[-3:])
    wide = SCMConfig(graphs, weights=(0, 3), noise=(0.3, 1), equal_noise=0.7)
    firm = SCMConfig(graphs, weights=(0.5, 2), noise=(0.5, 1.5), equal_noise=0.6)
    bent = SCMConfig(
        graphs,
        ("quadratic", "tanh", "mlp", "rff"),
        weights=(0.3, 2.5),
        noise=(0.3, 3.0),
        equal_noise=0.5,
    )
    wavy = SCMConfig(
        graphs, ("wave",), weights=(0, 1), noise=(0.5, 4.0), equal_noise=0.5
    )
    return PolicyRecipe(
        episodes=EpisodeConfig(
            scms=(wide, firm, bent, wavy, wavy),
            variables=8,
            sizes=(3, 8),
            observational=(10, 40),
            interventional=(0, 12),
            steps=20,
            draws=16,
        ),
        learner=GRPOConfig(
            states=96,
            group_size=16,
            horizon=20,
            num_iterations=2,
            learning_rate=7e-4,
            entropy_coeff=0.001,
            discount=0.97,
        ),
    )
