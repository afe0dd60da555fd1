import pytest

from acbo.named.interventions import (
    as_array,
    as_arrays,
    check_values,
    create_perfect_intervention,
    create_shift_intervention,
)
from causal_models import triangle


def test_a_spec_holds_what_was_asked():
    spec = create_perfect_intervention({"A", "B"}, {"B": 2, "A": 0.1}, {"note": 1})
    assert spec["type"] == "perfect"
    assert spec["targets"] == {"A", "B"}
    assert spec["values"] == {"A": 0.1, "B": 2.0}
    assert spec["metadata"] == {"note": 1}
    with pytest.raises(KeyError, match="targets"):
        spec["target"]


@pytest.mark.parametrize(
    ("targets", "values", "words"),
    [
        (set(), {}, "targets is empty"),
        ({"A"}, {}, "'A' has no value"),
        ({"A"}, {"A": 1.0, "B": 1.0}, "'B' has a value"),
        (["A"], {"A": 1.0}, "is no set"),
        ({"A"}, [1.0], "is no dictionary"),
        ({"A"}, {"A": float("nan")}, "value of 'A' is nan"),
    ],
)
def test_wrong_specs_are_named(targets, values, words):
    with pytest.raises(ValueError, match=words):
        create_perfect_intervention(targets, values)


def test_arrays_put_values_into_columns():
    scm = triangle()
    done = as_array(scm, create_perfect_intervention({"B"}, {"B": 2.0}))
    assert done.mask.tolist() == [False, True, False]
    assert done.values.tolist() == [0.0, 2.0, 0.0]
    moved = as_array(scm, create_shift_intervention({"A"}, {"A": 9.0}))
    assert not moved.mask.any()
    assert moved.shift.tolist() == [9.0, 0.0, 0.0]
    assert not as_array(scm, None).mask.any()
    stack = as_arrays(scm, [None, create_perfect_intervention({"B"}, {"B": 2.0})])
    assert stack.mask.tolist() == [[False] * 3, [False, True, False]]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"Q": 1.0}, "'Q' is not one of: A, B, C"),
        ({"C": 1.0}, "'C' is the target"),
        ({"A": 1.0}, "'A' has no range and cannot be set; settable are: B"),
        ({"B": 6.0}, "value 6 of 'B' is outside its range -5 to 5"),
        ({"B": "x"}, "value of 'B' is 'x'"),
    ],
)
def test_what_the_model_does_not_allow_is_refused(values, words):
    with pytest.raises(ValueError, match=words):
        check_values(triangle(ranges={"B": (-5.0, 5.0)}), values)


def test_hidden_variables_cannot_be_set():
    scm = triangle(hidden=("A",), ranges=None)
    with pytest.raises(ValueError, match="'A' is hidden"):
        check_values(scm, {"A": 1.0})


def test_both_ends_of_a_range_are_allowed():
    scm = triangle(ranges={"B": (-0.3, 0.7)})
    assert check_values(scm, {"B": 0.7}) == {"B": 0.7}
    assert check_values(scm, {"B": -0.3}) == {"B": -0.3}
