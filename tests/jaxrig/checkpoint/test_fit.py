import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.checkpoint.fit import (
    CODE,
    Kind,
    differences,
    is_under,
    kind_of,
    place,
    saved_kinds,
)
from jaxrig.container import ContainerError, Entry


@pytest.mark.parametrize(
    ("leaf", "expected"),
    [
        (np.zeros((2, 3), np.int8), Kind("int8", (2, 3))),
        (np.float32(1), Kind("float32", ())),
        (np.zeros(2, ">f4"), Kind("float32", (2,))),
        (jax.ShapeDtypeStruct((4,), jnp.bfloat16), Kind("bfloat16", (4,))),
        (3, Kind("Python int")),
        (True, Kind("Python bool")),
        ("x", Kind("Python str")),
        (max, Kind(CODE)),
    ],
)
def test_kinds(leaf, expected):
    assert kind_of(leaf) == expected


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_stored_and_living_keys_have_one_kind(impl):
    keys = jax.random.split(jax.random.key(0, impl=impl), 3)
    shape = jax.random.key_data(keys).shape
    entry = Entry("k", "uint32", shape, 0, 4 * shape[0] * shape[1], impl)
    kinds = saved_kinds([entry], {"n": 1}, ["f"], "file")
    assert kinds == {"k": kind_of(keys), "n": kind_of(2), "f": kind_of(max)}


def test_an_unknown_generator_is_damage():
    with pytest.raises(ContainerError, match="file: entry 'k'"):
        saved_kinds([Entry("k", "uint32", (2,), 0, 8, "no such")], {}, [], "file")


@pytest.mark.parametrize(
    ("name", "prefix", "expected"),
    [
        ("a.b", "a", True),
        ("a.b", "a.b", True),
        ("ab", "a", False),
        ("a", "a.b", False),
        ("a.b", "b", False),
    ],
)
def test_prefixes_end_at_dots(name, prefix, expected):
    assert is_under(name, ["other", prefix]) == expected


def test_equal_trees_have_no_differences_and_excluded_leaves_need_no_counterpart():
    leaves = {"a": np.zeros(2), "b.c": 1, "f": max}
    saved = {name: kind_of(leaf) for name, leaf in leaves.items()}
    assert differences(saved, leaves, []) == []
    del saved["b.c"]
    assert differences(saved, leaves, ["b"]) == []
    assert len(differences(saved, leaves, ["f"])) == 1


def test_placing_keeps_numpy_and_follows_devices():
    value = np.arange(3.0, dtype=np.float32)
    assert place(value, np.zeros(3)) is value
    device = jax.devices()[3]
    placed = place(value, jax.device_put(value, device))
    assert placed.devices() == {device}
    assert placed.committed
    assert not place(value, jnp.zeros(3)).committed
    assert type(place(np.array(2.0), np.float64(0))) is np.float64
