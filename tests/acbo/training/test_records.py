"""Oracle: the fields."""

import dataclasses

import jax.numpy as jnp
import pytest

from acbo.training.steps import STEP_KEYS, TrainingMetrics, to_floats


def test_fields_by_attribute_and_by_name():
    kind = TrainingMetrics
    names = [field.name for field in dataclasses.fields(kind)]
    record = kind(*(float(i) for i in range(len(names))))
    assert list(record) == names
    assert len(record) == len(names)
    for place, name in enumerate(names):
        assert record[name] == getattr(record, name) == place
        assert name in record
    assert "loss" not in record
    with pytest.raises(KeyError, match="'loss' is not one of"):
        record["loss"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, names[0], 1.0)


def test_arrays_become_numbers():
    found = to_floats({"a": jnp.asarray(1.5), "b": 2})
    assert found == {"a": 1.5, "b": 2.0}
    assert all(type(value) is float for value in found.values())
    fields = {field.name for field in dataclasses.fields(TrainingMetrics)}
    assert set(STEP_KEYS) < fields
