"""Experience by hand: collect it, and improve surrogate and policy on it.

The three functions of the guide; `grpo_with_jax_surrogate` is the loop around them.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from acbo.acquisition.exploration import (
    ExplorationTrainingConfig,
    exploration_temperature,
)
from acbo.environment import Action
from acbo.policy.environment import Episode, ExperimentEnvironment
from acbo.policy.model import PolicyNetwork
from acbo.surrogate.model import SurrogateNetwork
from acbo.training.codec import BatchArrays
from acbo.training.exploring import Explorer, ExploringEnvironment
from acbo.training.labels import Standing, label_history, standing_of
from acbo.training.policy import PolicyRecipe
from acbo.training.set_reader import SetReader
from acbo.training.steps import TrainStep
from jaxrig.keys import batch_keys, named_key
from jaxrig.learn import GRPOState, GRPOUpdate, grpo_update
from jaxrig.learn.optimizer import make_optimizer, start_optimizer
from jaxrig.learn.rollout import reset_all, strong
from jaxrig.tracing import compile_once


@dataclass(frozen=True)
class ExperienceRecipe:
    """The episodes and their learner, how to explore, and the largest set of causes
    that the surrogate considers.
    """

    policy: PolicyRecipe = field(default_factory=PolicyRecipe)
    exploration: ExplorationTrainingConfig = field(
        default_factory=ExplorationTrainingConfig
    )
    max_parents: int = 3

    def environment(self, network: SurrogateNetwork) -> ExploringEnvironment:
        """Episodes read by a surrogate of these parameters."""
        reader = SetReader(network, self.max_parents)
        inner = ExperimentEnvironment(reader, self.policy.episodes)
        return ExploringEnvironment(inner, self.exploration)


class PolicyParams(eqx.Module):
    """A policy in training: its network, the optimizer's memory, and its recipe."""

    policy: Explorer
    optimizer: PyTree
    key: PRNGKeyArray
    updates: Int[Array, ""]
    recipe: ExperienceRecipe = eqx.field(static=True)

    @property
    def network(self) -> PolicyNetwork:
        """The policy itself, as it is used after training."""
        return self.policy.network


class Trajectories(eqx.Module):
    """Episodes on fresh models, and the state of the learner they start from.

    `data` are the histories at the end, each labeled by the true causes.
    """

    state: GRPOState
    data: BatchArrays
    actions: Action
    rewards: Float[Array, "*batch steps"]
    outcomes: Float[Array, "*batch steps"]
    standing: Standing  # means over the episodes
    recipe: ExperienceRecipe = eqx.field(static=True)


@dataclass
class SurrogateData:
    """What the surrogate learns from next, and where its learning stands; each update
    moves it on.
    """

    params: PyTree
    batch: BatchArrays
    key: PRNGKeyArray
    opt_state: Any = None
    updates: int = 0
    metrics: dict[str, Any] = field(default_factory=dict)

    def add(self, trajectories: Trajectories) -> None:
        """Learn from these histories from now on."""
        self.batch = trajectories.data


def start_policy_params(
    key: PRNGKeyArray, recipe: ExperienceRecipe, network: PolicyNetwork | None = None
) -> PolicyParams:
    """A policy at its start, or a network trained before."""
    if network is None:
        network = PolicyNetwork(recipe.policy.model, named_key(key, "network"))
    heat = jnp.asarray(recipe.exploration.initial_temperature)
    policy, learner = Explorer(network, heat), recipe.policy.learner
    optimizer = make_optimizer(learner.learning_rate, learner.max_grad_norm)
    memory = start_optimizer(optimizer, policy)
    return PolicyParams(
        policy, memory, named_key(key, "updates"), jnp.asarray(0), recipe
    )


def collect_experience(
    policy_params: PolicyParams,
    surrogate_params: PyTree,
    *,
    key: PRNGKeyArray | None = None,
) -> Trajectories:
    """Play one episode on each of the learner's number of fresh random models.

    Without a key the models follow from the policy's own key and its updates.
    """
    if key is None:
        own = named_key(policy_params.key, "experience")
        key = jax.random.fold_in(own, policy_params.updates)
    network = _network(surrogate_params)
    return _compiled_collect(jax.tree.map(strong, policy_params), network, key)


def update_surrogate_jax(jax_step: TrainStep, data: SurrogateData) -> PyTree:
    """One compiled step on the data, which keeps the optimizer's state; returns the
    surrogate's parameters.
    """
    if data.opt_state is None:
        data.opt_state = jax_step.start(data.params)
    key = jax.random.fold_in(data.key, data.updates)
    data.params, data.opt_state, data.metrics = jax_step.run(
        data.params, data.opt_state, data.batch, key
    )
    data.updates += 1
    return data.params


def update_policy_grpo(
    surrogate_params: PyTree, trajectories: Trajectories
) -> PolicyParams:
    """One update by GRPO: a group of episodes from the start of each trajectory."""
    return improve_policy(surrogate_params, trajectories)[0]


def improve_policy(
    surrogate_params: PyTree, trajectories: Trajectories
) -> tuple[PolicyParams, GRPOUpdate]:
    """`update_policy_grpo`, and what the update did."""
    network, state = _network(surrogate_params), trajectories.state
    return _compiled_improve(network, jax.tree.map(strong, state), trajectories.recipe)


def _network(params: PyTree) -> SurrogateNetwork:
    """The network of parameters: as all of its arrays are trained, themselves."""
    if not isinstance(params, SurrogateNetwork):
        raise TypeError(
            f"surrogate_params are of a {type(params).__name__}: experience is read by "
            "a SurrogateNetwork, as create_parent_set_model makes it"
        )
    return jax.tree.map(strong, params)


def _improve(
    network: SurrogateNetwork, state: GRPOState, recipe: ExperienceRecipe
) -> tuple[PolicyParams, GRPOUpdate]:
    environment = recipe.environment(network)
    after, update = grpo_update(state, environment, recipe.policy.learner)
    kept = after.policy, after.optimizer, after.key, after.updates
    return PolicyParams(*kept, recipe), update


def _collect(
    params: PolicyParams, network: SurrogateNetwork, key: PRNGKeyArray
) -> Trajectories:
    recipe, count = params.recipe, params.recipe.policy.learner.states
    environment = recipe.environment(network)
    heat = exploration_temperature(params.updates, recipe.exploration)
    policy = replace(params.policy, temperature=heat)
    start = reset_all(named_key(key, "start"), environment, count)
    keys = batch_keys(named_key(key, "play"), count)

    def play(key: PRNGKeyArray, episode: Episode, outlook: Any) -> Any:
        def go(carry: tuple[Episode, Any], index: Int[Array, ""]) -> Any:
            act, draw = jax.random.split(jax.random.fold_in(key, index))
            choice = policy.sample(act, carry[1])
            after = environment.step(draw, carry[0], choice.action)
            seen = after.state.history
            outcome = seen.values[seen.count - 1, after.state.scm.target]
            following = after.state, after.observation
            return following, (choice.action.action, after.reward, outcome)

        steps = jnp.arange(recipe.policy.episodes.steps)
        (end, _), taken = jax.lax.scan(go, (episode, outlook), steps)
        label = label_history(end, recipe.max_parents)
        return label, taken, standing_of(episode, end, taken[0])

    data, (actions, rewards, outcomes), standing = jax.vmap(play)(keys, *start)
    state = GRPOState(policy, params.optimizer, *start, params.key, params.updates)
    standing = jax.tree.map(jnp.mean, standing)
    return Trajectories(state, data, actions, rewards, outcomes, standing, recipe)


_compiled_collect = compile_once(_collect, max_traces=None)
_compiled_improve = compile_once(_improve, max_traces=None)
