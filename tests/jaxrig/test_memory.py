"""Oracle: sizes known by arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxrig import memory
from jaxrig.compile_guard import compile_once


def test_tree_bytes_counts_arrays_shapes_and_keys_only():
    tree = {
        "grid": jnp.zeros((30, 30), jnp.int8),
        "half": jnp.zeros(4, jnp.bfloat16),
        "host": np.zeros(3, np.float64),
        "shape": jax.ShapeDtypeStruct((5,), jnp.int32),
        "key": jax.random.key(0),
        "name": "text",
        "none": None,
    }
    assert memory.tree_bytes(tree) == 900 + 8 + 24 + 20 + 8
    assert memory.tree_bytes(()) == 0


def test_host_memory_sees_a_large_allocation():
    before = memory.host_memory()
    block = np.ones(64 * memory.MIB, np.uint8)
    after = memory.host_memory()
    assert after.resident - before.resident > 48 * memory.MIB
    assert after.peak >= after.resident
    assert after.total > after.resident
    del block


def test_device_memory_follows_live_arrays_on_that_device():
    device = jax.devices()[3]
    before = memory.device_memory(device).in_use
    block = jax.device_put(np.ones(1000, np.float32), device)
    assert memory.device_memory(device).in_use - before == block.nbytes == 4000
    del block
    assert memory.device_memory(device).in_use == before


def test_compiled_memory_of_a_known_program():
    x = jax.ShapeDtypeStruct((1000,), jnp.float32)
    found = memory.compiled_memory(lambda x: (x + 1, x.sum()), x)
    assert found.arguments == 4000
    assert 4004 <= found.outputs <= 4004 + 64  # plus the tuple of two pointers
    assert found.aliased == 0


def test_compiled_memory_counts_donated_buffers_once():
    x = jax.ShapeDtypeStruct((1000,), jnp.float32)
    kept = memory.compiled_memory(compile_once(lambda state: state + 1), x)
    donated = memory.compiled_memory(
        compile_once(lambda state: state + 1, donate=["state"]), x
    )
    assert kept.total - donated.total == donated.aliased == 4000
