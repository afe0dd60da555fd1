"""An episode played step by step, with a way back."""

import jax
import numpy as np

from jaxarc.actions import create_bbox_action
from jaxarc.config import (
    ActionConfig,
    ArcEpisodeConfig,
    DatasetConfig,
    EnvironmentConfig,
    HistoryConfig,
    JaxArcConfig,
)
from jaxarc.envs.functional import arc_reset, arc_step
from jaxarc.ops.names import ARCLEOperationType as Op
from jaxarc.recording import Recording, frame_of
from jaxarc.state import ArcEnvState
from jaxarc.types import JaxArcTask
from jaxarc.utils.visualization.episodes import EpisodeFrame

Box = tuple[int, int, int, int]
STEPS = 1000  # patience of a person


def player_config(dataset: DatasetConfig, steps: int = STEPS) -> JaxArcConfig:
    """Rules for a person: every pair may be visited, and solving one ends nothing."""
    return JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=steps),
        dataset=dataset,
        action=ActionConfig(selection_format="bbox"),
        history=HistoryConfig(enabled=False),
        episode=ArcEpisodeConfig(
            demo_selection_strategy="sequential",
            require_all_demos_solved=True,
            allow_test_switching=True,
            max_pairs_per_episode=100,
        ),
    )


class TaskPlayer:
    """One episode on one task; every step can be taken back."""

    def __init__(
        self,
        task: JaxArcTask,
        task_id: str,
        config: JaxArcConfig,
        mode: int = 0,
        pair: int = 0,
    ):
        self.task, self.task_id, self.config = task, task_id, config
        self.mode, self.pair = mode, pair
        state, _ = arc_reset(jax.random.key(0), config, task, mode, pair)
        self._states = [state]
        self._actions: list[tuple[int, ...]] = []
        self._rewards: list[float] = []
        self._frames = [frame_of(state)]

    @property
    def state(self) -> ArcEnvState:
        """Where the episode stands."""
        return self._states[-1]

    @property
    def frame(self) -> EpisodeFrame:
        """What the last step made."""
        return self._frames[-1]

    @property
    def frames(self) -> list[EpisodeFrame]:
        """Every step so far, the reset first."""
        return list(self._frames)

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of the working grid."""
        rows, columns = self.frame.grid.shape
        return rows, columns

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return len(self._actions)

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return bool(self.state.episode_done)

    @property
    def solved(self) -> np.ndarray:
        """Which pairs of the mode are solved."""
        state = self.state
        if self.mode:
            count = int(self.task.num_test_pairs)
            return np.asarray(state.test_completion_status)[:count]
        count = int(self.task.num_train_pairs)
        return np.asarray(state.demo_completion_status)[:count]

    @property
    def current_pair(self) -> int:
        """The pair being worked on, from 0."""
        return int(self.state.current_example_idx)

    def step(self, operation: int, box: Box | None = None) -> EpisodeFrame:
        """Apply an operation to the cells between two corners, by default to all.

        A paste at one cell may reach everything right of it and below. ValueError, and
        nothing changes, for cells outside the grid and after the end.
        """
        if self.done:
            raise ValueError("the episode is over: take a step back with undo, or quit")
        box = self._reach(operation, box)
        action = create_bbox_action(operation, *box)
        state, _, reward, _, _ = arc_step(self.state, action, self.config)
        self._states.append(state)
        self._actions.append((operation, *box))
        self._rewards.append(float(reward))
        self._frames.append(frame_of(state, operation, float(reward)))
        return self.frame

    def _reach(self, operation: int, box: Box | None) -> Box:
        """The cells an operation gets, checked."""
        rows, columns = self.size
        if box is None:
            return 0, 0, rows - 1, columns - 1
        room = self.task.get_grid_shape() if operation == Op.RESIZE else self.size
        _check_box(box, room)
        if operation == Op.PASTE and box[:2] == box[2:]:
            return box[0], box[1], rows - 1, columns - 1
        return box

    def undo(self) -> None:
        """Take the last step back; ValueError at the start."""
        if not self._actions:
            raise ValueError("there is no step to undo")
        for kept in (self._states, self._frames, self._actions, self._rewards):
            kept.pop()

    def recording(self) -> Recording:
        """The episode as it stands; steps taken back are not in it."""
        return Recording(
            task=self.task_id,
            config=self.config,
            mode=self.mode,
            pair=self.pair,
            form="bbox",
            actions=tuple(self._actions),
            rewards=tuple(self._rewards),
        )


def _check_box(box: Box, room: tuple[int, int]) -> None:
    named = (("row", box[0], 0), ("column", box[1], 1))
    for name, value, axis in (*named, ("row", box[2], 0), ("column", box[3], 1)):
        if not 0 <= value < room[axis]:
            raise ValueError(
                f"{name} {value} is outside: {name}s go from 0 to {room[axis] - 1}"
            )
