"""How much is shown and stored: the debug level over the other groups."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxarc.config import JaxArcConfig
from jaxarc.config.storage import POLICIES
from jaxarc.config.visualization import LEVELS


@dataclass(frozen=True)
class Detail:
    """The level of pictures and the policy of files that hold for a run.

    `environment.debug_level` is the most that either may be. The level of the `debug`
    block goes before `visualization.level` where there is one.
    """

    level: str
    policy: str
    step_pictures: bool
    frequency: int

    @classmethod
    def of(cls, config: JaxArcConfig) -> "Detail":
        """What a configuration asks for."""
        pictures, rules = config.visualization, config.environment
        wanted = pictures.debug.level if pictures.debug else pictures.level
        level = _lower(LEVELS, wanted, rules.computed_visualization_level)
        policy = _lower(POLICIES, config.storage.policy, rules.computed_storage_policy)
        return cls(
            level if pictures.enabled else "off",
            policy,
            pictures.step_visualizations,
            config.logging.log_frequency,
        )

    def shows_step(self, log: Any) -> bool:
        """Whether a step is drawn: some (standard), all that change a grid, or all."""
        if not self.step_pictures or self.level in ("off", "minimal"):
            return False
        if self.level == "standard":
            return log["step_num"] % self.frequency == 0
        return self.level == "full" or not np.array_equal(
            log["before_grid"], log["grid"]
        )


def _lower(scale: tuple[str, ...], one: str, other: str) -> str:
    return min(one, other, key=scale.index)
