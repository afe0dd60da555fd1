"""Readers convert what is right and name the setting, the value and the rule."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.memory import host_memory
from jaxrig.settings import whole
from jaxrig.static_arguments import thaw
from jaxtrace import settings
from jaxtrace.config import Settings
from jaxtrace.settings import GIB


@pytest.mark.parametrize(
    ("read", "given", "expected"),
    [
        (settings.percent, 0, 0.0),
        (settings.per_axis(whole()), 3, (3, 3, 3)),
        (settings.per_axis(whole()), [1, 2, 3], (1, 2, 3)),
        (settings.per_axis(whole()), {"z": 3, "x": 1, "y": 2}, (1, 2, 3)),
        (settings.pair, [2, 1], (2.0, 1.0)),
        (settings.rising, [1, 2], (1.0, 2.0)),
        (settings.instant, "2020-02-30T06", "2020-02-30T06:00:00"),  # of 360_day
        (
            settings.axis_fractions,
            {"y": [0, 0.5]},
            ((0.0, 1.0), (0.0, 0.5), (0.0, 1.0)),
        ),
        (settings.box, [0, 1, 2, 3], ((0.0, 2.0, 0.0), (1.0, 3.0, 0.0))),
        (settings.box, {"x": [0, 1], "y": [2, 3]}, ((0.0, 2.0, 0.0), (1.0, 3.0, 0.0))),
        (settings.name_or_names, ["u", "v"], ("u", "v")),
        (settings.name_or_names, "U", "U"),
    ],
)
def test_what_is_right_is_converted(read, given, expected):
    assert read(given, "key") == expected


@pytest.mark.parametrize(
    ("read", "given", "words"),
    [
        (settings.percent, -1, "from 0 to 100"),
        (settings.per_axis(whole()), [1, 2], "one for each of x, y and z"),
        (settings.per_axis(whole()), {"x": 1, "y": 1}, "has no 'z': give it too"),
        (settings.per_axis(whole()), {"w": 1}, "has 'w': give x, y and z"),
        (settings.per_axis(whole()), {"x": 1, "y": 0, "z": 1}, r"key\.y is 0"),
        (settings.pair, [1], "two numbers"),
        (settings.rising, [2, 1], "the second larger"),
        (settings.axis_fractions, {"x": [0, 1.5]}, "from 0 to 1"),
        (settings.box, [1, 0, 0, 1], "the lower bound must come first"),
        (settings.name_or_names, [], "some text"),
    ],
)
def test_what_is_wrong_names_the_key_and_the_rule(read, given, words):
    with pytest.raises(ValueError, match=words) as error:
        read(given, "key")
    assert str(error.value).startswith("key")


def test_options_are_hashable_and_come_back():
    given = {"a": [1, {"b": 2}]}
    frozen = settings.options(given, "key")
    assert hash(frozen) == hash(settings.options(given, "key"))
    assert thaw(frozen) == given


@pytest.mark.parametrize(
    ("name", "given", "stored"),
    [
        ("dtype", np.float64, "float64"),
        ("dtype", jnp.float32, "float32"),
        ("device", "tpu", "tpu"),
        ("device_id", np.int64(2), 2),
        ("memory_limit_gb", 3, 3.0),
        ("memory_limit_gb", -4.0, max(0.5 * host_memory().total / GIB, 2.0)),
        ("precision", "fastest", "fastest"),
    ],
)
def test_the_configuration_stores_plain_values(name, given, stored):
    value = getattr(Settings.from_mapping({name: given}), name)
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
        ("memory_limit_gb", "3", "number of GiB"),
        ("memory_limit_gb", float("inf"), "number of GiB"),
        ("precision", "low", "fastest, high, highest"),
        ("use_jax_jit", 1, "true or false"),
    ],
)
def test_the_configuration_refuses_what_it_cannot_do(name, value, words):
    with pytest.raises(ValueError, match=f"{name} is .*{words}"):
        Settings.from_mapping({name: value})


def test_unknown_names_hear_the_nearest():
    with pytest.raises(TypeError, match="no setting 'devise'; did you mean 'device'"):
        Settings.from_mapping({"devise": "gpu"})
