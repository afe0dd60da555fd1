import pytest

from jaxarc.config.groups import ArcEpisodeConfig


def test_defaults_are_valid():
    assert ArcEpisodeConfig().validate() == ()


@pytest.mark.parametrize(("word", "number"), [("train", 0), ("test", 1)])
def test_modes_have_words(word, number):
    config = ArcEpisodeConfig.from_hydra({"episode_mode": word})
    assert config == ArcEpisodeConfig(episode_mode=number)
    assert type(config.episode_mode) is int
    assert config.validate() == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("episode_mode", 2),
        ("episode_mode", "eval"),
        ("episode_mode", True),
        ("demo_selection_strategy", "first"),
        ("test_selection_strategy", "first"),
        ("max_pairs_per_episode", 0),
        ("success_threshold", 1.1),
        ("training_reward_frequency", "never"),
        ("evaluation_reward_frequency", "step"),
    ],
)
def test_illegal_values_are_named(field, value):
    (error,) = ArcEpisodeConfig(**{field: value}).validate()
    assert error.startswith(f"episode.{field} is {value!r}; it must be ")
