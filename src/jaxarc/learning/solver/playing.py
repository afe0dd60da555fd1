"""Play predicted answers through the environment: draw them, submit, be scored."""

from collections.abc import Sequence

import jax
import numpy as np

from jaxarc.config import ActionConfig, EnvironmentConfig, HistoryConfig, JaxArcConfig
from jaxarc.envs.environment import Environment
from jaxarc.envs.starts import EnvParams
from jaxarc.learning.demonstrations import PlaceObservationWrapper, make_player
from jaxarc.learning.evaluation import ATTEMPTS, EvaluationResult, evaluate
from jaxarc.learning.planner import KINDS
from jaxarc.learning.solver.examples import fit_tasks
from jaxarc.learning.solver.voting import Candidate
from jaxarc.types import JaxArcTask


def play_candidates(
    tasks: JaxArcTask,
    answers: Sequence[Sequence[Sequence[Candidate]]],
    kinds: tuple[str, ...] = KINDS,
) -> EvaluationResult:
    """Submit the two best answers to every test of a stack of tasks.

    `answers` are those of `predict_all`, and `kinds` the kinds of action that `plan`
    may use: none of them paints cell by cell. Answers with holes, which cannot be
    drawn, are passed over; a test that has no other submits its input.
    """
    grids = {
        (row, nth): [c.grid for c in ranked[:ATTEMPTS] if is_grid(c.grid)]
        for row, tests in enumerate(answers)
        for nth, ranked in enumerate(tests)
    }
    shapes = [grid.shape for both in grids.values() for grid in both]
    sizes = np.vstack([np.asarray(tasks.sizes).reshape(-1, 2), *shapes])
    height, width = sizes.max(axis=0).tolist()
    # No plan is longer than one that resizes, paints every cell and submits.
    limit = EnvironmentConfig(max_episode_steps=height * width + 2)
    config = JaxArcConfig(
        environment=limit,
        action=ActionConfig(validate_actions=False),
        history=HistoryConfig(enabled=False),
    )
    fitted = fit_tasks(tasks, height, width)
    env = Environment(params=EnvParams.from_config(config, fitted, episode_mode=1))
    player = make_player(env, grids, kinds)
    watched = PlaceObservationWrapper(env)
    return evaluate(player, watched, jax.random.key(0), ATTEMPTS, greedy=True)


def count_actions(result: EvaluationResult) -> np.ndarray:
    """Return the number of actions of the first attempt that solved each test.

    Tests that were not solved are left out.
    """
    solved = result.solved.any(axis=0)
    first = result.solved.argmax(axis=0)
    return result.steps[first, np.arange(len(first))][solved]


def is_grid(answer: np.ndarray) -> bool:
    """Return whether an answer has a color in every cell."""
    return answer.size > 0 and int(answer.min()) >= 0
