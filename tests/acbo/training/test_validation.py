"""Oracle: NumPy over the posteriors, and predictors whose scores are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.surrogate.losses import expert_vector
from acbo.training.batches import convert_to_jax_batch
from acbo.training.examples import TrainingBatch
from acbo.training.validation import (
    expected_gap,
    predict_examples,
    validate_surrogate_performance,
)
from causal_examples import make_example
from causal_surrogates import stand_in

MODEL = stand_in()
EXAMPLES = [
    make_example(seed, d=3 + seed % 2, truth=seed > 1, difficulty=difficulty)
    for seed, difficulty in enumerate(["easy", "easy", "hard", "hard", "hard"])
]


@pytest.fixture(scope="module")
def results():
    params = MODEL.init(jax.random.key(0))
    found = validate_surrogate_performance(MODEL, params, EXAMPLES, [0.5, 1.5], None)
    return params, found


def test_divergences_are_those_of_the_logits(results):
    params, found = results
    batch = convert_to_jax_batch(TrainingBatch(EXAMPLES))
    logits = MODEL.scores(params, batch.arrays.example)
    forward, backward, distance = [], [], []
    for row, sets, example in zip(logits, batch.parent_sets, EXAMPLES, strict=True):
        q = np.asarray(jax.nn.softmax(row[: len(sets)]), np.float64)
        p = np.asarray(expert_vector(example.expert_posterior, sets), np.float64)
        forward.append(np.sum(p * np.log(p / q)))
        backward.append(np.sum(q * np.log(q / p)))
        distance.append(np.abs(p - q).sum() / 2)
    assert found.posterior_kl_divergence == pytest.approx(np.mean(forward), rel=1e-3)
    assert found.reverse_kl_divergence == pytest.approx(np.mean(backward), rel=1e-3)
    assert found.total_variation_distance == pytest.approx(np.mean(distance), rel=1e-3)


def test_accuracy_and_uncertainty(results):
    params, found = results
    predicted, seconds = predict_examples(MODEL, params, EXAMPLES)
    right = [
        p.top_sets(1)[0][0] == (e.true_parents or e.expert_posterior.top_sets(1)[0][0])
        for p, e in zip(predicted, EXAMPLES, strict=True)
    ]
    accuracy = np.mean([e.expert_accuracy for e in EXAMPLES])
    assert found.accuracy_drop == pytest.approx(accuracy - np.mean(right))
    assert found.easy_accuracy == np.mean(right[:2])
    assert found.hard_accuracy == np.mean(right[2:])
    assert np.isnan(found.medium_accuracy)
    entropies = [e.expert_posterior.uncertainty for e in EXAMPLES]
    expected = np.corrcoef(entropies, [p.uncertainty for p in predicted])[0, 1]
    assert found.uncertainty_correlation == pytest.approx(expected)
    assert found.inference_speedup > 0
    assert seconds > 0
    assert 0 <= found.calibration_error <= 1


def test_gaps_by_hand():
    """Bins [0.2, 0.3) and [0.9, 1]: gaps |0.5 - 1| and |1.9 - 1| over 4."""
    chances = np.asarray([0.25, 0.25, 0.9, 1.0])
    outcomes = np.asarray([1.0, 0.0, 1.0, 0.0])
    assert expected_gap(chances, outcomes) == pytest.approx((0.5 + 0.9) / 4)
    assert expected_gap(outcomes, outcomes) == 0.0


def test_one_compilation_for_all_validations(results):
    params, _ = results
    validate_surrogate_performance(
        MODEL, jax.tree.map(jnp.zeros_like, params), EXAMPLES, 1.0
    )
    assert MODEL.scores.trace_count == 1  # pyright: ignore
    with pytest.raises(ValueError, match="no validation examples"):
        validate_surrogate_performance(MODEL, params, [], 1.0)
