"""The guide's loop of experience: episodes on fresh models teach the surrogate by their
histories, labeled by the true causes, and the policy by groups from their starts.

`acbo.training.policy.update_joint` trains both in one compiled program.
"""

from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from acbo.graphs import bucket_parent_sets
from acbo.policy.model import PolicyNetwork
from acbo.policy.rl_environment import Episode, ExperimentEnvironment
from acbo.surrogate.losses import kl_divergence_loss
from acbo.surrogate.model import SurrogateNetwork
from acbo.training.examples import BatchArrays, Example
from acbo.training.parent_set_model import (
    SetReader,
    SurrogateTrainingConfig,
    create_parent_set_model,
)
from acbo.training.policy import PolicyRecipe, start_policy, update_policy
from acbo.training.steps import TrainStep, create_jax_surrogate_train_step
from jaxrig.compile_guard import compile_once
from jaxrig.keys import batch_keys, named_key
from jaxrig.learn import GRPOState
from jaxrig.learn.optimizer import FlatTree, restored
from jaxrig.learn.rollout import strong


class PolicyParams(eqx.Module):
    """A policy in training, its recipe, and the largest set of causes considered."""

    state: GRPOState
    recipe: PolicyRecipe = eqx.field(static=True)
    max_parents: int = eqx.field(static=True, default=3)

    @property
    def network(self) -> PolicyNetwork:
        """Return the policy itself, as it is used after training."""
        return self.state.policy


class Trajectories(eqx.Module):
    """Episodes from the starts of a policy's next update, and their histories."""

    policy: PolicyParams
    data: BatchArrays
    rewards: Float[Array, "*batch steps"]
    outcomes: Float[Array, "*batch steps"]


@dataclass
class SurrogateData:
    """What the surrogate learns from next, and where its learning stands."""

    params: PyTree
    batch: BatchArrays
    key: PRNGKeyArray
    opt_state: Any = None
    updates: int = 0
    metrics: dict[str, Any] = field(default_factory=dict)


def start_policy_params(
    key: PRNGKeyArray,
    recipe: PolicyRecipe,
    surrogate_params: PyTree,
    network: PolicyNetwork | None = None,
    max_parents: int = 3,
) -> PolicyParams:
    """Return a policy at its start, or a network trained before."""
    reader = SetReader(_network(surrogate_params), max_parents)
    return PolicyParams(start_policy(key, recipe, reader, network), recipe, max_parents)


def collect_experience(
    policy_params: PolicyParams, surrogate_params: PyTree
) -> Trajectories:
    """Play one episode from each start of the policy's next update."""
    return _compiled_collect(
        jax.tree.map(strong, policy_params), _network(surrogate_params)
    )


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
    """Take one GRPO update: a group of episodes from each trajectory's start."""
    policy = jax.tree.map(strong, trajectories.policy)
    return _compiled_improve(_network(surrogate_params), policy)


def grpo_with_jax_surrogate(
    grpo_config: Any,
    surrogate_config: SurrogateTrainingConfig,
    recipe: PolicyRecipe | None = None,
    seed: int = 0,
) -> tuple[PolicyParams, PyTree]:
    """Train surrogate and policy in turns for `grpo_config.total_steps` rounds of
    experience, and return the parameters of both.

    For long runs, `jaxrig causal train joint` saves, resumes and reports.
    """
    model = create_parent_set_model(surrogate_config.get_model_kwargs())
    optimizer = optax.adam(surrogate_config.learning_rate)
    given = model, optimizer, kl_divergence_loss, surrogate_config
    step, key = create_jax_surrogate_train_step(*given), jax.random.key(seed)
    params = model.init(named_key(key, "surrogate"))
    chosen = (recipe or PolicyRecipe(), params, None, model.max_parent_size)
    policy = start_policy_params(named_key(key, "policy"), *chosen)
    trajectories = collect_experience(policy, params)
    data = SurrogateData(params, trajectories.data, named_key(key, "dropout"))
    for _ in range(grpo_config.total_steps):
        params = update_surrogate_jax(step, data)
        policy = update_policy_grpo(params, trajectories)
        trajectories = collect_experience(policy, params)
        data.batch = trajectories.data
    return policy, params


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
    example = Example(*history.rows, *(scm.mask, scm.target, held, set_mask))
    return BatchArrays(example, largest / largest.sum(), jnp.asarray(1.0))


def _network(params: PyTree) -> SurrogateNetwork | FlatTree:
    """Return the parameters, which are the network: all its arrays are trained."""
    made = jax.eval_shape(restored, params)
    if not isinstance(made, SurrogateNetwork):
        raise TypeError(
            f"surrogate_params are of a {type(made).__name__}: experience is read by "
            "a SurrogateNetwork, as create_parent_set_model makes it"
        )
    return jax.tree.map(strong, params)


def _improve(
    network: SurrogateNetwork | FlatTree, policy: PolicyParams
) -> PolicyParams:
    reader = SetReader(network, policy.max_parents)
    state, _ = update_policy(policy.state, policy.recipe, reader)
    return PolicyParams(state, policy.recipe, policy.max_parents)


def _collect(
    policy: PolicyParams, network: SurrogateNetwork | FlatTree
) -> Trajectories:
    state, recipe = policy.state, policy.recipe
    reader = SetReader(network, policy.max_parents)
    environment = ExperimentEnvironment(reader, recipe.episodes)
    # From the key and count of the learner alone: a run that was stopped plays the
    # same episodes when it goes on.
    key = named_key(jax.random.fold_in(state.key, state.updates), "experience")

    def play(key: PRNGKeyArray, episode: Episode, observation: Any) -> Any:
        def go(carry: tuple[Episode, Any], index: Int[Array, ""]) -> Any:
            act, draw = jax.random.split(jax.random.fold_in(key, index))
            choice = state.policy.sample(act, carry[1])
            after = environment.step(draw, carry[0], choice.action)
            seen = after.state.history
            outcome = seen.values[seen.count - 1, after.state.scm.target]
            return (after.state, after.observation), (after.reward, outcome)

        steps = jnp.arange(recipe.episodes.steps)
        (end, _), taken = jax.lax.scan(go, (episode, observation), steps)
        return label_history(end, policy.max_parents), *taken

    keys = batch_keys(key, recipe.learner.states)
    found = jax.vmap(play)(keys, state.state, state.observation)
    return Trajectories(policy, *found)


# One trace per recipe and size of networks.
_compiled_collect = compile_once(_collect, max_traces=32)
_compiled_improve = compile_once(_improve, max_traces=32)
