"""Settings of an episode: train or test, which pairs it visits, when it ends."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from jaxarc.config.base import Config
from jaxarc.config.rules import number, one_of, whole

MODES = ("train", "test")


@dataclass(frozen=True)
class ArcEpisodeConfig(Config):
    """Which pairs an episode works on and when it is over.

    `episode_mode` is 0 for train and 1 for test; the words are taken too.
    """

    section: ClassVar[str] = "episode"

    episode_mode: Annotated[int, one_of(0, 1)] = 0
    demo_selection_strategy: Annotated[str, one_of("sequential", "random")] = "random"
    allow_demo_switching: bool = True
    require_all_demos_solved: bool = False
    test_selection_strategy: Annotated[str, one_of("sequential", "random")] = (
        "sequential"
    )
    allow_test_switching: bool = False
    require_all_tests_solved: bool = True
    terminate_on_first_success: bool = False
    max_pairs_per_episode: Annotated[int, whole(1)] = 4
    success_threshold: Annotated[float, number(0, 1)] = 1.0
    training_reward_frequency: Annotated[str, one_of("step", "submit")] = "step"
    evaluation_reward_frequency: Annotated[str, one_of("submit")] = "submit"

    def __post_init__(self) -> None:
        super().__post_init__()
        mode: object = self.episode_mode
        if isinstance(mode, str) and mode in MODES:
            object.__setattr__(self, "episode_mode", MODES.index(mode))
