"""Evaluate how many pairs an agent solves, by a fixed protocol.

Every pair of every task is played, a fresh episode for each attempt. On demonstrations
a pair counts when its grid becomes right. On test pairs only a Submit counts; an agent
that has not submitted by its last step is made to, so that every attempt has an answer.
Pairs whose output is not known are played as well, and count nowhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray, Shaped

from jaxarc.actions import BboxAction, MaskAction, PointAction
from jaxarc.envs.checks import as_arrays
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.recording import Recording, action_numbers, check_repeatable
from jaxarc.tasks.identity import extract_task_id_from_index
from jaxarc.types import JaxArcTask
from jaxarc.wrappers.episodes import AnyEnvironment, refuse_resets
from jaxrig.compile_guard import compile_once
from jaxrig.learn import Choice

ATTEMPTS = 2
FORMS = {PointAction: "point", BboxAction: "bbox", MaskAction: "mask"}


@runtime_checkable
class Player(Protocol):
    """An agent that draws its actions; one that plays greedily also has `best`."""

    def sample(self, key: PRNGKeyArray, observation: Array, /) -> Choice:
        """Draw an action."""
        ...


@dataclass(frozen=True)
class EvaluationResult:
    """What happened on every pair, in every attempt; rates are of `known` pairs."""

    rows: np.ndarray
    pairs: np.ndarray
    known: np.ndarray  # whether the output of a pair is
    solved: np.ndarray  # attempts, pairs
    similarity: np.ndarray
    steps: np.ndarray
    rewards: np.ndarray  # attempts, pairs, step limit
    actions: Any  # with leading axes of that shape

    @property
    def pair_rate(self) -> float:
        """Return the share of pairs solved in one of the attempts."""
        return _mean(self._found[self.known])

    @property
    def first_rate(self) -> float:
        """Return the share of pairs solved in the first attempt."""
        return _mean(self.solved[0][self.known])

    @property
    def task_rate(self) -> float:
        """Return the share of tasks of which every pair was solved."""
        missed = self.rows[self.known & ~self._found]
        return _mean(~np.isin(self._tasks, missed))

    @property
    def _found(self) -> np.ndarray:
        return np.asarray(self.solved.any(axis=0))

    @property
    def _tasks(self) -> np.ndarray:
        return np.unique(self.rows[self.known])

    def figures(self) -> dict[str, float]:
        """Return the figures of a results table."""
        return {
            "pairs": float(self.known.sum()),
            "tasks": float(len(self._tasks)),
            "pair_rate": self.pair_rate,
            "first_attempt_rate": self.first_rate,
            "task_rate": self.task_rate,
            "mean_similarity": _mean(self.similarity.max(axis=0)[self.known]),
            "mean_steps": float(self.steps.mean()),
        }


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else np.nan


def evaluate(
    policy: Player,
    env: AnyEnvironment,
    key: PRNGKeyArray,
    attempts: int = ATTEMPTS,
    greedy: bool = False,
) -> EvaluationResult:
    """Play every pair of every task of an environment.

    With `greedy` the first attempt takes the best actions; the others are drawn.
    """
    if attempts < 1:
        raise ValueError(f"attempts is {attempts}: allow at least one")
    if greedy and not hasattr(policy, "best"):
        raise TypeError(f"a {type(policy).__name__} has no `best`: leave greedy out")
    refuse_resets(env, "an evaluation plays one episode of every pair")
    rows, pairs = every_pair(env)
    if len(rows) == 0:
        raise ValueError("there is no pair to play: the tasks have none in this mode")
    results = []
    for attempt in range(attempts):
        keys = jax.random.split(jax.random.fold_in(key, attempt), len(rows))
        best = greedy and attempt == 0
        results.append(jax.device_get(_play_all(policy, env, keys, rows, pairs, best)))
    stacked = jax.tree.map(lambda *attempts: np.stack(attempts), *results)
    played, params = (np.asarray(rows), np.asarray(pairs)), env.params
    slots = played[1] + params.episode_mode * params.buffer.max_train_pairs
    sizes = np.asarray(params.buffer.sizes)[played[0], slots, 1]
    known = sizes[:, 0] > 0
    return EvaluationResult(*played, known, *stacked)


def record_episode(
    result: EvaluationResult, env: AnyEnvironment, attempt: int, place: int
) -> tuple[Recording, JaxArcTask]:
    """Return one of the episodes, and its task: `run_again` plays it.

    `place` counts the pairs of the result.
    """
    params = env.params
    check_repeatable(params)
    row, steps = int(result.rows[place]), int(result.steps[attempt, place])
    task = jax.tree.map(lambda x: x[row], params.buffer)
    take = lambda step: jax.tree.map(lambda x: x[attempt, place, step], result.actions)
    taken = tuple(action_numbers(take(step)) for step in range(steps))
    recording = Recording(
        task=extract_task_id_from_index(task.task_index) or f"number {row}",
        config=params.config,
        mode=int(params.episode_mode),
        pair=int(result.pairs[place]),
        form=FORMS[type(result.actions)],
        actions=taken,
        rewards=tuple(result.rewards[attempt, place, :steps].tolist()),
    )
    return recording, task


def every_pair(
    env: AnyEnvironment,
) -> tuple[Int[Array, " pairs"], Int[Array, " pairs"]]:
    """Return task row and index of every pair in the environment's mode."""
    params = env.params
    buffer = params.buffer
    counts = (buffer.num_train_pairs, buffer.num_test_pairs)[params.episode_mode]
    wanted = np.arange(buffer.pairs.shape[0])
    if params.subset_indices is not None:
        wanted = np.unique(np.asarray(params.subset_indices))
    found = [(row, pair) for row in wanted for pair in range(int(counts[row]))]
    both = np.asarray(found, np.int32).reshape(-1, 2)
    return jnp.asarray(both[:, 0]), jnp.asarray(both[:, 1])


def summarize(
    results: Mapping[Any, EvaluationResult],
) -> dict[str, tuple[float, float]]:
    """Return mean and standard deviation of every figure over seeds."""
    figures: Sequence[dict[str, float]] = [r.figures() for r in results.values()]
    values = {name: [f[name] for f in figures] for name in figures[0]}
    return {name: (float(np.mean(v)), float(np.std(v))) for name, v in values.items()}


# No bound on traces: each kind of policy, environment and number of pairs has its own.
@compile_once(max_traces=None)
def _play_all(
    policy: Any,
    env: AnyEnvironment,
    keys: Shaped[Array, " pairs *key"],
    rows: Int[Array, " pairs"],
    pairs: Int[Array, " pairs"],
    best: bool,
) -> tuple[Array, ...]:
    """Play an episode on each pair; return what `EvaluationResult` holds."""
    rules = env.params.config
    limit = rules.environment.max_episode_steps

    def play(key: PRNGKeyArray, row: Array, pair: Array) -> tuple[Array, ...]:
        first, act_key = jax.random.split(key)
        state, begun = env.reset(first, task=row, pair=pair)

        # A scan to the step limit that freezes finished episodes: under vmap a while
        # loop would run as long as the longest episode anyway.
        def turn(carry: tuple[Any, ...], now: Array) -> tuple[Any, Any]:
            state, observation, done, solved, alike, steps = carry
            if best:
                action = policy.best(observation)
            else:
                chosen = jax.random.fold_in(act_key, now)
                action = policy.sample(chosen, observation).action
            if env.params.episode_mode:  # of tests the last action is Submit
                last = jnp.where(now == limit - 1, int(Op.SUBMIT), action.operation)
                action = eqx.tree_at(lambda a: a.operation, action, last)
            if isinstance(action, MaskAction):  # kept as the cells that a step selects
                action = as_arrays(action, rules.action.selection_threshold)
            after, step = env.step(state, action)
            # Where pairs may be switched, only the one asked for counts.
            here = env.arc_state(after).episode.current_example_idx == pair
            keep = lambda new, old: jnp.where(done, old, new)
            following = (
                jax.tree.map(keep, after, state),
                keep(step.observation, observation),
                done | step.last(),
                solved | (step.extras["solved"] & here & ~done),
                keep(step.extras["similarity"], alike),
                steps + (~done).astype(jnp.int32),
            )
            return following, (step.reward, action)

        no, alike = jnp.zeros((), bool), begun.extras["similarity"]
        start = (state, begun.observation, no, no, alike, jnp.zeros((), jnp.int32))
        turns = jnp.arange(limit, dtype=jnp.int32)
        ended, (rewards, actions) = jax.lax.scan(turn, start, turns)
        return *ended[3:], rewards, actions

    return jax.vmap(play)(keys, rows, pairs)
