"""Play an episode step by step, keep it in a file, run it again, show it."""

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxarc.actions import (
    MaskAction,
    StructuredAction,
    create_bbox_action,
    create_mask_action,
    create_point_action,
)
from jaxarc.config import DatasetConfig, HistoryConfig, JaxArcConfig
from jaxarc.draw import EpisodeFrame, draw_task, episode_section
from jaxarc.envs.functional import arc_reset, arc_step
from jaxarc.envs.starts import EnvParams
from jaxarc.ops.operations import NUM_OPERATIONS
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.state import ArcEnvState
from jaxarc.tasks.parsers import create_parser
from jaxarc.types import JaxArcTask
from jaxrig.atomic import write_file
from jaxrig.notebook import Shown
from jaxrig.report import Figure, Section, Text

SCHEMA = "jaxarc.replay/1"
LINES = ".jsonl"  # a file with an episode in every line
TOLERANCE = 1e-4  # how far rewards may lie apart on another kind of device
FORMS = {"point": 3, "bbox": 5, "mask": None}  # numbers of an action; a mask has any
Box = tuple[int, int, int, int]
STEPS = 1000  # for a person, who may undo as well
Transition = tuple[ArcEnvState, StructuredAction, ArcEnvState, Any, Any]


@dataclass(frozen=True)
class Recording:
    """An episode: where it starts, the numbers of its actions, the rewards they gave.

    The numbers of an action are its operation, then a row and a column (point), two
    corners (bbox), or the places of the selected cells counted row by row (mask).
    """

    task: str
    config: JaxArcConfig
    mode: int
    pair: int
    form: str
    actions: tuple[tuple[int, ...], ...]
    rewards: tuple[float, ...]

    @property
    def dataset(self) -> str:
        """Return the data set of the task."""
        return self.config.dataset.dataset_name

    def load_task(self) -> JaxArcTask:
        """Load the task from its data set."""
        return create_parser(self.config.dataset).get_task_by_id(self.task)

    def in_folder(self, path: str | os.PathLike[str]) -> "Recording":
        """Return the same episode, with the data set in another folder."""
        dataset = dataclasses.replace(self.config.dataset, dataset_path=os.fspath(path))
        config = dataclasses.replace(self.config, dataset=dataset)
        return dataclasses.replace(self, config=config)


def is_repeatable(params: EnvParams) -> bool:
    """Return whether pair and actions are all that a replay has to know."""
    return not params.augment and params.config.grid_initialization is None


def check_repeatable(params: EnvParams) -> None:
    """Refuse to record what a replay could not repeat."""
    if not is_repeatable(params):
        raise ValueError(
            "episodes are recorded without augmentation and grid_initialization, "
            "which a replay could not repeat: make the environment without them"
        )


def action_numbers(action: StructuredAction) -> tuple[int, ...]:
    """Return one action as whole numbers; see `Recording`."""
    if isinstance(action, MaskAction):
        cells = np.flatnonzero(np.asarray(action.selection)).tolist()
        return (int(action.operation), *cells)
    # The fields of the others are their numbers, in this order.
    return tuple(int(value) for value in vars(action).values())


def action_of(
    form: str, numbers: Sequence[int], shape: tuple[int, int]
) -> StructuredAction:
    """Return the action behind whole numbers, on a padded grid of this shape."""
    if form == "point":
        return create_point_action(*numbers)
    if form == "bbox":
        return create_bbox_action(*numbers)
    selection = np.zeros(shape, bool)
    selection.flat[list(numbers[1:])] = True
    return create_mask_action(numbers[0], selection)


def frame_of(
    state: ArcEnvState, operation: int | None = None, reward: float = 0.0
) -> EpisodeFrame:
    """Return a state as a frame; a hidden target is left out."""
    working, target, selected, similarity = jax.device_get(_views(state))
    marked = None if operation is None else selected
    figures = operation, reward, float(similarity)
    return EpisodeFrame.of_grids(working, target, marked, *figures)


# One program in place of a hundred operations: a person waits for every step. Each data
# set has its own shapes, so that no number of traces bounds it.
@jax.jit
def _views(state: ArcEnvState) -> tuple[Any, ...]:
    return (
        state.working_grid,
        state.target_grid,
        state.selected,
        state.similarity_score,
    )


def begin_recording(recording: Recording, task: JaxArcTask) -> ArcEnvState:
    """Return the state that a recorded episode starts from."""
    start = recording.mode, recording.pair
    return arc_reset(jax.random.key(0), recording.config, task, *start)[0]


def play_recording(recording: Recording, task: JaxArcTask) -> Iterator[Transition]:
    """Yield state, action, next state, reward and info of every recorded step."""
    state = begin_recording(recording, task)
    for numbers in recording.actions:
        action = action_of(recording.form, numbers, task.get_grid_shape())
        after, _, reward, _, info = arc_step(state, action, recording.config)
        yield state, action, after, reward, info
        state = after


def run_again(recording: Recording, task: JaxArcTask) -> list[EpisodeFrame]:
    """Run a recorded episode again; ValueError where a reward differs.

    The first frame is the reset.
    """
    frames = [frame_of(begin_recording(recording, task))]
    steps = zip(play_recording(recording, task), recording.rewards, strict=True)
    for number, ((_, action, after, reward, _), wanted) in enumerate(steps):
        if not abs(float(reward) - wanted) <= TOLERANCE:  # a nan is none, too
            raise ValueError(
                f"step {number} of the episode has reward {float(reward):g}, "
                f"but {wanted:g} was recorded: the task {recording.task!r} or the "
                "rules have changed"
            )
        frames.append(frame_of(after, int(action.operation), float(reward)))
    return frames


def save_recording(path: str | os.PathLike[str], recording: Recording) -> Path:
    """Write an episode as one JSON file, whole or not at all."""
    return write_file(path, json.dumps(_content(recording), indent=1))


def save_recordings(
    path: str | os.PathLike[str], recordings: Iterable[Recording]
) -> Path:
    """Write many episodes as one file of JSON Lines, whole or not at all."""
    path = Path(path)
    if path.suffix != LINES:
        raise ValueError(f"{path}: name a file of many episodes *{LINES}")
    lines = (json.dumps(_content(recording)) + "\n" for recording in recordings)
    return write_file(path, "".join(lines))


def _content(recording: Recording) -> dict[str, Any]:
    return {"schema": SCHEMA, **dataclasses.asdict(recording)}


def load_recordings(path: str | os.PathLike[str]) -> tuple[Recording, ...]:
    """Read and check all episodes of a file: one of JSON, or many of JSON Lines."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"no replay file {os.fspath(path)!r}: write one with `play --save`, "
            "`rollout --out` or `demonstrate --out`"
        )
    try:
        text = path.read_text()
        parts = text.splitlines() if path.suffix == LINES else [text]
        return tuple(map(_read, parts))
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path}: not a replay file ({error})") from error


def load_recording(path: str | os.PathLike[str], episode: int = 1) -> Recording:
    """Read and check one episode of a file, by default the first."""
    recordings = load_recordings(path)
    if not 1 <= episode <= len(recordings):
        raise ValueError(
            f"{path} has no episode {episode}: choose one of 1 to {len(recordings)}"
        )
    return recordings[episode - 1]


def _read(text: str) -> Recording:
    content = json.loads(text)
    if not isinstance(content, dict) or content.pop("schema", None) != SCHEMA:
        raise ValueError(f"its schema is not {SCHEMA!r}")
    odd = set(content) ^ {field.name for field in dataclasses.fields(Recording)}
    if odd:
        names = ", ".join(sorted(map(str, odd)))
        raise ValueError(f"fields missing or unknown: {names}")
    config = JaxArcConfig.from_hydra(content["config"]).checked()
    form, actions, rewards = (content[n] for n in ("form", "actions", "rewards"))
    if form not in FORMS:
        raise ValueError(f"form {form!r} is not one of: {', '.join(FORMS)}")
    cells = config.dataset.max_grid_height * config.dataset.max_grid_width
    if not isinstance(actions, list) or not all(
        _is_action(numbers, FORMS[form], cells) for numbers in actions
    ):
        raise ValueError(f"its actions are not whole numbers of the form {form!r}")
    if not isinstance(rewards, list) or len(rewards) != len(actions):
        raise ValueError("it does not have one reward for every action")
    return Recording(
        task=str(content["task"]),
        config=config,
        mode=int(content["mode"]),
        pair=int(content["pair"]),
        form=form,
        actions=tuple(map(tuple, actions)),
        rewards=tuple(map(float, rewards)),
    )


def _is_action(numbers: Any, length: int | None, cells: int) -> bool:
    """Check for whole numbers, as many as the form has, none beyond the grid."""
    if not isinstance(numbers, list) or any(type(n) is not int for n in numbers):
        return False
    if not numbers or len(numbers) != (length or len(numbers)):
        return False
    operation, *places = numbers
    return 0 <= operation < NUM_OPERATIONS and all(0 <= n < cells for n in places)


def player_config(dataset: DatasetConfig, steps: int = STEPS) -> JaxArcConfig:
    """Return rules for a person: all pairs may be visited; solving ends nothing."""
    base = JaxArcConfig(dataset=dataset, history=HistoryConfig(enabled=False))
    return base.with_settings(
        max_episode_steps=steps,
        selection_format="bbox",
        demo_selection_strategy="sequential",
        require_all_demos_solved=True,
        allow_test_switching=True,
        max_pairs_per_episode=100,
    )


class TaskPlayer(Shown):
    """One episode on one task; every step can be taken back."""

    shown_by = "jaxarc.recording:show_episode"

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
        self.actions: list[tuple[int, ...]] = []
        self.frames = [frame_of(state)]  # the reset first

    @property
    def state(self) -> ArcEnvState:
        """Return the current state."""
        return self._states[-1]

    @property
    def frame(self) -> EpisodeFrame:
        """Return the frame of the last step."""
        return self.frames[-1]

    @property
    def steps(self) -> int:
        """Return the number of steps taken."""
        return len(self.actions)

    @property
    def done(self) -> bool:
        """Return whether the episode is over."""
        return bool(self.state.episode_done)

    @property
    def solved(self) -> np.ndarray:
        """Return which pairs of the mode are solved."""
        task, state = self.task, self.state
        if self.mode:
            status, count = state.test_completion_status, task.num_test_pairs
        else:
            status, count = state.demo_completion_status, task.num_train_pairs
        return np.asarray(status)[: int(count)]

    @property
    def current_pair(self) -> int:
        """Return the current pair, from 0."""
        return int(self.state.current_example_idx)

    def step(self, operation: int, box: Box | None = None) -> EpisodeFrame:
        """Apply an operation to the cells between two corners, by default to all.

        A paste at one cell may reach everything right of it and below. ValueError, and
        nothing changes, for cells outside the grid and after the end.
        """
        if self.done:
            raise ValueError("the episode has ended: use undo or quit")
        box = self._reach(operation, box)
        action = create_bbox_action(operation, *box)
        state, _, reward, _, _ = arc_step(self.state, action, self.config)
        self._states.append(state)
        self.actions.append((operation, *box))
        self.frames.append(frame_of(state, operation, float(reward)))
        return self.frame

    def _reach(self, operation: int, box: Box | None) -> Box:
        """Check and return the cells an operation gets."""
        rows, columns = self.frame.grid.shape
        if box is None:
            return 0, 0, rows - 1, columns - 1
        resizes = operation == int(Op.RESIZE)
        room = self.task.get_grid_shape() if resizes else (rows, columns)
        for index, value in enumerate(box):
            name, size = ("row", "column")[index % 2], room[index % 2]
            if not 0 <= value < size:
                raise ValueError(
                    f"{name} {value} is outside: {name}s go from 0 to {size - 1}"
                )
        if operation == int(Op.PASTE) and box[:2] == box[2:]:
            return box[0], box[1], rows - 1, columns - 1
        return box

    def undo(self) -> None:
        """Take the last step back; ValueError at the start."""
        if not self.actions:
            raise ValueError("there is no step to undo")
        for kept in (self._states, self.frames, self.actions):
            kept.pop()

    def recording(self) -> Recording:
        """Return the episode so far, without steps taken back."""
        return Recording(
            task=self.task_id,
            config=self.config,
            mode=self.mode,
            pair=self.pair,
            form="bbox",
            actions=tuple(self.actions),
            rewards=tuple(frame.reward for frame in self.frames[1:]),
        )


def show_task(task: JaxArcTask) -> Section:
    """Draw a task; of a stack say how many there are."""
    if task.task_index.ndim:
        count = " x ".join(map(str, task.task_index.shape))
        return Section("Tasks", Text(f"A stack of {count} tasks."))
    drawing = draw_task(task, scheme="arc").as_svg()
    alt = "All pairs of the task: inputs above, outputs below"
    return Section("Task", Figure(drawing, alt=alt))


def show_state(state: ArcEnvState) -> Section:
    """Draw the working grid and the target, if it is known."""
    if state.episode.step_count.ndim:
        count = " x ".join(map(str, state.episode.step_count.shape))
        one = "`jax.tree.map(lambda x: x[0], states)` is the first"
        return Section("States", Text(f"A batch of {count} states; {one}."))
    steps, done = int(state.step_count), bool(state.episode_done)
    ended = ", the episode has ended" if done else ""
    (player,) = episode_section("State", [frame_of(state)], show_metrics=False).parts
    return Section("State", player, Text(f"After {steps} steps{ended}."))


def show_episode(player: TaskPlayer) -> Section:
    """Play the steps so far."""
    return episode_section(f"Task {player.task_id}", player.frames)
