import dataclasses
from typing import cast

import numpy as np
import pytest

from acbo.named import samples
from acbo.named.model import linear_form
from acbo.named.samples import (
    apply_intervention,
    as_array,
    check_values,
    create_sample,
    create_soft_intervention,
    sample_from_scm,
    sample_with_intervention,
)
from acbo.named.samples import create_perfect_intervention as perfect
from causal_models import triangle


def values_of(rows, name):
    return np.array([row.values[name] for row in rows])


def test_observational_and_interventional():
    seen = create_sample({"X": 1, "Y": 2.0}, metadata={"day": 3})
    done = create_sample({"X": 1.0, "Y": 2.0}, "perfect", {"X"})
    assert seen.values == {"X": 1.0, "Y": 2.0} == seen["values"]
    assert seen.metadata == {"day": 3}
    assert seen.intervention_type is None
    assert done.intervention_type == "perfect" == done["intervention_type"]
    assert done.intervention_targets == {"X"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen.values = {}  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(KeyError, match="intervention_targets"):
        seen["targets"]
    spec = perfect({"A", "B"}, {"B": 2, "A": 0.1}, {"note": 1})
    assert (spec["type"], spec["targets"]) == ("perfect", {"A", "B"})
    assert spec["values"] == {"A": 0.1, "B": 2.0}
    assert spec["metadata"] == {"note": 1}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (({},), "without values"),
        (({"X": 1.0}, "perfect"), "give both"),
        (({"X": 1.0}, None, {"X"}), "give both"),
        (({"X": 1.0}, "perfect", {"Q"}), "target 'Q' is not known; .* There are: X"),
        (({"X": float("nan")},), "value of 'X' is nan"),
    ],
)
def test_wrong_samples_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        create_sample(*arguments)


@pytest.mark.parametrize(
    ("targets", "values", "words"),
    [
        (set(), {}, "targets is empty"),
        ({"A"}, {}, "'A' has no value"),
        ({"A"}, {"A": 1.0, "B": 1.0}, "'B' has a value"),
        (["A"], {"A": 1.0}, "is not a set"),
        ({"A"}, [1.0], "is not a dictionary"),
        ({"A"}, {"A": float("nan")}, "value of 'A' is nan"),
    ],
)
def test_wrong_specs_are_named(targets, values, words):
    with pytest.raises(ValueError, match=words):
        perfect(targets, values)


def test_arrays_put_values_into_columns():
    scm = triangle()
    done = as_array(scm, perfect({"B"}, {"B": 2.0}))
    assert done.mask.tolist() == [False, True, False]
    assert done.values.tolist() == [0.0, 2.0, 0.0]
    moved = as_array(scm, create_soft_intervention({"A"}, {"A": 9.0}))
    assert not moved.mask.any()
    assert moved.shift.tolist() == [9.0, 0.0, 0.0]
    wider = as_array(scm, create_soft_intervention({"B"}, scale={"B": 3.0}))
    assert wider.scale.tolist() == [1.0, 3.0, 1.0]
    assert not wider.shift.any()
    assert not as_array(scm, None).mask.any()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"Q": 1.0}, "'Q' is not known; .* There are: A, B, C"),
        ({"C": 1.0}, "'C' is the target"),
        ({"A": 1.0}, "'A' has no range and cannot be set; settable are: B"),
        ({"B": 6.0}, "value 6 of 'B' is outside its range -5 to 5"),
        ({"B": "x"}, "value of 'B' is 'x'"),
    ],
)
def test_what_the_model_does_not_allow_is_refused(values, words):
    with pytest.raises(ValueError, match=words):
        check_values(triangle(ranges={"B": (-5.0, 5.0)}), values)


def test_hidden_variables_are_refused_and_both_ends_of_a_range_allowed():
    with pytest.raises(ValueError, match="'A' is hidden"):
        check_values(triangle(hidden=("A",), ranges=None), {"A": 1.0})
    scm = triangle(ranges={"B": (-0.3, 0.7)})
    for end in (-0.3, 0.7):
        assert check_values(scm, {"B": end}) == {"B": end}


def test_perfect_makes_a_constant_in_a_copy():
    scm = triangle()
    spec = perfect({"B"}, {"B": 0.5})
    done = apply_intervention(scm, spec)
    assert done.edges == scm.edges
    assert scm.metadata == {}
    assert done.metadata == {
        "intervention_applied": True,
        "intervention_type": "perfect",
        "intervention_targets": {"B"},
        "intervention_values": {"B": 0.5},
    }
    # The changed model and the compiled intervention tell the same story.
    through_model = sample_from_scm(done, 4, seed=3)
    through_arrays = sample_with_intervention(scm, spec, 4, seed=3)
    np.testing.assert_allclose(
        values_of(through_model, "C"), values_of(through_arrays, "C"), atol=1e-6
    )
    assert set(values_of(through_model, "B")) == {0.5}


@pytest.mark.parametrize("bounds", [None, (-9.0, 9.0)])
def test_soft_interventions_scale_shift_and_keep_the_causes(bounds):
    """Of a linear mechanism and of one that is wrapped, by the model and by arrays."""
    scm = triangle()
    linear = dataclasses.replace(
        scm.mechanisms["B"],
        output_bounds=None if bounds is None else np.array(bounds),
    )
    scm = dataclasses.replace(scm, mechanisms=scm.mechanisms | {"B": linear})
    spec = create_soft_intervention({"A", "B"}, {"A": 1, "B": 2}, {"A": 1, "B": 0.5})
    through_model = sample_from_scm(apply_intervention(scm, spec), 4, seed=3)
    through_arrays = sample_with_intervention(scm, spec, 4, seed=3)
    seen = sample_with_intervention(
        scm, create_soft_intervention({"A"}, {"A": 1.0}), 4, seed=3
    )
    for rows in (through_model, through_arrays):
        expected = values_of(seen, "B") / 2 + 2
        np.testing.assert_allclose(values_of(rows, "B"), expected, atol=1e-5)
    assert {row.intervention_type for row in through_arrays} == {"soft"}


def test_a_linear_model_stays_linear_under_soft_interventions():
    scm = triangle()
    spec = create_soft_intervention({"B"}, {"B": 2.0}, {"B": 0.5})
    form, soft = linear_form(scm), linear_form(apply_intervention(scm, spec))
    b = scm.names.index("B")
    expected = [form.weight.copy(), form.intercept.copy(), form.noise_scale.copy()]
    for numbers in expected:
        numbers[..., b] *= 0.5
    expected[1][b] += 2
    total = np.linalg.inv(np.eye(3) - expected[0].T)
    mean, covariance = soft.moments()
    np.testing.assert_allclose(mean, total @ expected[1], atol=1e-6)
    noise = np.diag(expected[2] ** 2)
    np.testing.assert_allclose(covariance, total @ noise @ total.T, atol=1e-6)


@pytest.mark.parametrize(
    ("shift", "scale", "words"),
    [
        (None, None, "neither shift nor scale is given"),
        ({"B": 1.0}, {"A": 2.0}, "target 'B' has no scale: give one"),
        (None, {"B": -1.0}, "scale -1 of 'B' is negative"),
        (2.0, None, "shifts=2.0 is not a dictionary"),
    ],
)
def test_soft_interventions_that_say_nothing_are_refused(shift, scale, words):
    with pytest.raises(ValueError, match=words):
        create_soft_intervention({"B"}, shift, scale)


def test_targets_of_soft_interventions_are_checked_first():
    with pytest.raises(ValueError, match="targets=None is not a set"):
        create_soft_intervention(None, scale={"B": 2.0})


@pytest.mark.parametrize(
    ("name", "words"), [("Q", "'Q' is not known"), ("C", "is the target")]
)
@pytest.mark.parametrize("create", [perfect, create_soft_intervention])
def test_unknown_variables_and_the_target_are_refused(create, name, words):
    with pytest.raises(ValueError, match=words):
        apply_intervention(triangle(), create({name}, {name: 1.0}))


def test_interventions_keep_the_noise_and_the_exact_value():
    scm = triangle()
    seen = sample_from_scm(scm, 4, seed=2)
    done = sample_with_intervention(scm, perfect({"B"}, {"B": 0.1}), 4, seed=2)
    assert [s.values["A"] for s in done] == [s.values["A"] for s in seen]
    assert {s.values["B"] for s in done} == {0.1}
    assert all(s.intervention_targets == {"B"} for s in done)
    assert all(a.values["C"] != b.values["C"] for a, b in zip(seen, done, strict=True))
    assert seen == sample_from_scm(scm, 4, seed=2)
    assert seen != sample_from_scm(scm, 4, seed=3)
    assert sample_from_scm(scm, 0) == []
    assert sample_from_scm(scm, cast("int", np.int64(4)), seed=2) == seen
    for count in (-1, 2.5, "3"):
        with pytest.raises(ValueError, match=f"n_samples={count!r}: give a whole"):
            sample_from_scm(scm, cast("int", count))


def test_one_compiled_program_serves_every_target_and_value():
    scm = triangle()
    sample_from_scm(scm, 4, seed=0)
    before = samples._rows.trace_count
    for name, value in (("A", 1.0), ("B", -2.0)):
        sample_with_intervention(scm, perfect({name}, {name: value}), 4, seed=1)
    sample_with_intervention(scm, create_soft_intervention({"A"}, {"A": 1.0}), 4)
    assert samples._rows.trace_count == before
