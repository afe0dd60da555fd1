import dataclasses

import pytest

from acbo.named.samples import (
    create_interventional_sample,
    create_observational_sample,
    create_sample,
    get_intervention_targets,
    get_intervention_type,
    get_metadata,
    get_value,
    get_values,
    is_interventional,
    is_observational,
)


def test_observational_and_interventional():
    seen = create_observational_sample({"X": 1, "Y": 2.0}, {"day": 3})
    done = create_interventional_sample({"X": 1.0, "Y": 2.0}, "perfect", {"X"})
    assert is_observational(seen)
    assert not is_interventional(seen)
    assert is_interventional(done)
    assert get_values(seen) == {"X": 1.0, "Y": 2.0} == seen["values"]
    assert get_value(seen, "Y") == 2.0
    assert get_metadata(seen) == {"day": 3}
    assert get_intervention_type(seen) is None
    assert get_intervention_type(done) == "perfect" == done["intervention_type"]
    assert get_intervention_targets(done) == {"X"}
    assert seen == create_sample({"Y": 2.0, "X": 1.0}, metadata={"day": 3})
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen.values = {}  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(KeyError, match="intervention_targets"):
        seen["targets"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (({},), "without values"),
        (({"X": 1.0}, "perfect"), "give both"),
        (({"X": 1.0}, None, {"X"}), "give both"),
        (({"X": 1.0}, "perfect", {"Q"}), "target 'Q' is not one of: X"),
        (({"X": float("nan")},), "value of 'X' is nan"),
    ],
)
def test_wrong_samples_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        create_sample(*arguments)


def test_an_unknown_variable_is_named():
    with pytest.raises(ValueError, match="'Q' is not one of: X"):
        get_value(create_sample({"X": 1.0}), "Q")
