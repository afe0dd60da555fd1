"""Oracle: the documented defaults and bounds."""

import pytest

from acbo.training.config import (
    EvaluationConfig,
    GRPOTrainingConfig,
    RewardTrainingConfig,
    SurrogateTrainingConfig,
    TrainingConfig,
)


def test_defaults_are_the_documented_ones():
    config = TrainingConfig()
    assert hash(config) == hash(TrainingConfig())
    surrogate, grpo, reward = config.surrogate, config.grpo, config.rewards
    assert surrogate == SurrogateTrainingConfig(
        *(128, 6, 1e-3, 32, 100, 10, 5, 1e-4, 5, 0.1)
    )
    assert grpo == GRPOTrainingConfig(64, 4, 3e-4, 0.2, 0.01, 0.0, 1.0, True)
    assert reward == RewardTrainingConfig(1.0, 0.5, 0.3, 0.1)
    assert config.evaluation == EvaluationConfig(50, 20, (5, 8, 10))
    assert (config.total_steps, config.warmup_steps, config.seed) == (1000, 50, 42)
    assert (config.log_frequency, config.save_frequency) == (10, 100)
    assert config.exploration.initial_temperature == 2.0


def test_the_model_of_the_guide_is_allowed():
    config = SurrogateTrainingConfig(
        model_hidden_dim=16, model_n_layers=2, dropout=0.0, max_parent_size=2
    )
    wanted = {"layers": 2, "dim": 16, "dropout": 0.0, "max_parent_size": 2}
    assert config.get_model_kwargs() == wanted


def test_the_learner_gets_every_setting():
    config = GRPOTrainingConfig(
        *(16, 2, 1e-2, 0.3, 0.02, 0.1, 2.0), scale_rewards=False
    )
    learner = config.learner(5, horizon=3)
    assert (learner.states, learner.horizon) == (5, 3)
    for name, value in vars(config).items():
        assert getattr(learner, name) == value


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (SurrogateTrainingConfig, {"model_hidden_dim": 8}, r"must be in \[16, 512\]"),
        (SurrogateTrainingConfig, {"learning_rate": 0.0}, "must be above 0"),
        (SurrogateTrainingConfig, {"learning_rate": 0.2}, r"must be in \[0, 0.1\]"),
        (SurrogateTrainingConfig, {"batch_size": 257}, r"must be in \[1, 256\]"),
        (SurrogateTrainingConfig, {"dropout": 0.6}, r"must be in \[0, 0.5\]"),
        (SurrogateTrainingConfig, {"max_parent_size": 11}, r"must be in \[1, 10\]"),
        (SurrogateTrainingConfig, {"max_epochs": 0}, "must be at least 1"),
        (GRPOTrainingConfig, {"group_size": 4}, r"must be in \[8, 256\]"),
        (
            GRPOTrainingConfig,
            {"clip_ratio": 0.0},
            "clip_ratio is 0.0: give a number above 0",
        ),
        (EvaluationConfig, {"sizes": ()}, "at least 2 variables"),
        (TrainingConfig, {"warmup_steps": 2000}, r"must be in \[0, 1000\]"),
    ],
)
def test_bad_values_are_refused(kind, values, message):
    with pytest.raises(ValueError, match=message):
        kind(**values)
