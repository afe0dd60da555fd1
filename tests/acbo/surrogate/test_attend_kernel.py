"""The kernel, run by the interpreter, equals the weights written out, there and back.

That it compiles for an NVIDIA device is checked as far as that goes without one.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.surrogate.attend_kernel import attend_by_kernel, fits
from acbo.surrogate.layers import MASKED_LOADS, attend_in_full

pytestmark = pytest.mark.skipif(
    jax.__version_info__ < MASKED_LOADS, reason="this JAX has no masked loads"
)

HEADS, SIZE = 2, 16
# Lines that share a block, fill one, need several parts of one, and leave some over.
CASES = [((3, 20), 0), ((2, 16), 1), ((1, 70), 0), ((2, 70), 1)]


@pytest.mark.parametrize(("table", "axis"), CASES)
def test_the_kernel_equals_the_weights_written_out(table, axis):
    lines, places = table
    random = np.random.default_rng(places)
    shape = (lines, places) if axis == 1 else (places, lines)
    qkv = random.normal(size=(2, *shape, 3, HEADS * SIZE)).astype(np.float32)
    change = random.normal(size=(2, *shape, HEADS * SIZE)).astype(np.float32)
    mask = random.random((2, places)) < 0.7
    mask[:, 0] = True

    # Compiled whole: eagerly, the interpreter compiles every operation of a kernel.
    @functools.partial(jax.jit, static_argnums=0)
    def both_ways(attend, qkv, mask, change):
        each = jax.vmap(lambda m, k: attend(m, k, HEADS, axis))
        seen, back = jax.vjp(lambda m: each(m, mask), qkv)
        return seen, back(change)[0]

    kernel = functools.partial(attend_by_kernel, interpret=True)
    found = both_ways(kernel, qkv, mask, change)
    expected = both_ways(attend_in_full, qkv, mask, change)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("axis", "table"), [(1, (32, 8)), (0, (128, 20))])
def test_the_kernel_lowers_for_the_device(axis, table):
    def loss(qkv, mask):
        seen = jnp.asarray(attend_by_kernel(qkv, mask, 8, axis))
        return seen.astype(jnp.float32).sum()

    given = (
        jax.ShapeDtypeStruct((4, *table, 3, 128), jnp.bfloat16),
        jax.ShapeDtypeStruct((4, table[axis]), jnp.bool_),
    )
    traced = jax.jit(jax.vmap(jax.grad(loss))).trace(*given)
    lowered = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert lowered.count("triton") >= 1


@pytest.mark.parametrize(
    ("places", "size", "taken"),
    [(128, 16, True), (3, 64, True), (129, 16, False), (8, 8, False), (8, 24, False)],
)
def test_what_the_kernel_cannot_do_well_is_left_to_others(places, size, taken):
    assert fits(places, size) == taken
