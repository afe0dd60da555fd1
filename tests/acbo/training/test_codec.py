"""Oracle: masks and membership by hand."""

import numpy as np
import pytest

from acbo.training.examples import UNKNOWN, encode_batch, encode_names, set_bucket
from acbo.training.examples import true_places as places

SETS = [frozenset(), frozenset("X"), frozenset("Z"), frozenset("XZ")]
ORDER = ["X", "Y", "Z"]


def data(batch=1, rows=5, d=3, target=1):
    x = np.zeros((batch, rows, d, 3), np.float32)
    x[:, :, target, 2] = 1.0
    x[:, 2, 0, 1] = 1.0
    return x


def test_names_become_arrays():
    var_mask, target, membership, set_mask = encode_names(
        tuple(SETS), tuple(ORDER), "Y", 4, None
    )
    np.testing.assert_array_equal(var_mask, [1, 1, 1, 0])
    assert target == 1
    assert membership.shape == (8, 4)
    np.testing.assert_array_equal(
        membership[:4], [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [1, 0, 1, 0]]
    )
    np.testing.assert_array_equal(set_mask, [1, 1, 1, 1, 0, 0, 0, 0])
    again = encode_names(tuple(SETS), tuple(ORDER), "Y", 4, None)
    assert again[2] is membership


def test_a_batch_is_padded_and_masked():
    found = encode_batch([SETS], [ORDER], ["Y"], data(), [[0.1, 0.6, 0.2, 0.1]], [0.5])
    example = found.example
    assert example.values.shape == (1, 32, 4)
    np.testing.assert_array_equal(example.row_mask.sum(axis=1), [5])
    np.testing.assert_array_equal(np.argwhere(example.intervened), [[0, 2, 0]])
    assert found.expert_probs.shape == (1, 8)
    np.testing.assert_array_equal(found.true_index, [UNKNOWN])


def test_the_bucket_does_not_depend_on_what_is_in_it():
    """Two and three parents, three and four variables share one shape."""
    assert set_bucket(4, 0) == set_bucket(4, 2) == set_bucket(4, 3) == 8
    assert set_bucket(8, 3) == 64
    assert set_bucket(8, 4) == 99


def test_empty_sets_after_the_first_are_padding():
    padded = [*SETS, frozenset(), frozenset()]
    found = encode_batch([padded], [ORDER], ["Y"], data(), np.ones((1, 6)), [0.5])
    np.testing.assert_array_equal(found.example.set_mask[0], np.arange(8) < 4)


def test_true_sets_are_found():
    assert places(
        [SETS, SETS, SETS], [frozenset("Z"), None, frozenset("Q")]
    ).tolist() == [*(2, UNKNOWN, UNKNOWN)]


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
    with pytest.raises(ValueError, match=message):
        encode_batch(**{**given, **changes})
