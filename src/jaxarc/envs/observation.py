"""A rich observation of a state, with as much in it as its configuration asks for."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxarc.recall import latest_records
from jaxarc.state import ArcEnvState

FORMATS = ("minimal", "standard", "rich")


@dataclass(frozen=True)
class ObservationConfig:
    """What an observation holds beside the working grid.

    The format overrules: "minimal" shows neither completion nor recent actions, "rich"
    shows completion, allowed operations and demonstrations. `mask_internal_state=False`
    adds the selection, the clipboard and the similarity.
    """

    include_target_grid: bool = True
    include_completion_status: bool = True
    include_action_space_info: bool = True
    include_recent_actions: bool = False
    recent_action_count: int = 10
    include_step_count: bool = True
    include_demonstration_pairs: bool = True
    max_demonstration_pairs: int = 10
    observation_format: str = "standard"
    mask_internal_state: bool = True

    def __post_init__(self) -> None:
        if self.observation_format not in FORMATS:
            raise ValueError(
                f"observation_format is {self.observation_format!r}; it must be one "
                f"of: {', '.join(FORMATS)}"
            )
        for name in ("recent_action_count", "max_demonstration_pairs"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be 0 or up")
        forced = {}
        if self.observation_format == "minimal":
            hidden = ("include_completion_status", "include_recent_actions")
            forced = dict.fromkeys(hidden, False)
        if self.observation_format == "rich":
            shown = ("include_completion_status", "include_action_space_info")
            forced = dict.fromkeys((*shown, "include_demonstration_pairs"), True)
        for name, value in forced.items():
            object.__setattr__(self, name, value)

    @classmethod
    def minimal(cls) -> "ObservationConfig":
        """The grid, its mask, mode and pair alone."""
        return cls(
            include_target_grid=False,
            include_action_space_info=False,
            include_step_count=False,
            include_demonstration_pairs=False,
            observation_format="minimal",
        )

    @classmethod
    def standard(cls) -> "ObservationConfig":
        """The defaults."""
        return cls()

    @classmethod
    def rich(cls) -> "ObservationConfig":
        """Everything an agent may see, its last actions too."""
        return cls(include_recent_actions=True, observation_format="rich")

    @classmethod
    def training(cls) -> "ObservationConfig":
        """The standard one with a short memory of actions."""
        return cls(include_recent_actions=True, recent_action_count=5)

    @classmethod
    def evaluation(cls) -> "ObservationConfig":
        """Without a target, in training episodes too."""
        return cls(include_target_grid=False)

    @classmethod
    def debug(cls) -> "ObservationConfig":
        """Everything, what is hidden from agents included."""
        return dataclasses.replace(
            cls.rich(), recent_action_count=20, mask_internal_state=False
        )


class ArcObservation(eqx.Module):
    """What an agent sees; parts that the configuration leaves out are None."""

    working_grid: Int[Array, "*batch h w"]
    working_grid_mask: Bool[Array, "*batch h w"]
    episode_mode: Int[Array, "*batch"]
    current_pair_idx: Int[Array, "*batch"]
    step_count: Int[Array, "*batch"] | None = None
    demo_completion_status: Bool[Array, "*batch p"] | None = None
    test_completion_status: Bool[Array, "*batch q"] | None = None
    allowed_operations_mask: Bool[Array, "*batch operations"] | None = None
    target_grid: Int[Array, "*batch h w"] | None = None
    recent_actions: Float[Array, "*batch records fields"] | None = None
    demo_input_grids: Int[Array, "*batch shown h w"] | None = None
    demo_output_grids: Int[Array, "*batch shown h w"] | None = None
    demo_input_masks: Bool[Array, "*batch shown h w"] | None = None
    demo_output_masks: Bool[Array, "*batch shown h w"] | None = None
    num_demo_pairs: Int[Array, "*batch"] | None = None
    selected: Bool[Array, "*batch h w"] | None = None
    clipboard: Int[Array, "*batch h w"] | None = None
    similarity_score: Float[Array, "*batch"] | None = None


def create_observation(
    state: ArcEnvState, config: ObservationConfig | None = None
) -> ArcObservation:
    """The observation of a state, or of a batch of states.

    The target is all zeros in test mode; the demonstrations are as the task gives
    them, without an augmentation of the episode.
    """
    config = config or ObservationConfig()
    parts: dict[str, Any] = {}
    if config.include_step_count:
        parts["step_count"] = state.step_count
    if config.include_completion_status:
        parts["demo_completion_status"] = state.demo_completion_status
        parts["test_completion_status"] = state.test_completion_status
    if config.include_action_space_info:
        parts["allowed_operations_mask"] = state.allowed_operations_mask
    if config.include_target_grid:
        testing = state.is_test_mode()[..., None, None]
        parts["target_grid"] = jnp.where(testing, 0, state.target_grid)
    if config.include_recent_actions:
        parts["recent_actions"] = latest_records(
            state.action_history,
            state.action_history_length,
            state.action_history_write_pos,
            config.recent_action_count,
        )
    if config.include_demonstration_pairs:
        parts |= _demonstrations(state, config.max_demonstration_pairs)
    if not config.mask_internal_state:
        names = ("selected", "clipboard", "similarity_score")
        parts |= {name: getattr(state, name) for name in names}
    return ArcObservation(
        working_grid=state.working_grid,
        working_grid_mask=state.working_grid_mask,
        episode_mode=state.episode_mode,
        current_pair_idx=state.current_example_idx,
        **parts,
    )


def _demonstrations(state: ArcEnvState, most: int) -> dict[str, Array]:
    task = state.task_data
    shown = min(most, task.max_train_pairs)
    named = {
        "demo_input_grids": task.input_grids_examples,
        "demo_output_grids": task.output_grids_examples,
        "demo_input_masks": task.input_masks_examples,
        "demo_output_masks": task.output_masks_examples,
    }
    parts = {name: array[..., :shown, :, :] for name, array in named.items()}
    return parts | {"num_demo_pairs": jnp.minimum(task.num_train_pairs, shown)}
