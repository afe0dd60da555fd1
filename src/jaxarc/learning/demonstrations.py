"""Carry out plans in an environment: answers to evaluate, episodes to imitate."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from jaxarc.actions import BboxAction
from jaxarc.envs.environment import Environment
from jaxarc.envs.spaces import Bounded
from jaxarc.envs.starts import EnvParams
from jaxarc.learning.evaluation import evaluate, every_pair
from jaxarc.learning.planner import KINDS, plan
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.recording import FORMS, Recording, check_repeatable
from jaxarc.tasks.identity import extract_task_id_from_index
from jaxarc.types import measure
from jaxarc.wrappers.episodes import AnyEnvironment
from jaxarc.wrappers.views import SeeingWrapper
from jaxrig.learn import Choice

POINT_KINDS = ("flood",)  # of the kinds of action, those that a point can select for
Place = tuple[int, int]
Answers = Mapping[Place, Sequence[np.ndarray]]


class PlaceObservationWrapper(SeeingWrapper):
    """Shows where an episode is, and not its grid: task row, pair, steps taken."""

    def seen(
        self, inner: Array, state: Any, env_params: EnvParams | None
    ) -> Int[Array, "*batch 3"]:
        """Return task row, pair and number of steps."""
        episode = self.env.arc_state(state).episode
        place = episode.task_row, episode.current_example_idx, episode.step_count
        return jnp.stack(place, axis=-1)

    def observation_space(self, env_params: EnvParams | None = None) -> Bounded:
        """Return three counts."""
        return Bounded((3,), 0, np.iinfo(np.int32).max, jnp.int32)


class PlannedPlayer(eqx.Module):
    """Carries out plans made beforehand, in a `PlaceObservationWrapper`.

    Its best action follows the first plan of a pair, the one it draws the last plan:
    `evaluate(player, env, key, attempts=2, greedy=True)` gives both answers.
    """

    actions: Int[Array, "attempts rows pairs steps 5"]

    def best(self, observation: Int[Array, " 3"]) -> BboxAction:
        """Return the next action of the first plan."""
        return self._next(0, observation)

    def sample(self, key: PRNGKeyArray, observation: Int[Array, " 3"]) -> Choice:
        """Return the next action of the last plan."""
        return Choice(self._next(-1, observation), jnp.zeros(()), jnp.zeros(()))

    def _next(self, attempt: int, observation: Int[Array, " 3"]) -> BboxAction:
        row, pair, step = observation
        # Beyond its end a plan repeats its last action, Submit.
        numbers = self.actions[attempt].at[row, pair, step].get(mode="clip")
        return BboxAction(*numbers)


def make_player(
    env: AnyEnvironment, answers: Answers, kinds: tuple[str, ...] = KINDS
) -> PlannedPlayer:
    """Return a player that draws and submits the answers to each task row and pair.

    Every pair may have several answers, the first for the first attempt; a pair without
    any submits its input as it is.
    """
    attempts = max((len(grids) for grids in answers.values()), default=1)
    inputs = _grids(env)[0]
    plans = {
        (attempt, *place): plan(
            cut_padding(inputs[place]), grids[min(attempt, len(grids) - 1)], kinds=kinds
        )
        for place, grids in answers.items()
        for attempt in range(attempts if len(grids) else 0)
    }
    longest = max((len(actions) for actions in plans.values()), default=1)
    table = np.zeros((attempts, *inputs.shape[:2], longest, 5), np.int32)
    table[..., 0] = Op.SUBMIT  # after the end of a plan, too
    for place, actions in plans.items():
        table[place][: len(actions)] = actions
    return PlannedPlayer(jnp.asarray(table))


def _grids(env: AnyEnvironment) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and outputs of every row and pair, with their padding."""
    tasks = env.params.buffer
    if env.params.episode_mode == 0:
        grids = tasks.input_grids_examples, tasks.output_grids_examples
    else:
        grids = tasks.test_input_grids, tasks.true_test_output_grids
    return np.asarray(grids[0]), np.asarray(grids[1])


def cut_padding(grid: np.ndarray) -> np.ndarray:
    """Return the cells of a grid that are not padding."""
    height, width = measure(grid >= 0)
    return grid[:height, :width]


def demonstrate(
    env: Environment, kinds: tuple[str, ...] = KINDS
) -> tuple[tuple[Recording, ...], np.ndarray]:
    """Solve every pair by its known output; return the episodes, and plan lengths.

    The actions select single cells where `kinds` has only such (`POINT_KINDS`), and
    boxes otherwise. Pairs without a known output have no episode, and neither have
    those whose plan is longer than the step limit; lengths are of all plans, with
    Submit, which an episode on a demonstration ends without.
    """
    params = env.params
    check_repeatable(params)
    places = list(zip(*(x.tolist() for x in every_pair(env)), strict=True))
    outputs = _grids(env)[1]
    known = [place for place in places if np.any(outputs[place] >= 0)]
    if not known:
        raise ValueError("no pair in this mode has a known output to draw")
    player = make_player(
        env, {place: [cut_padding(outputs[place])] for place in known}, kinds
    )
    plans = np.asarray(player.actions[0])
    lengths = [int(np.argmax(plans[place][:, 0] == Op.SUBMIT)) + 1 for place in known]
    watched = PlaceObservationWrapper(env)
    result = evaluate(player, watched, jax.random.key(0), attempts=1, greedy=True)
    form = "point" if set(kinds) <= set(POINT_KINDS) else "bbox"
    recordings = []
    for number, place in enumerate(places):
        steps = int(result.steps[0, number])
        if not result.solved[0, number]:
            continue
        row, pair = place
        task_id = extract_task_id_from_index(params.buffer.task_index[row])
        actions = plans[place][:steps, : FORMS[form]].tolist()
        rewards = tuple(result.rewards[0, number, :steps].tolist())
        start = str(task_id), params.config, params.episode_mode, pair, form
        recordings.append(Recording(*start, tuple(map(tuple, actions)), rewards))
    return tuple(recordings), np.asarray(lengths)
