"""Oracle: the table of levels, and the truth of the models."""

import pytest

from acbo.named.model import get_parents
from acbo.training.config import SurrogateTrainingConfig
from acbo.training.curriculum import LEVELS
from acbo.training.progressive import (
    collect_observational_data,
    generate_scm_for_difficulty,
    optimized_progressive_learning,
)
from causal_surrogates import Moments, stand_in

MODEL = stand_in()
CONFIG = SurrogateTrainingConfig(max_epochs=5, learning_rate=0.05)
EASY = generate_scm_for_difficulty("easy", 3)


@pytest.mark.parametrize(
    ("place", "difficulty"), [(0, "easy"), (1, "medium"), (2, "hard")]
)
def test_models_follow_the_levels(place, difficulty):
    level = LEVELS[place]
    models = [generate_scm_for_difficulty(difficulty, seed) for seed in range(5)]
    for scm in models:
        assert level.variables[0] <= len(scm.names) <= level.variables[1]
        assert len(scm.edges) <= level.edges[1]
        assert scm.target_name is not None
        parents = [len(get_parents(scm, name)) for name in scm.names]
        assert max(parents) <= 3
        assert len(get_parents(scm, scm.target_name)) >= 1
    again = generate_scm_for_difficulty(difficulty, 4)
    assert again.edges == models[4].edges
    with pytest.raises(ValueError, match="'odd' is not one of"):
        generate_scm_for_difficulty("odd")


def test_samples_know_their_target():
    samples = collect_observational_data(EASY, n_samples=7)
    assert len(samples) == 7
    assert samples[0].metadata["target"] == EASY.target_name


@pytest.mark.slow
def test_all_difficulties_are_trained_on():
    """Given models are used; nothing is left out."""
    given = {name: EASY for name in ("easy", "medium", "hard")}
    params, history = optimized_progressive_learning(given, CONFIG, model=MODEL)
    assert list(history) == ["easy", "medium", "hard"]
    assert all(len(part["losses"]) == 5 for part in history.values())
    assert all(part["seconds"] > 0 for part in history.values())
    assert isinstance(params, Moments)
