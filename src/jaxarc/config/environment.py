"""Settings of the episode loop: its length, its strictness, how much it shows."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from jaxarc.config.base import Config, rules_of
from jaxarc.config.rules import one_of, whole

DEBUG_LEVELS = ("off", "minimal", "standard", "verbose", "research")
_STORAGE_POLICIES = ("none", "minimal", "standard", "research", "research")


@dataclass(frozen=True)
class EnvironmentConfig(Config):
    """How long an episode is, and how much is checked and shown.

    - `auto_reset`: whether the wrapper `AutoReset` (and with it rollouts and vector
      environments) begins another episode where one ends; off, a finished episode
      stays as it ended. `arc_step` never resets.
    - `strict_validation`: environment objects (`make`, `Environment`, `EnvParams`,
      `ArcEnvironment`) and `ExperimentLogger` refuse a configuration that is not
      valid; off, they log what is wrong with it and go on. `arc_reset` and `arc_step`
      do not ask.
    - `debug_level`: a name of `DEBUG_LEVELS` or its place there (0 to 4); the most
      that `ExperimentLogger` shows and stores, whatever the other groups say.
    - `render_mode`: what `Environment.render` gives unless told otherwise.
    """

    section: ClassVar[str] = "environment"

    max_episode_steps: Annotated[int, whole(1, unusual_above=10_000)] = 100
    auto_reset: bool = True
    strict_validation: bool = True
    debug_level: Annotated[str | int, one_of(*DEBUG_LEVELS, *range(5))] = "standard"
    render_mode: Annotated[str, one_of("rgb_array", "ansi", "svg")] = "rgb_array"

    @property
    def debug_name(self) -> str:
        """The debug level by name."""
        rule = rules_of(type(self))["debug_level"]
        if not rule.accepts(self.debug_level):
            raise ValueError(
                f"environment.debug_level is {self.debug_level!r}; it must be "
                f"{rule.wanted}"
            )
        level = self.debug_level
        return level if isinstance(level, str) else DEBUG_LEVELS[level]

    @property
    def computed_visualization_level(self) -> str:
        """The visualization level that goes with the debug level."""
        return "full" if self.debug_name == "research" else self.debug_name

    @property
    def computed_storage_policy(self) -> str:
        """The storage policy that goes with the debug level."""
        return _STORAGE_POLICIES[DEBUG_LEVELS.index(self.debug_name)]
