"""Training of surrogate and policy at once: experience, one compiled surrogate step,
one GRPO update, and from time to time an evaluation on held-out problems.
"""

import functools
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from acbo.environment import first_history, run_episode
from acbo.optimum import best_single, outcome_of
from acbo.policy.advisor import PolicyProposer
from acbo.policy.environment import EpisodeConfig
from acbo.policy.model import PolicyConfig, PolicyNetwork
from acbo.random_models import SCMConfig, random_scm
from acbo.surrogate.encode import variable_bucket
from acbo.surrogate.losses import kl_divergence_loss
from acbo.surrogate.predictor import Surrogate
from acbo.training.config import (
    EvaluationConfig,
    SurrogateTrainingConfig,
    TrainingConfig,
)
from acbo.training.curriculum import (
    LEVELS,
    CurriculumLevel,
    CurriculumState,
    episodes_of,
    start_curriculum,
    update_curriculum,
)
from acbo.training.experience import (
    ExperienceRecipe,
    PolicyParams,
    SurrogateData,
    collect_experience,
    improve_policy,
    parent_scores,
    start_policy_params,
    update_surrogate_jax,
)
from acbo.training.parent_set_model import (
    ParentSetModel,
    SetReader,
    create_parent_set_model,
)
from acbo.training.policy import PolicyRecipe
from acbo.training.steps import CompiledStep, create_jax_surrogate_train_step
from jaxrig.checkpoint import CheckpointManager
from jaxrig.compile_guard import compile_once
from jaxrig.keys import named_key, worker_keys
from jaxrig.learn.train import JsonLines, Metrics, Sink, train
from jaxrig.progress import Meter

ROWS = 30  # observational, before the first experiment


def evaluate_held_out(
    key: PRNGKeyArray,
    surrogate: Surrogate,
    network: PolicyNetwork,
    config: EvaluationConfig,
    steps: int,
) -> dict[str, Any]:
    """Return mean F1 of the predicted causes and mean simple regret, over all and by
    size.

    The policy does what it finds likeliest. A regret is the distance of the best
    expected outcome of its experiments from that of the best single intervention.
    """
    sizes = config.sizes
    keys = worker_keys(key, len(sizes), config.n_eval_trajectories)
    bucket = variable_bucket(max(sizes))
    given = surrogate, network, keys, jnp.asarray(sizes, jnp.int32)
    f1, regret = jax.device_get(_compiled_trials(*given, bucket, steps))
    found = {"f1": f1.mean(), "regret": regret.mean()}
    return {**found, **_by_size("f1", sizes, f1), **_by_size("regret", sizes, regret)}


def _by_size(name: str, sizes: Sequence[int], values: np.ndarray) -> dict[str, Any]:
    means = zip(sizes, values.mean(axis=1), strict=True)
    return {f"{name}_d{size}": mean for size, mean in means}


def _trials(
    surrogate: Surrogate,
    network: PolicyNetwork,
    keys: Array,
    sizes: Int[Array, " m"],
    d: int,
    steps: int,
) -> tuple[Float[Array, "m n"], Float[Array, "m n"]]:
    proposer = PolicyProposer(surrogate, network, greedy=True)

    def one(key: PRNGKeyArray, size: Int[Array, ""]) -> tuple[Array, Array]:
        scm = random_scm(named_key(key, "model"), SCMConfig(), size, d)
        room = ROWS + steps
        rows = first_history(named_key(key, "rows"), scm, ROWS, 0, room, True)
        record = run_episode(named_key(key, "play"), scm, proposer, rows, steps)
        seen, noise = record.history, named_key(key, "noise")
        given = seen.values, seen.intervened, seen.row_mask, scm.mask, scm.target
        f1, _ = parent_scores(surrogate.predict(*given)[0], scm)
        best = outcome_of(noise, scm, record.action).min()
        return f1, best - best_single(noise, scm).value

    return jax.vmap(jax.vmap(one, (0, None)))(keys, sizes)


_compiled_trials = compile_once(_trials, max_traces=16)  # one per configuration


logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class TrainedSystem:
    """The policy, the surrogate that reads for it, and the metrics of every step that
    this call ran; `acbo.policy.advisor.Policy(surrogate, policy)` advises with them.
    """

    policy: PolicyNetwork
    surrogate: SetReader
    history: list[Metrics]


class RoundState(eqx.Module):
    """Everything the next round needs."""

    params: PyTree
    opt_state: PyTree
    policy: PolicyParams
    curriculum: CurriculumState
    step: Int[Array, ""]


class _Rounds:
    """One round after another: collect, improve the surrogate, improve the policy."""

    def __init__(
        self,
        config: TrainingConfig,
        step: CompiledStep,
        recipe: ExperienceRecipe,
        levels: Sequence[CurriculumLevel],
    ):
        self._config, self._step, self._recipe = config, step, recipe
        self._levels, self._key = tuple(levels), jax.random.key(config.seed)

    def start(self) -> RoundState:
        """Return the state before the first round."""
        params = self._step.model.init(named_key(self._key, "surrogate"))
        policy = start_policy_params(named_key(self._key, "policy"), self._recipe)
        curriculum = start_curriculum(self._levels)
        memory = self._step.start(params)
        return RoundState(params, memory, policy, curriculum, jnp.asarray(0))

    def __call__(self, state: RoundState) -> tuple[RoundState, dict[str, Any]]:
        """Return the state after one round, and what it did."""
        done, level = int(state.step), self._levels[int(state.curriculum.level)]
        key = jax.random.fold_in(named_key(self._key, "rounds"), done)
        policy = replace(state.policy, recipe=_at_level(self._recipe, level))
        seen = collect_experience(policy, state.params, key=key)
        own = named_key(self._key, "steps")
        data = SurrogateData(state.params, seen.data, own, state.opt_state, done)
        params = update_surrogate_jax(self._step, data)
        metrics = {**data.metrics, **vars(seen.scores)}
        metrics["mean_reward"] = seen.rewards.mean()
        if done >= self._config.warmup_steps:
            policy, update = improve_policy(params, seen)
            metrics |= {f"policy/{name}": x for name, x in vars(update).items()}
        metrics = jax.device_get(metrics)
        curriculum = update_curriculum(
            state.curriculum,
            self._levels,
            f1=float(metrics["f1"]),
            improvement=float(metrics["improvement"]),
            accuracy=float(metrics["accuracy"]),
            mean_reward=float(metrics["mean_reward"]),
        )
        metrics["level"] = curriculum.level + 1
        policy = replace(policy, recipe=self._recipe)
        if (done + 1) % self._config.evaluation.eval_frequency == 0:
            metrics |= self._trial(params, policy.network)
        following = RoundState(
            params, data.opt_state, policy, curriculum, state.step + 1
        )
        return following, metrics

    def _trial(self, params: PyTree, network: PolicyNetwork) -> dict[str, Any]:
        found = evaluate_held_out(
            named_key(self._key, "held out"),
            SetReader(params, self._recipe.max_parents),
            network,
            self._config.evaluation,
            self._recipe.policy.episodes.steps,
        )
        return {f"held_out/{name}": value for name, value in found.items()}


def _at_level(recipe: ExperienceRecipe, level: CurriculumLevel) -> ExperienceRecipe:
    episodes = episodes_of(level, recipe.policy.episodes)
    return replace(recipe, policy=replace(recipe.policy, episodes=episodes))


@functools.lru_cache(maxsize=4)
def _surrogate_step(
    model: ParentSetModel | None, config: SurrogateTrainingConfig
) -> CompiledStep:
    """Return the compiled step of a model; runs of one configuration share it."""
    return create_jax_surrogate_train_step(
        create_parent_set_model(config.get_model_kwargs()) if model is None else model,
        optax.adam(config.learning_rate),
        kl_divergence_loss,
        config,
    )


def grpo_with_jax_surrogate(
    grpo_config: TrainingConfig,
    surrogate_config: SurrogateTrainingConfig | None = None,
    *,
    folder: Path | str | None = None,
    meter: Meter | None = None,
    model: ParentSetModel | None = None,
    policy: PolicyConfig | None = None,
    episodes: EpisodeConfig | None = None,
    levels: Sequence[CurriculumLevel] = LEVELS,
) -> TrainedSystem:
    """Train surrogate and policy together for `total_steps` rounds.

    Each round plays `surrogate_config.batch_size` episodes on fresh models of the
    curriculum's level, makes one compiled surrogate step on their histories and, after
    `warmup_steps` rounds, one GRPO update. The surrogate's settings are those of
    `grpo_config` unless given; its epochs and early stopping are for fixed examples,
    and here every round has fresh ones. With a `folder` the run is saved every
    `save_frequency` rounds, writes metrics.jsonl, and goes on from what it finds.
    """
    settings = grpo_config.surrogate if surrogate_config is None else surrogate_config
    step = _surrogate_step(model, settings)
    plan = replace(episodes or EpisodeConfig(), weights=grpo_config.rewards)
    learner = grpo_config.grpo.learner(settings.batch_size, plan.steps)
    recipe = ExperienceRecipe(
        PolicyRecipe(policy or PolicyConfig(), plan, learner),
        grpo_config.exploration,
        step.model.max_parent_size,
    )
    rounds = _Rounds(grpo_config, step, recipe, levels)
    fixed = {"seed": grpo_config.seed, "warmup_steps": grpo_config.warmup_steps}
    fixed |= {"surrogate": settings, "recipe": recipe, "levels": tuple(levels)}
    sinks: tuple[Sink, ...] = (functools.partial(_log, grpo_config.log_frequency),)
    if folder is not None:
        sinks += (JsonLines(Path(folder) / "metrics.jsonl"),)
    state, history = train(
        rounds,
        rounds.start(),
        grpo_config.total_steps,
        meter=meter,
        sinks=sinks,
        manager=None if folder is None else CheckpointManager(folder),
        save_every=grpo_config.save_frequency,
        config=SimpleNamespace(**fixed),
        label="rounds of experience",
    )
    reader = SetReader(state.params, recipe.max_parents)
    return TrainedSystem(state.policy.network, reader, history)


def _log(every: int, step: int, metrics: Metrics) -> None:
    if step % every == 0:
        logger.info(
            "step %d: loss %.4f, reward %.3f, F1 %.3f, level %d",
            *(step, metrics["total_loss"], metrics["mean_reward"]),
            *(metrics["f1"], metrics["level"]),
        )
