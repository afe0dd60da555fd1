"""Oracle: the table of levels, and the truth of the models.

Oracle: the model that the samples came from.

Oracle: the sizes that the guide names.
"""

import jax
import numpy as np
import pytest

from acbo.named.model import create_linear_scm, get_parents
from acbo.named.samples import sample_from_scm
from acbo.named.tables import samples_to_avici_data
from acbo.training.config import SurrogateTrainingConfig
from acbo.training.curriculum import LEVELS
from acbo.training.examples import TrainingBatch, convert_to_jax_batch
from acbo.training.parent_set_model import create_parent_set_model
from acbo.training.progressive import (
    collect_observational_data,
    create_test_batch,
    create_test_model,
    create_training_batch,
    example_from_samples,
    expert_posterior,
    generate_scm_for_difficulty,
    optimized_progressive_learning,
    test_config,
    with_notes,
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


SCM = create_linear_scm(
    ("A", "B", "Y"), {("A", "Y"): 2.0, ("Y", "B"): 1.5}, "Y", noise_scales=0.7
)


@pytest.fixture(scope="module")
def samples():
    return with_notes(sample_from_scm(SCM, 30, seed=1), SCM)


def test_samples_say_what_they_are_of(samples):
    assert samples[0].metadata == {"target": "Y", "true_parents": ("A",)}
    untargeted = create_linear_scm(("A", "B"), {("A", "B"): 1.0})
    with pytest.raises(ValueError, match="the model has no target"):
        with_notes(samples, untargeted)


def test_an_example_of_samples(samples):
    example = example_from_samples(samples)
    assert example.target_variable == "Y"
    assert example.true_parents == frozenset("A")
    assert example.observational_data.shape == (30, 3, 3)
    chances = example.expert_posterior.parent_set_probs
    assert len(chances) == 4
    assert example.expert_accuracy == pytest.approx(chances[frozenset("A")])
    # Observed only, A -> Y -> B, A <- Y <- B and A <- Y -> B cannot be told apart.
    for members in ("", "A", "B"):
        assert 0.1 < chances[frozenset(members)] < 0.6
    unknown = example_from_samples(sample_from_scm(SCM, 30, seed=1), "Y")
    assert unknown.true_parents is None
    assert unknown.expert_accuracy == unknown.expert_posterior.top_k_sets[0][1]


def test_the_guides_form_feeds_the_compiled_step(samples):
    batch = create_training_batch(samples)
    assert isinstance(batch, TrainingBatch)
    assert convert_to_jax_batch(batch).observational_data.shape == (1, 32, 4, 3)
    with pytest.raises(ValueError, match="the target is unknown"):
        create_training_batch(sample_from_scm(SCM, 5))


def test_a_model_and_its_samples_become_a_dictionary(samples):
    batch = create_training_batch(SCM, samples, is_count_data=False)
    names, target = batch["variable_order"], batch["target_variable"]
    assert (list(SCM.names), SCM.target_name) == (names, target)
    expected = samples_to_avici_data(samples, names, target)
    np.testing.assert_array_equal(batch["x"], expected)
    pairs = {(names[i], names[j]) for i, j in zip(*np.nonzero(batch["g"]), strict=True)}
    assert pairs == set(SCM.edges)
    notes = {"n_samples": len(samples), "n_variables": len(names)}
    assert batch["metadata"] == {**notes, "standardization_type": "default"}


def test_the_exact_expert_has_a_limit():
    names = [f"X{i}" for i in range(17)]
    data = np.random.default_rng(0).normal(size=(20, 17, 3))
    data[..., 1] = 0.0
    with pytest.raises(ValueError, match="17 variables are too many"):
        expert_posterior(data, names, "X0")


def test_sizes_of_the_guide():
    assert (test_config.model_hidden_dim, test_config.model_n_layers) == (16, 2)
    assert test_config.dropout == 0.0
    batch = create_test_batch()
    assert batch.batch_size == 3
    assert batch.examples[0].observational_data.shape == (20, 3, 3)
    assert [len(sets) for sets in convert_to_jax_batch(batch).parent_sets] == [4, 4, 4]


def test_the_model_is_the_one_of_its_settings():
    model = create_parent_set_model(test_config.get_model_kwargs())
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    made = jax.eval_shape(lambda: create_test_model()[1])
    assert jax.tree.leaves(made) == jax.tree.leaves(shapes)
