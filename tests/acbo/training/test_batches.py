"""Oracle: what went in."""

import numpy as np
import pytest

from acbo.graphs import enumerate_possible_parent_sets
from acbo.training.examples import TrainingBatch, TrainingBatchJAX, convert_to_jax_batch
from causal_examples import make_example


def test_sizes_mix_in_one_bucket():
    examples = [make_example(0, d=3, rows=20), make_example(1, d=4, rows=31)]
    batch = convert_to_jax_batch(TrainingBatch(examples))
    assert batch.batch_size == 2
    assert batch.observational_data.shape == (2, 32, 4, 3)
    assert batch.expert_probs.shape == (2, 8)
    assert batch.membership.shape == (2, 8, 4)
    np.testing.assert_array_equal(batch.row_mask.sum(axis=1), [20, 31])
    np.testing.assert_array_equal(batch.var_mask.sum(axis=1), [3, 4])
    np.testing.assert_array_equal(batch.set_mask.sum(axis=1), [4, 8])
    for i, example in enumerate(examples):
        names, d = list(example.variable_order), len(example.variable_order)
        x = np.asarray(batch.observational_data[i])
        rows = len(example.observational_data)
        np.testing.assert_array_equal(x[:rows, :d], example.observational_data)
        np.testing.assert_array_equal(x[rows:], 0.0)
        assert int(batch.target_idx[i]) == names.index(example.target_variable)
        for k, members in enumerate(batch.parent_sets[i]):
            chance = example.expert_posterior.parent_set_probs[members]
            assert float(batch.expert_probs[i, k]) == pytest.approx(chance, abs=1e-6)
            held = np.flatnonzero(batch.membership[i, k])
            assert {names[j] for j in held} == members


def test_experts_of_larger_sets_widen_the_candidates():
    batch = convert_to_jax_batch(
        TrainingBatch([make_example(2, d=6, max_parents=4)], max_parent_size=2)
    )
    (sets,) = batch.parent_sets
    order = list(batch.variable_orders[0])
    target = batch.target_variables[0]
    assert list(sets) == enumerate_possible_parent_sets(order, target, 4)


def test_the_six_arguments_say_the_same_as_the_batch():
    batch = convert_to_jax_batch(TrainingBatch([make_example(3), make_example(4)]))
    args = batch.as_args()
    assert len(args) == 6
    again = TrainingBatchJAX(args[3], args[4], args[5], *args[:3])
    for name in ("row_mask", "var_mask", "set_mask", "target_idx", "membership"):
        np.testing.assert_array_equal(getattr(again, name), getattr(batch, name))


def test_empty_batches_are_refused():
    with pytest.raises(ValueError, match="Cannot convert empty batch"):
        convert_to_jax_batch(TrainingBatch([]))
