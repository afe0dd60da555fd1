"""Settings of an environment: actions, data set, episodes, initial grids, rewards."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from jaxarc.config.fields import INT32, Config, ConfigValidationError, Count, items
from jaxarc.ops.operations import NUM_OPERATIONS
from jaxrig.settings import (
    Fraction,
    NotNegative,
    Reader,
    maybe,
    number,
    one_of,
    text,
    whole,
)


def _between(low: float, high: float) -> Reader:
    return number(at_least=low, up_to=high)


@dataclass(frozen=True)
class ActionConfig(Config):
    """The format of actions and which operations they may carry.

    `selection_threshold` turns a mask of numbers into cells. `allowed_operations` holds
    always; `dynamic_action_filtering` replaces operations that the state forbids, by
    `context_dependent_operations` also those without meaning at the moment, as
    `invalid_operation_policy` says.
    """

    section: ClassVar[str] = "action"
    renamed: ClassVar[Mapping[str, str]] = {
        "num_operations": "max_operations",
        "clip_invalid_actions": "not allow_invalid_actions",
    }
    unusual: ClassVar[Mapping[str, int]] = {"max_operations": 100}

    selection_format: Annotated[str, one_of("mask", "point", "bbox")] = "mask"
    selection_threshold: Fraction = 0.5
    max_operations: Count = NUM_OPERATIONS
    allowed_operations: Annotated[
        tuple[int, ...] | None, maybe(items(whole(0, NUM_OPERATIONS - 1)))
    ] = None
    validate_actions: bool = True
    allow_invalid_actions: bool = False
    dynamic_action_filtering: bool = False
    context_dependent_operations: bool = False
    invalid_operation_policy: Annotated[
        str, one_of("clip", "reject", "passthrough", "penalize")
    ] = "clip"

    def _relation_errors(self) -> Iterator[str]:
        for operation in self.allowed_operations or ():
            if operation >= self.max_operations:
                yield (
                    f"action.allowed_operations holds {operation}; each must be below "
                    f"action.max_operations, which is {self.max_operations}"
                )


UnifiedActionConfig = ActionConfig


TRAINING, EVALUATION = "training", "evaluation"
SPLITS = {  # the parts of a data set that a name means
    **dict.fromkeys(("train", "training"), (TRAINING,)),
    **dict.fromkeys(("eval", "evaluation", "test"), (EVALUATION,)),
    **dict.fromkeys(("all", "corpus"), (TRAINING, EVALUATION)),
}


@dataclass(frozen=True)
class DatasetConfig(Config):
    """Which tasks are read, and the sizes they are padded to.

    `dataset_repo` is the git repository that `make(..., auto_download=True)` clones,
    as owner/name or as an address, where it is not the usual one.
    """

    section: ClassVar[str] = "dataset"
    unusual: ClassVar[Mapping[str, int]] = {
        **{"max_grid_height": 200, "max_grid_width": 200, "max_colors": 50},
        **{"max_train_pairs": 20, "max_test_pairs": 5},
    }

    dataset_name: Annotated[str, text] = "arc-agi-1"
    dataset_path: str = ""
    dataset_repo: str = ""
    max_grid_height: Count = 30
    max_grid_width: Count = 30
    min_grid_height: Count = 1
    min_grid_width: Count = 1
    max_colors: Annotated[int, whole(2, INT32)] = 10
    max_train_pairs: Count = 10
    max_test_pairs: Count = 3
    task_split: Annotated[str, one_of(*SPLITS)] = "train"
    shuffle_tasks: bool = True

    def _relation_errors(self) -> Iterator[str]:
        for side in ("height", "width"):
            most = getattr(self, f"max_grid_{side}")
            least = getattr(self, f"min_grid_{side}")
            if most < least:
                yield (
                    f"dataset.max_grid_{side} is {most}; it must be at least "
                    f"dataset.min_grid_{side}, which is {least}"
                )


UnifiedDatasetConfig = DatasetConfig


DEBUG_LEVELS = ("off", "minimal", "standard", "verbose", "research")
_STORAGE_POLICIES = ("none", "minimal", "standard", "research", "research")


def _debug_level(value: Any, name: str) -> str:
    """Read a level by its name or its place in the list."""
    if isinstance(value, int):
        return DEBUG_LEVELS[whole(0, len(DEBUG_LEVELS) - 1)(value, name)]
    return one_of(*DEBUG_LEVELS)(value, name)


@dataclass(frozen=True)
class EnvironmentConfig(Config):
    """How long an episode is, and how much is checked and shown.

    - `auto_reset`: whether the wrapper `AutoReset` (and with it rollouts and vector
      environments) begins another episode where one ends; off, a finished episode
      stays as it ended. `arc_step` never resets.
    - `strict_validation`: environment objects (`make`, `Environment`, `EnvParams`) and
      `ExperimentLogger` refuse a configuration that is not valid; off, they log what is
      wrong with it and go on. `arc_reset` and `arc_step` do not ask.
    - `debug_level`: a name of `DEBUG_LEVELS` or its place there (0 to 4); the most
      that `ExperimentLogger` shows and stores, whatever the other groups say.
    - `render_mode`: what `Environment.render` gives unless told otherwise.
    """

    section: ClassVar[str] = "environment"
    unusual: ClassVar[Mapping[str, int]] = {"max_episode_steps": 10_000}

    max_episode_steps: Count = 100
    auto_reset: bool = True
    strict_validation: bool = True
    debug_level: Annotated[str | int, _debug_level] = "standard"
    render_mode: Annotated[str, one_of("rgb_array", "ansi", "svg")] = "rgb_array"

    @property
    def debug_name(self) -> str:
        """The debug level by name."""
        return _debug_level(self.debug_level, "environment.debug_level")

    @property
    def computed_visualization_level(self) -> str:
        """The visualization level that goes with the debug level."""
        return "full" if self.debug_name == "research" else self.debug_name

    @property
    def computed_storage_policy(self) -> str:
        """The storage policy that goes with the debug level."""
        return _STORAGE_POLICIES[DEBUG_LEVELS.index(self.debug_name)]


MODES = ("train", "test")


@dataclass(frozen=True)
class ArcEpisodeConfig(Config):
    """Which pairs an episode works on and when it is over.

    `episode_mode` is 0 for train and 1 for test; the words are taken too.
    """

    section: ClassVar[str] = "episode"

    episode_mode: Annotated[int, whole(0, 1)] = 0
    demo_selection_strategy: Annotated[str, one_of("sequential", "random")] = "random"
    allow_demo_switching: bool = True
    require_all_demos_solved: bool = False
    test_selection_strategy: Annotated[str, one_of("sequential", "random")] = (
        "sequential"
    )
    allow_test_switching: bool = False
    require_all_tests_solved: bool = True
    terminate_on_first_success: bool = False
    max_pairs_per_episode: Count = 4
    success_threshold: Fraction = 1.0
    training_reward_frequency: Annotated[str, one_of("step", "submit")] = "step"

    def __post_init__(self) -> None:
        super().__post_init__()
        mode: object = self.episode_mode
        if isinstance(mode, str) and mode in MODES:
            object.__setattr__(self, "episode_mode", MODES.index(mode))


@dataclass(frozen=True)
class GridInitializationConfig(Config):
    """How often an episode starts from which kind of grid.

    A demonstration's input as it is, one that is rotated, reflected or recolored, an
    empty grid, or a random one; the weights need not add up to one.
    """

    section: ClassVar[str] = "grid_initialization"

    demo_weight: NotNegative = 0.4
    permutation_weight: NotNegative = 0.3
    empty_weight: NotNegative = 0.2
    random_weight: NotNegative = 0.1
    permutation_types: Annotated[
        tuple[str, ...], items(one_of("rotate", "reflect", "color_remap"))
    ] = ("rotate", "reflect", "color_remap")
    random_density: Fraction = 0.3
    random_pattern_type: Annotated[str, one_of("sparse", "dense")] = "sparse"

    @property
    def probabilities(self) -> tuple[float, ...]:
        """Of demo, permutation, empty and random grids; they add up to one."""
        total = sum(self.checked()._weights)
        return tuple(weight / total for weight in self._weights)

    @property
    def _weights(self) -> tuple[float, float, float, float]:
        named = (self.demo_weight, self.permutation_weight)
        return (*named, self.empty_weight, self.random_weight)

    def _relation_errors(self) -> Iterator[str]:
        total = sum(self._weights)
        if not 0 < total < math.inf:
            yield (
                "grid_initialization.demo_weight and the other three weights add up "
                f"to {total}; their sum must be finite and above 0"
            )


METADATA_FIELDS = 4  # operation, step, pair, validity


def get_selection_data_size(
    selection_format: str, max_grid_height: int = 30, max_grid_width: int = 30
) -> int:
    """Return how many numbers a selection takes in a record.

    >>> get_selection_data_size("mask", 30, 30)
    900
    """
    sizes = {"point": 2, "bbox": 4, "mask": max_grid_height * max_grid_width}
    if selection_format not in sizes:
        raise ValueError(
            f"selection format {selection_format!r} is not one of: {', '.join(sizes)}"
        )
    return sizes[selection_format]


def get_action_record_fields(
    selection_format: str, max_grid_height: int = 30, max_grid_width: int = 30
) -> int:
    """Return how many numbers a whole record takes: the selection, then four more."""
    size = get_selection_data_size(selection_format, max_grid_height, max_grid_width)
    return size + METADATA_FIELDS


@dataclass(frozen=True)
class HistoryConfig(Config):
    """How many actions are remembered, and whether with their selections."""

    section: ClassVar[str] = "history"
    unusual: ClassVar[Mapping[str, int]] = {"max_history_length": 10_000}

    enabled: bool = True
    max_history_length: Count = 1000
    store_selection_data: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        length = self.max_history_length
        if isinstance(length, int) and length <= 0:
            raise ConfigValidationError(
                f"history.max_history_length is {length}; it must be above 0 (to keep "
                "no history, set history.enabled to false)"
            )

    def estimate_memory_usage(
        self,
        selection_format: str = "mask",
        max_grid_height: int = 30,
        max_grid_width: int = 30,
        dtype_size: int = 4,
    ) -> dict[str, Any]:
        """Return the memory that one environment's history takes, with a breakdown."""
        # Imported only here: it takes a tenth of a second.
        from rich.filesize import decimal

        selection = get_selection_data_size(
            selection_format, max_grid_height, max_grid_width
        )
        records = self.max_history_length if self.enabled else 0
        kept = selection if self.store_selection_data else 0
        total = records * (kept + METADATA_FIELDS) * dtype_size
        breakdown = {
            "records": records,
            "selection_bytes": records * kept * dtype_size,
            "metadata_bytes": records * METADATA_FIELDS * dtype_size,
            "fields_per_record": kept + METADATA_FIELDS,
        }
        return {
            "total_bytes": total,
            "human_readable": decimal(total),
            "breakdown": breakdown,
        }


@dataclass(frozen=True)
class RewardConfig(Config):
    """The terms of the reward; penalties are added, so they are negative.

    - `step_penalty`: every step.
    - `success_bonus`: once for every pair solved.
    - `similarity_weight`: a factor on both weights below.
    - `training_similarity_weight`: the gain in similarity of a step in train mode.
    - `evaluation_similarity_weight`: the similarity of a submission in test mode.
    - `progress_bonus`: every step that gains similarity.
    - `invalid_action_penalty`: an operation replaced under the policy "penalize".
    - `control_operation_penalty`, `pair_switching_bonus`: operations from 35 on.
    - `demo_completion_bonus`, `test_completion_bonus`: once for every pair solved in
      train and in test mode.
    - `consecutive_success_bonus`: the second and every later pair of an episode.
    - `efficiency_bonus`: a pair solved within `efficiency_bonus_threshold` steps.
    - `unsolved_submission_penalty`: a submission that does not solve its pair.
    - `reward_on_submit_only` has no effect of its own: the episode's
      `training_reward_frequency` decides, and a contradiction is logged.
    """

    section: ClassVar[str] = "reward"

    reward_on_submit_only: bool = True
    step_penalty: Annotated[float, _between(-10, 1)] = -0.01
    success_bonus: Annotated[float, _between(-100, 1000)] = 10.0
    similarity_weight: Annotated[float, _between(0, 10)] = 1.0
    progress_bonus: Annotated[float, _between(-10, 10)] = 0.0
    invalid_action_penalty: Annotated[float, _between(-10, 1)] = -0.1
    control_operation_penalty: Annotated[float, _between(-10, 1)] = -0.01
    pair_switching_bonus: Annotated[float, _between(-10, 10)] = 0.0
    training_similarity_weight: Annotated[float, _between(0, 10)] = 1.0
    evaluation_similarity_weight: Annotated[float, _between(0, 10)] = 0.0
    demo_completion_bonus: Annotated[float, _between(-100, 100)] = 1.0
    test_completion_bonus: Annotated[float, _between(-100, 100)] = 5.0
    consecutive_success_bonus: Annotated[float, _between(-10, 10)] = 0.0
    efficiency_bonus_threshold: Annotated[int, whole(0, INT32)] = 50
    efficiency_bonus: Annotated[float, _between(-10, 10)] = 1.0
    unsolved_submission_penalty: Annotated[float, _between(-1000, 0)] = 0.0
