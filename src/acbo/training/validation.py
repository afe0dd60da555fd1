"""How well a surrogate stands in for its expert on examples it did not see."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from acbo.posterior import (
    ParentSetPosterior,
    compare_posteriors,
)
from acbo.training.batches import convert_to_jax_batch
from acbo.training.curriculum import DIFFICULTIES
from acbo.training.examples import TrainingBatch, TrainingExample
from acbo.training.parent_set_model import ParentSetModel, posterior_from_logits
from acbo.training.records import ValidationResults

CALIBRATION_BINS = 10


def predict_examples(
    model: ParentSetModel, params: PyTree, examples: Sequence[TrainingExample]
) -> tuple[list[ParentSetPosterior], float]:
    """The model's posterior of every example, and seconds per example once compiled."""
    batch = convert_to_jax_batch(TrainingBatch(examples, model.max_parent_size))
    data = batch.arrays.example
    jax.block_until_ready(model.scores(params, data))
    start = perf_counter()
    logits = np.asarray(model.scores(params, data))
    seconds = (perf_counter() - start) / len(examples)
    found = [
        posterior_from_logits(e.target_variable, sets, row, _names(e))
        for row, sets, e in zip(logits, batch.parent_sets, examples, strict=True)
    ]
    return found, seconds


def _names(example: TrainingExample) -> dict[str, Any]:
    return {"all_variables": tuple(example.variable_order)}


def expected_gap(chances: np.ndarray, outcomes: np.ndarray) -> float:
    """Expected calibration error over ten bins: mean |probability - frequency|."""
    place = np.minimum((chances * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    gaps = np.bincount(place, chances - outcomes, minlength=CALIBRATION_BINS)
    return float(np.abs(gaps).sum() / max(len(chances), 1))


def _marginal_gap(
    examples: Sequence[TrainingExample], predicted: Sequence[ParentSetPosterior]
) -> float:
    chances: list[float] = []
    outcomes: list[float] = []
    for example, posterior in zip(examples, predicted, strict=True):
        truth = example.true_parents
        expert = example.expert_posterior.parent_probs(list(example.variable_order))
        for name, chance in posterior.parent_probs().items():
            chances.append(chance)
            outcomes.append(expert[name] if truth is None else float(name in truth))
    return expected_gap(np.asarray(chances), np.asarray(outcomes))


def _correlation(one: list[float], other: list[float]) -> float:
    """Pearson's; NaN where either does not vary."""
    if len(one) < 2 or np.std(one) == 0 or np.std(other) == 0:
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])


def _is_right(example: TrainingExample, posterior: ParentSetPosterior) -> float:
    truth = example.true_parents
    if truth is None:
        truth = example.expert_posterior.top_k_sets[0][0]
    return float(posterior.top_k_sets[0][0] == truth)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def validate_surrogate_performance(
    model: ParentSetModel,
    params: PyTree,
    validation_examples: Sequence[TrainingExample],
    expert_timing: Any,
    key: Any = None,
) -> ValidationResults:
    """Compare the model with the expert; `expert_timing` is its seconds per example,
    or a list of seconds. Nothing random happens, so the key is not used.

    Accuracy is that of the likeliest set, against the true set where it is known and
    the expert's likeliest where not.
    """
    examples = list(validation_examples)
    if not examples:
        raise ValueError("there are no validation examples: give at least one")
    predicted, seconds = predict_examples(model, params, examples)
    experts = [example.expert_posterior for example in examples]
    compared = [
        compare_posteriors(p, q) for p, q in zip(experts, predicted, strict=True)
    ]
    mean = lambda name: _mean([one[name] for one in compared])
    right = list(map(_is_right, examples, predicted))
    of = lambda level: [
        r for r, e in zip(right, examples, strict=True) if e.problem_difficulty == level
    ]
    return ValidationResults(
        mean("kl_divergence_1_to_2"),
        mean("kl_divergence_2_to_1"),
        mean("total_variation_distance"),
        _marginal_gap(examples, predicted),
        _correlation([p.uncertainty for p in experts], [q.entropy for q in predicted]),
        _mean([e.expert_accuracy for e in examples]) - _mean(right),
        float(np.mean(expert_timing)) / max(seconds, 1e-9),
        *(_mean(of(level)) for level in DIFFICULTIES),
    )
