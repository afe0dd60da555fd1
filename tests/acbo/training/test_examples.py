"""Oracle: masks and membership by hand, and what went in."""

import jax
import numpy as np
import pytest

from acbo.graphs import enumerate_possible_parent_sets
from acbo.training.examples import (
    TrainingBatch,
    TrainingBatchJAX,
    convert_to_jax_batch,
    encode_batch,
    encode_named,
    encode_names,
    set_bucket,
)
from causal_examples import make_example

SETS = [frozenset(), frozenset("X"), frozenset("Z"), frozenset("XZ")]
ORDER = ["X", "Y", "Z"]


def data(batch=1, rows=5, d=3, target=1):
    x = np.zeros((batch, rows, d, 3), np.float32)
    x[:, :, target, 2] = 1.0
    x[:, 2, 0, 1] = 1.0
    return x


def test_names_become_arrays():
    var_mask, target, membership, set_mask = encode_names(
        tuple(SETS), tuple(ORDER), "Y", 4, 8
    )
    np.testing.assert_array_equal(var_mask, [1, 1, 1, 0])
    assert target == 1
    assert membership.shape == (8, 4)
    np.testing.assert_array_equal(
        membership[:4], [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [1, 0, 1, 0]]
    )
    np.testing.assert_array_equal(set_mask, [1, 1, 1, 1, 0, 0, 0, 0])
    again = encode_names(tuple(SETS), tuple(ORDER), "Y", 4, 8)
    assert again[2] is membership


def test_a_batch_is_padded_and_masked():
    found = encode_batch([SETS], [ORDER], ["Y"], data(), [[0.1, 0.6, 0.2, 0.1]], [0.5])
    example = found.example
    assert example.values.shape == (1, 32, 4)
    np.testing.assert_array_equal(example.row_mask.sum(axis=1), [5])
    np.testing.assert_array_equal(np.argwhere(example.intervened), [[0, 2, 0]])
    assert found.expert_probs.shape == (1, 8)


def test_the_bucket_does_not_depend_on_what_is_in_it():
    """Two and three parents, three and four variables share one shape."""
    assert set_bucket(4, 0) == set_bucket(4, 2) == set_bucket(4, 3) == 8
    assert set_bucket(8, 3) == 64
    assert set_bucket(8, 4) == 99


def test_empty_sets_after_the_first_are_padding():
    padded = [*SETS, frozenset(), frozenset()]
    found = encode_batch([padded], [ORDER], ["Y"], data(), np.ones((1, 6)), [0.5])
    np.testing.assert_array_equal(found.example.set_mask[0], np.arange(8) < 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target_variables": ["Q"]}, "target 'Q' is not one of"),
        ({"parent_sets": [[frozenset("Y")]]}, "holds the target"),
        ({"parent_sets": [[frozenset("X"), frozenset("X")]]}, "listed twice"),
        ({"parent_sets": [[frozenset("W")]]}, "a parent set names 'W'"),
        ({"observational_data": np.zeros((1, 5, 3, 3))}, "flags no target"),
        ({"observational_data": np.zeros((5, 3, 3))}, "it is .batch, rows"),
    ],
)
def test_wrong_batches_are_refused(changes, message):
    given = {
        "parent_sets": [SETS],
        "variable_orders": [ORDER],
        "target_variables": ["Y"],
        "observational_data": data(),
        "expert_probs": np.ones((1, 4)),
        "expert_accuracies": [0.5],
    }
    for encode in (encode_batch, lambda **given: encode_named(*given.values())):
        with pytest.raises(ValueError, match=message):
            encode(**{**given, **changes})


def test_sizes_mix_in_one_bucket():
    examples = [make_example(0, d=3, rows=20), make_example(1, d=4, rows=31)]
    batch = convert_to_jax_batch(TrainingBatch(examples))
    arrays = batch.arrays.example
    assert batch.batch_size == 2
    assert batch.observational_data.shape == (2, 32, 4, 3)
    assert batch.expert_probs.shape == (2, 8)
    assert arrays.membership.shape == (2, 8, 4)
    np.testing.assert_array_equal(arrays.row_mask.sum(axis=1), [20, 31])
    np.testing.assert_array_equal(arrays.var_mask.sum(axis=1), [3, 4])
    np.testing.assert_array_equal(arrays.set_mask.sum(axis=1), [4, 8])
    for i, example in enumerate(examples):
        names, d = list(example.variable_order), len(example.variable_order)
        x = np.asarray(batch.observational_data[i])
        rows = len(example.observational_data)
        np.testing.assert_array_equal(x[:rows, :d], example.observational_data)
        np.testing.assert_array_equal(x[rows:], 0.0)
        assert int(arrays.target_idx[i]) == names.index(example.target_variable)
        for k, members in enumerate(batch.parent_sets[i]):
            chance = example.expert_posterior.parent_set_probs[members]
            assert float(batch.expert_probs[i, k]) == pytest.approx(chance, abs=1e-6)
            held = np.flatnonzero(arrays.membership[i, k])
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
    jax.tree.map(np.testing.assert_array_equal, again.arrays, batch.arrays)


def test_empty_batches_are_refused():
    with pytest.raises(ValueError, match="Cannot convert empty batch"):
        convert_to_jax_batch(TrainingBatch([]))
