import dataclasses
import math

import pytest

from jaxarc.config.groups import RewardConfig, UnifiedRewardConfig

BOUNDS = {
    "step_penalty": (-10, 1),
    "success_bonus": (-100, 1000),
    "similarity_weight": (0, 10),
    "progress_bonus": (-10, 10),
    "invalid_action_penalty": (-10, 1),
    "control_operation_penalty": (-10, 1),
    "pair_switching_bonus": (-10, 10),
    "training_similarity_weight": (0, 10),
    "evaluation_similarity_weight": (0, 10),
    "demo_completion_bonus": (-100, 100),
    "test_completion_bonus": (-100, 100),
    "consecutive_success_bonus": (-10, 10),
    "efficiency_bonus": (-10, 10),
    "unsolved_submission_penalty": (-1000, 0),
}


def test_defaults_are_valid_and_every_field_is_explained():
    assert RewardConfig().validate() == ()
    assert UnifiedRewardConfig is RewardConfig
    for field in dataclasses.fields(RewardConfig):
        assert f"`{field.name}`" in (RewardConfig.__doc__ or "")


@pytest.mark.parametrize(("name", "bounds"), BOUNDS.items())
def test_bounds_are_included_and_held(name, bounds):
    least, most = bounds
    for legal in (least, most, float(most)):
        assert RewardConfig.from_hydra({name: legal}).validate() == ()
    for illegal in (least - 0.01, most + 0.01, math.nan, "1", True):
        (error,) = RewardConfig.from_hydra({name: illegal}).validate()
        assert error.startswith(f"reward.{name} is {illegal!r}; it must be")


def test_the_threshold_is_a_number_of_steps():
    assert RewardConfig(efficiency_bonus_threshold=0).validate() == ()
    for illegal in (-1, 2.5):
        config = RewardConfig.from_hydra({"efficiency_bonus_threshold": illegal})
        assert len(config.validate()) == 1
