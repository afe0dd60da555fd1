"""Oracle: the model that the samples came from."""

import numpy as np
import pytest

from acbo.named.model import create_linear_scm
from acbo.named.samples import sample_from_scm
from acbo.training.examples import TrainingBatch, convert_to_jax_batch
from acbo.training.progressive import (
    create_training_batch,
    example_from_samples,
    expert_posterior,
    with_notes,
)

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
    with pytest.raises(ValueError, match="which variable is the target"):
        create_training_batch(sample_from_scm(SCM, 5))


def test_the_exact_expert_has_a_limit():
    names = [f"X{i}" for i in range(17)]
    data = np.random.default_rng(0).normal(size=(20, 17, 3))
    data[..., 1] = 0.0
    with pytest.raises(ValueError, match="17 variables are too many"):
        expert_posterior(data, names, "X0")
