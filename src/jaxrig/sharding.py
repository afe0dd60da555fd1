"""Spread a batch over devices: one mesh axis, items sharded, everything else copied.

The same calls serve one device, many devices and many processes; only the mesh
changes. Every process passes the whole batch and keeps its own part of it.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from jaxrig.batching import axis_length
from jaxrig.devices import Device
from jaxrig.dtypes import is_key

AXIS = "batch"


def make_mesh(devices: Sequence[Device] | None = None) -> Mesh:
    """A mesh of one axis over these devices, by default all of every process."""
    if devices is not None and len(devices) == 0:
        raise ValueError("devices is empty: a mesh needs at least one")
    return Mesh(np.asarray(jax.devices() if devices is None else devices), (AXIS,))


def shard_batch(tree: PyTree, mesh: Mesh) -> PyTree:
    """Split the first axis of every array over the mesh."""
    count, devices = axis_length(tree), mesh.size
    if count % devices:
        raise ValueError(
            f"{count} items do not divide over {devices} devices: pad them with "
            f"jaxrig.batching.pad_axis(tree, {-(-count // devices) * devices})"
        )
    return _put(tree, NamedSharding(mesh, PartitionSpec(AXIS)))


def replicate(tree: PyTree, mesh: Mesh) -> PyTree:
    """Copy every array to every device of the mesh."""
    return _put(tree, NamedSharding(mesh, PartitionSpec()))


def constrain(tree: PyTree, mesh: Mesh) -> PyTree:
    """Inside a compiled function: keep the first axis split over the mesh."""
    sharding = NamedSharding(mesh, PartitionSpec(AXIS))
    return jax.tree.map(lambda x: jax.lax.with_sharding_constraint(x, sharding), tree)


def gather(tree: PyTree) -> PyTree:
    """Every array whole in every process: NumPy arrays, and keys as keys."""

    def fetch(x: Any) -> Any:
        if not isinstance(x, jax.Array):
            return x
        if is_key(x.dtype):
            data = fetch(jax.random.key_data(x))
            return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
        if x.is_fully_addressable or x.is_fully_replicated:
            return jax.device_get(x)
        return multihost_utils.process_allgather(x, tiled=True)

    return jax.tree.map(fetch, tree)


def _put(tree: PyTree, sharding: NamedSharding) -> PyTree:
    def put(x: Any) -> Any:
        if not hasattr(x, "dtype"):
            return x
        if sharding.is_fully_addressable:
            return jax.device_put(x, sharding)
        if is_key(x.dtype):
            data = put(jax.random.key_data(x))
            return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
        host = np.asarray(x)
        return jax.make_array_from_callback(host.shape, sharding, host.__getitem__)

    return jax.tree.map(put, tree)
