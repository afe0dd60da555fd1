"""Oracle: differences planted by hand."""

import inspect

import jax.numpy as jnp

from jaxrig.signature import ArrayLeaf, changes, leaf_of, signature_of


def signature(*args, **kwargs):
    def call(state, *rest, **options): ...

    return signature_of(inspect.signature(call), args, kwargs)


def test_paths_read_like_python():
    found = signature({"x": [jnp.ones(2)]}, jnp.ones(1), size=3).leaves
    assert list(found) == ["state['x'][0]", "rest[0]", "options['size']"]


def test_equal_calls_have_equal_signatures():
    assert signature(jnp.ones(2), 3) == signature(jnp.zeros(2), 3)
    assert changes(signature(jnp.ones(2), 3), signature(jnp.zeros(2), 3)) == []


def test_every_difference_is_listed_once():
    lines = changes(signature(jnp.ones(2), 3), signature(jnp.ones(3), 4))
    assert [line.splitlines()[0] for line in lines] == [
        "state: float32[2] -> float32[3]",
        "rest[0]: static 3 -> static 4",
    ]


def test_container_change_alone_is_seen():
    (line,) = changes(signature([jnp.ones(2)]), signature((jnp.ones(2),)))
    assert line.startswith("state: ")


def test_leaf_of_array_and_long_static():
    assert leaf_of(jnp.ones((2, 3), jnp.int8)) == ArrayLeaf((2, 3), "int8", False)
    assert str(leaf_of("x" * 200)).endswith("...")
