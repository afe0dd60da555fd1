"""Experience of a learning policy: episodes on fresh models, labeled by the truth.

The guide's three functions collect it and improve surrogate and policy on it;
`grpo_with_jax_surrogate` is the loop around them. While it learns, a policy has a
temperature on its choice and earns an exploration bonus.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from acbo.acquisition import (
    ExplorationTrainingConfig,
    exploration_bonus,
    exploration_temperature,
)
from acbo.environment import Action
from acbo.graphs import bucket_parent_sets
from acbo.policy.environment import Episode, ExperimentEnvironment
from acbo.policy.features import PolicyObservation
from acbo.policy.model import PolicyAction, PolicyNetwork, Scores, draw, judge
from acbo.scm import SCM
from acbo.surrogate.model import SurrogateNetwork
from acbo.training.examples import UNKNOWN, BatchArrays, Example
from acbo.training.parent_set_model import SetReader
from acbo.training.policy import PolicyRecipe
from acbo.training.steps import TrainStep
from jaxrig.compile_guard import compile_once
from jaxrig.keys import batch_keys, named_key
from jaxrig.learn import Choice, Evaluation, GRPOState, GRPOUpdate, Step, grpo_update
from jaxrig.learn.optimizer import make_optimizer, start_optimizer
from jaxrig.learn.rollout import reset_all, strong


class Explorer(eqx.Module):
    """A policy whose logits are divided by a temperature that is not learned."""

    network: PolicyNetwork
    temperature: Float[Array, ""]

    def __call__(self, observation: PolicyObservation) -> Scores:
        """Return the scores of every cell, flatter at a higher temperature."""
        scores = self.network(observation)
        heat = jax.lax.stop_gradient(self.temperature)
        return eqx.tree_at(lambda each: each.logits, scores, scores.logits / heat)

    def sample(self, key: PRNGKeyArray, observation: PolicyObservation) -> Choice:
        """Draw an experiment, and how likely it was."""
        return draw(key, self(observation), observation)

    def evaluate(
        self, observation: PolicyObservation, action: PolicyAction
    ) -> Evaluation:
        """Return how likely an experiment is now, and how open the choice."""
        return judge(self(observation), action)


class ExploringEnvironment(eqx.Module):
    """Episodes in which the variable that is set earns its exploration bonus, weighed
    by the `exploration` of the reward's weights.
    """

    inner: ExperimentEnvironment
    exploration: ExplorationTrainingConfig = eqx.field(static=True)

    def reset(self, key: PRNGKeyArray) -> tuple[Episode, PolicyObservation]:
        """Return a fresh model with rows already seen."""
        return self.inner.reset(key)

    def step(self, key: PRNGKeyArray, state: Episode, action: PolicyAction) -> Step:
        """Do the experiment; the bonus is by what was known before it."""
        after = self.inner.step(key, state, action)
        bonus = exploration_bonus(state.summary, self.exploration)[action.variable]
        weight = self.inner.config.weights.exploration
        return replace(after, reward=after.reward + weight * bonus)


CALLED = 0.5  # probability from which a variable counts as a cause


class EpisodeScores(eqx.Module):
    """How an episode went: share of the interventions on true causes, F1 and share of
    right calls of the causes at its end, and how much the best expected outcome
    improved, in deviations of the target.
    """

    parent_rate: Float[Array, "*batch"]
    f1: Float[Array, "*batch"]
    accuracy: Float[Array, "*batch"]
    improvement: Float[Array, "*batch"]


def label_history(episode: Episode, max_parents: int) -> BatchArrays:
    """Return the rows of an episode with the true causes of its target as the expert.

    A true set above `max_parents` is shared out among its largest subsets.
    """
    scm, history = episode.scm, episode.history
    set_mask, held = bucket_parent_sets(scm.mask, scm.target, max_parents)
    causes = scm.adjacency[:, scm.target]
    inside = set_mask & ~(held & ~causes[None]).any(axis=1)
    size = jnp.where(inside, held.sum(axis=1), -1)
    largest = (size == size.max()).astype(jnp.float32)
    same = set_mask & (held == causes[None]).all(axis=1)
    example = Example(
        *(history.values, history.intervened, history.row_mask),
        *(scm.mask, scm.target, held, set_mask),
    )
    return BatchArrays(
        example,
        largest / largest.sum(),
        jnp.asarray(1.0),
        jnp.where(same.any(), same.argmax(), UNKNOWN),
    )


def parent_scores(
    chance: Float[Array, " d"], scm: SCM
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """F1 of the causes called by their probabilities, and the share called right."""
    others = scm.mask & (jnp.arange(scm.size) != scm.target)
    truth, called = scm.adjacency[:, scm.target], (chance > CALLED) & others
    count = lambda flags: flags.sum().astype(jnp.float32)
    total = count(called) + count(truth)
    f1 = 2 * count(called & truth) / jnp.maximum(total, 1.0)
    return f1, count((called == truth) & others) / jnp.maximum(count(others), 1.0)


def episode_scores(start: Episode, end: Episode, actions: Action) -> EpisodeScores:
    """Return how an episode went, from its start, its end and what was done."""
    rate = start.scm.adjacency[actions.variable, start.scm.target].mean()
    gain = start.summary.best_value - end.summary.best_value
    scores = parent_scores(end.summary.parent_probs, start.scm)
    return EpisodeScores(rate, *scores, gain / end.scale)


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
        """Return episodes read by a surrogate with these parameters."""
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
        """Return the policy itself, as it is used after training."""
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
    scores: EpisodeScores  # means over the episodes
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
    """Return a policy at its start, or a network trained before."""
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
    """Take one compiled step on the data, which keeps the optimizer's state; returns
    the surrogate's parameters.
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
    """Take one update by GRPO: a group of episodes from the start of each
    trajectory.
    """
    return improve_policy(surrogate_params, trajectories)[0]


def improve_policy(
    surrogate_params: PyTree, trajectories: Trajectories
) -> tuple[PolicyParams, GRPOUpdate]:
    """Return the result of `update_policy_grpo` and the metrics of the update."""
    network, state = _network(surrogate_params), trajectories.state
    return _compiled_improve(network, jax.tree.map(strong, state), trajectories.recipe)


def _network(params: PyTree) -> SurrogateNetwork:
    """Return the network of parameters: as all of its arrays are trained,
    themselves.
    """
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

    def play(key: PRNGKeyArray, episode: Episode, observation: Any) -> Any:
        def go(carry: tuple[Episode, Any], index: Int[Array, ""]) -> Any:
            act, draw = jax.random.split(jax.random.fold_in(key, index))
            choice = policy.sample(act, carry[1])
            after = environment.step(draw, carry[0], choice.action)
            seen = after.state.history
            outcome = seen.values[seen.count - 1, after.state.scm.target]
            following = after.state, after.observation
            return following, (choice.action.action, after.reward, outcome)

        steps = jnp.arange(recipe.policy.episodes.steps)
        (end, _), taken = jax.lax.scan(go, (episode, observation), steps)
        label = label_history(end, recipe.max_parents)
        return label, taken, episode_scores(episode, end, taken[0])

    data, (actions, rewards, outcomes), scores = jax.vmap(play)(keys, *start)
    state = GRPOState(policy, params.optimizer, *start, params.key, params.updates)
    scores = jax.tree.map(jnp.mean, scores)
    return Trajectories(state, data, actions, rewards, outcomes, scores, recipe)


# One trace per recipe: five levels of the curriculum, for a few sizes of networks.
_compiled_collect = compile_once(_collect, max_traces=32)
_compiled_improve = compile_once(_improve, max_traces=32)
