"""Oracle: the table of levels, and the truth of the models."""

import jax
import jax.numpy as jnp
import optax
import pytest

from acbo.named.relations import get_parents
from acbo.surrogate.losses import kl_divergence_loss
from acbo.training.config import SurrogateTrainingConfig
from acbo.training.curriculum import LEVELS
from acbo.training.parent_set_model import ParentSetModel
from acbo.training.progressive import (
    collect_observational_data,
    evaluate_on_held_out_set,
    generate_scm_for_difficulty,
    optimized_progressive_learning,
    train_on_difficulty_level,
)
from acbo.training.steps import create_jax_surrogate_train_step
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


def test_training_on_one_level_lowers_the_loss():
    step = create_jax_surrogate_train_step(
        MODEL, optax.adam(0.05), kl_divergence_loss, CONFIG
    )
    params = MODEL.init(jax.random.key(0))
    samples = collect_observational_data(EASY, 20)
    after, losses = train_on_difficulty_level(step, samples, params, epochs=15)
    assert len(losses) == 15
    assert losses[-1] < losses[0]
    assert not jnp.array_equal(after.weight, params.weight)


@pytest.mark.slow
def test_all_difficulties_are_trained_on():
    """Given models are used; nothing is left out."""
    given = {name: EASY for name in ("easy", "medium", "hard")}
    params, history = optimized_progressive_learning(given, CONFIG, model=MODEL)
    assert list(history) == ["easy", "medium", "hard"]
    assert all(len(part["losses"]) == 5 for part in history.values())
    assert all(part["seconds"] > 0 for part in history.values())
    assert isinstance(params, Moments)


def test_f1_by_difficulty():
    """Weights that call every variable a parent: F1 = 2m / (m + d - 1)."""
    weights = jnp.asarray([0.0, 9.0, 0.0, 0.0])
    model = ParentSetModel(lambda key: Moments(False, key), 4)
    params = jax.tree.map(lambda _: weights, model.init(jax.random.key(0)))
    found = evaluate_on_held_out_set(params, [EASY], model, n_samples=20)
    assert EASY.target_name is not None
    m, d = len(get_parents(EASY, EASY.target_name)), len(EASY.names)
    assert found == {
        "easy": pytest.approx(2 * m / (m + d - 1)),
        "overall": found["easy"],
    }
