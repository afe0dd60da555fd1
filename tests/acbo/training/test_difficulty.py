"""Oracle: the table of difficulties, the model of the samples, the guide's sizes."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from acbo.named.model import create_linear_scm, get_parents
from acbo.named.samples import sample_from_scm, samples_to_avici_data
from acbo.training import difficulty
from acbo.training.difficulty import (
    DIFFICULTIES,
    classify_difficulty,
    collect_observational_data,
    create_test_batch,
    create_test_model,
    create_training_batch,
    generate_scm_for_difficulty,
    optimized_progressive_learning,
    test_config,
)
from acbo.training.examples import convert_to_jax_batch
from acbo.training.parent_set_model import create_parent_set_model
from causal_surrogates import stand_in


@pytest.mark.parametrize("name", DIFFICULTIES)
def test_models_follow_their_difficulty(name):
    level = DIFFICULTIES[name]
    models = [generate_scm_for_difficulty(name, seed) for seed in range(5)]
    for scm in models:
        assert level.variables[0] <= len(scm.names) <= level.variables[1]
        assert len(scm.edges) <= level.edges[1]
        assert scm.target_name is not None
        parents = [len(get_parents(scm, name)) for name in scm.names]
        assert max(parents) <= 3
        assert len(get_parents(scm, scm.target_name)) >= 1
    again = generate_scm_for_difficulty(name, 4)
    assert again.edges == models[4].edges
    with pytest.raises(ValueError, match="difficulty 'odd' is not known"):
        generate_scm_for_difficulty("odd")


SCM = create_linear_scm(
    ("A", "B", "Y"), {("A", "Y"): 2.0, ("Y", "B"): 1.5}, "Y", noise_scales=0.7
)


def test_samples_say_what_they_are_of():
    samples = collect_observational_data(SCM, 3, seed=1)
    assert len(samples) == 3
    assert samples[0].metadata == {"target": "Y", "true_parents": ("A",)}
    untargeted = create_linear_scm(("A", "B"), {("A", "B"): 1.0})
    with pytest.raises(ValueError, match="the model has no target"):
        collect_observational_data(untargeted)


def test_samples_are_labeled_by_the_exact_expert():
    batch = create_training_batch(collect_observational_data(SCM, 30, seed=1))
    (example,) = batch.examples
    assert example.target_variable == "Y"
    assert example.scm_info["true_parents"] == ("A",)
    assert convert_to_jax_batch(batch).observational_data.shape == (1, 32, 4, 3)
    chances = example.expert_posterior.parent_set_probs
    assert len(chances) == 4
    assert example.expert_accuracy == pytest.approx(chances[frozenset("A")])
    # Observed only, A -> Y -> B, A <- Y <- B and A <- Y -> B cannot be told apart.
    for members in ("", "A", "B"):
        assert 0.1 < chances[frozenset(members)] < 0.6
    plain = sample_from_scm(SCM, 30, seed=1)
    (unknown,) = create_training_batch(plain, "Y").examples
    assert unknown.expert_accuracy == unknown.expert_posterior.top_k_sets[0][1]
    with pytest.raises(ValueError, match="the target is unknown"):
        create_training_batch(plain)


def test_a_model_and_its_samples_become_a_dictionary():
    samples = sample_from_scm(SCM, 30, seed=1)
    batch = create_training_batch(SCM, samples, is_count_data=False)
    names, target = batch["variable_order"], batch["target_variable"]
    assert (list(SCM.names), SCM.target_name) == (names, target)
    expected = samples_to_avici_data(samples, names, target)
    np.testing.assert_array_equal(batch["x"], expected)
    pairs = {(names[i], names[j]) for i, j in zip(*np.nonzero(batch["g"]), strict=True)}
    assert pairs == set(SCM.edges)
    notes = {"n_samples": len(samples), "n_variables": len(names)}
    assert batch["metadata"] == {**notes, "standardization_type": "default"}


def test_sizes_of_the_guide():
    assert (test_config.model_hidden_dim, test_config.model_n_layers) == (16, 2)
    assert test_config.dropout == 0.0
    batch = create_test_batch()
    assert batch.batch_size == 3
    assert batch.examples[0].observational_data.shape == (20, 3, 3)
    assert [len(sets) for sets in convert_to_jax_batch(batch).parent_sets] == [4, 4, 4]
    model = create_parent_set_model(test_config.get_model_kwargs())
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    made = jax.eval_shape(lambda: create_test_model()[1])
    assert jax.tree.leaves(made) == jax.tree.leaves(shapes)


@pytest.mark.parametrize(
    ("nodes", "accuracy", "wanted"),
    [(5, 0.91, "easy"), (5, 0.9, "medium"), (6, 1.0, "medium"), (8, 0.7, "hard")],
)
def test_difficulty_of_an_example(nodes, accuracy, wanted):
    assert classify_difficulty(nodes, accuracy) == wanted


class ScriptedStep:
    """A step that learns nothing; on fresh rows its loss is lowest the second time."""

    def __init__(self, *_):
        self.sizes, self.rows, self.fresh = [], None, 0

    def start(self, params):
        return None

    def __call__(self, params, opt_state, batch, key):
        self.sizes.append(batch.batch_size)
        rows = np.asarray(batch.examples[0].observational_data)
        self.rows = rows if self.rows is None else self.rows
        if len(self.sizes) % 2 == 1 and not (rows == self.rows).all():
            self.fresh += 1
        return params, opt_state, {"total_loss": 1.0, "kl_loss": abs(self.fresh - 2.0)}


def test_an_epoch_goes_by_batches_and_ends_when_fresh_rows_gain_no_more(monkeypatch):
    made = []
    make = lambda *given: made.append(ScriptedStep()) or made[-1]
    monkeypatch.setattr(difficulty, "create_jax_surrogate_train_step", make)
    monkeypatch.setattr(difficulty, "create_parent_set_model", lambda _: stand_in())
    monkeypatch.setattr(difficulty, "DIFFICULTIES", {"easy": DIFFICULTIES["easy"]})
    config = replace(
        test_config,
        batch_size=2,
        max_epochs=50,
        validation_frequency=3,
        early_stopping_patience=2,
    )
    _, history = optimized_progressive_learning([SCM] * 3, config)
    # Looked at after 3, 6, 9 and 12 epochs: twice no better than after 6.
    assert history["easy"]["validation_losses"] == [1.0, 0.0, 1.0, 2.0]
    assert history["easy"]["losses"] == [1.0] * 12
    assert made[0].sizes == [2, 1] * (12 + 4)


@pytest.mark.slow
def test_training_goes_from_easy_to_hard():
    config = replace(test_config, max_epochs=30)
    _, history = optimized_progressive_learning([], config)
    assert list(history) == ["easy", "medium", "hard"]
    for found in history.values():
        assert len(found["losses"]) == 30
        assert found["losses"][-1] < found["losses"][0]
