"""Devices and processes as one: a mesh to spread a batch over, and joining hosts.

The same calls serve one device, many devices and many processes; only the mesh changes.
Every process passes the whole batch and keeps its own part of it. Processes are joined
by JAX's own distributed runtime.
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
    """Return a mesh of one axis over these devices, by default all of every process."""
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


def gather(tree: PyTree) -> PyTree:
    """Fetch every array whole in every process: NumPy arrays, and keys as keys."""

    def fetch(x: Any) -> Any:
        if not isinstance(x, jax.Array):
            return x
        if is_key(x.dtype):
            data = fetch(jax.random.key_data(x))
            return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
        # What is replicated is whole in every process: nothing has to be sent.
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
        # device_put cannot reach devices of other processes: each makes its own shards.
        host = np.asarray(x)
        return jax.make_array_from_callback(host.shape, sharding, host.__getitem__)

    return jax.tree.map(put, tree)


def start_hosts(
    coordinator: str | None = None,
    process_count: int | None = None,
    process_id: int | None = None,
) -> None:
    """Join the other processes; call it before anything opens a device.

    Give all three arguments (`coordinator` as "address:port") or none, where a cluster
    scheduler lets JAX find them.
    """
    given = [coordinator, process_count, process_id]
    if None in given and given != [None] * 3:
        raise ValueError(
            f"coordinator={coordinator!r}, process_count={process_count}, "
            f"process_id={process_id}: give all three or none"
        )
    if process_id is not None and process_id not in range(process_count or 0):
        raise ValueError(
            f"process_id={process_id} must be in 0..{(process_count or 0) - 1}"
        )
    jax.distributed.initialize(coordinator, process_count, process_id)


def stop_hosts() -> None:
    """Leave the group of processes."""
    jax.distributed.shutdown()


def is_main() -> bool:
    """Return whether this process is the one that writes files and reports progress."""
    # Asking for the index opens the devices, so a lone process does not ask.
    return not jax.distributed.is_initialized() or jax.process_index() == 0


def wait_for_all(name: str) -> None:
    """Block until every process has come to the barrier of this name."""
    if jax.distributed.is_initialized() and jax.process_count() > 1:
        multihost_utils.sync_global_devices(name)
