"""Settings of the reward: weights, bonuses and penalties."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from jaxarc.config.base import Config
from jaxarc.config.rules import number, whole


@dataclass(frozen=True)
class RewardConfig(Config):
    """The terms of the reward; penalties are added, so they are negative.

    - `reward_on_submit_only` has no effect of its own: the episode's
      `training_reward_frequency` decides, and a conflict of the two is a warning.
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
    """

    section: ClassVar[str] = "reward"

    reward_on_submit_only: bool = True
    step_penalty: Annotated[float, number(-10, 1)] = -0.01
    success_bonus: Annotated[float, number(-100, 1000)] = 10.0
    similarity_weight: Annotated[float, number(0, 10)] = 1.0
    progress_bonus: Annotated[float, number(-10, 10)] = 0.0
    invalid_action_penalty: Annotated[float, number(-10, 1)] = -0.1
    control_operation_penalty: Annotated[float, number(-10, 1)] = -0.01
    pair_switching_bonus: Annotated[float, number(-10, 10)] = 0.0
    training_similarity_weight: Annotated[float, number(0, 10)] = 1.0
    evaluation_similarity_weight: Annotated[float, number(0, 10)] = 0.0
    demo_completion_bonus: Annotated[float, number(-100, 100)] = 1.0
    test_completion_bonus: Annotated[float, number(-100, 100)] = 5.0
    consecutive_success_bonus: Annotated[float, number(-10, 10)] = 0.0
    efficiency_bonus_threshold: Annotated[int, whole(0)] = 50
    efficiency_bonus: Annotated[float, number(-10, 10)] = 1.0
    unsolved_submission_penalty: Annotated[float, number(-1000, 0)] = 0.0


UnifiedRewardConfig = RewardConfig
