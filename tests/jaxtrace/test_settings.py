"""Every setting accepts what the fact sheet lists and names what it does not."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.memory import host_memory
from jaxtrace.settings import GIB, NAMES, Settings, check_settings, unknown_setting


def test_defaults_pass_their_own_rules():
    defaults = dataclasses.asdict(Settings())
    assert check_settings(defaults) == defaults
    assert set(NAMES) == set(defaults)


@pytest.mark.parametrize(
    ("name", "given", "stored"),
    [
        ("dtype", np.float64, "float64"),
        ("dtype", jnp.float32, "float32"),
        ("dtype", np.dtype("float64"), "float64"),
        ("device", "tpu", "tpu"),
        ("device_id", np.int64(2), 2),
        ("memory_limit_gb", 3, 3.0),
        ("precision", "fastest", "fastest"),
        ("optimization_level", 0, 0),
        ("verbose", True, True),
    ],
)
def test_values_as_they_are_stored(name, given, stored):
    value = check_settings({name: given})[name]
    assert value == stored
    assert type(value) is type(stored)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("dtype", "float16", "float32, float64"),
        ("dtype", "floaty", "float32, float64"),
        ("dtype", None, "float32, float64"),
        ("device", "quantum", "auto, cpu, gpu, tpu"),
        ("device_id", -1, "from 0"),
        ("device_id", 1.5, "from 0"),
        ("memory_limit_gb", "3", "number of GiB"),
        ("memory_limit_gb", float("inf"), "number of GiB"),
        ("memory_limit_gb", True, "number of GiB"),
        ("precision", "low", "fastest, high, highest"),
        ("optimization_level", 3, "0, 1, 2"),
        ("optimization_level", True, "0, 1, 2"),
        ("use_jax_jit", 1, "True, False"),
        ("show_progress", "yes", "True, False"),
    ],
)
def test_a_wrong_value_names_the_allowed_ones(name, value, words):
    with pytest.raises(ValueError, match=words) as caught:
        check_settings({name: value})
    assert name in str(caught.value)


@pytest.mark.parametrize("given", [0, -4.0])
def test_no_limit_means_half_the_machine(given):
    limit = check_settings({"memory_limit_gb": given})["memory_limit_gb"]
    assert limit == max(0.5 * host_memory().total / GIB, 2.0)


def test_an_unknown_setting_names_the_nearest():
    with pytest.raises(TypeError, match="did you mean 'device'"):
        check_settings({"devise": "gpu"})
    assert "did you mean 'memory_limit_gb'" in unknown_setting("memory_limit")
