"""Oracle: the same program on one device."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import TABLE, make_batch, walk
from jaxrig.sharding import AXIS, constrain, gather, make_mesh, replicate, shard_batch
from jaxrig.testing import assert_trees_close
from jaxrig.tracing import compile_once


@pytest.mark.parametrize("devices", [1, 2, 8])
def test_results_do_not_depend_on_the_number_of_devices(devices):
    mesh = make_mesh(jax.devices()[:devices])
    run = compile_once(walk)
    batch, table = shard_batch(make_batch(), mesh), replicate(TABLE, mesh)
    assert len(batch["x"].sharding.device_set) == devices
    sharded = run(batch, table)
    assert_trees_close(
        gather(sharded[1]), np.asarray(jax.jit(walk)(make_batch(), TABLE)[1])
    )
    assert len(sharded[1].sharding.device_set) == devices


def test_the_batch_stays_split_inside():
    mesh = make_mesh()

    @jax.jit
    def run(x):
        return constrain(jnp.sort(x) * 2, mesh)

    out = run(shard_batch(jnp.arange(16.0), mesh))
    assert out.sharding.spec == jax.sharding.PartitionSpec(AXIS)
    np.testing.assert_array_equal(out, np.arange(16.0) * 2)


def test_a_batch_that_does_not_divide_is_refused_with_the_remedy():
    with pytest.raises(
        ValueError, match=r"20 items .* 8 devices.*pad_axis\(tree, 24\)"
    ):
        shard_batch(make_batch(20), make_mesh())


def test_gather_gives_numpy_whole():
    mesh = make_mesh()
    found = gather(shard_batch({"x": jnp.arange(8)}, mesh))
    assert isinstance(found["x"], np.ndarray)
    np.testing.assert_array_equal(found["x"], np.arange(8))
