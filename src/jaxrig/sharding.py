"""Devices and processes as one: a mesh to spread a batch over, and joining hosts.

The same calls serve one device, many devices and many processes; only the mesh changes.
Every process passes the whole batch and keeps its own part of it. Processes are joined
by JAX's own distributed runtime.
"""

import math
import os
import re
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from jaxrig.batching import axis_length
from jaxrig.devices import Device
from jaxrig.dtypes import is_key

AXIS = "batch"
SHARED = PartitionSpec(AXIS)


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


def spread(
    tree: Any, mesh: Mesh | None, shared: Callable[[Any], Any] | None = None
) -> Any:
    """Copy a tree to every device, but share out the parts that `shared` returns.

    Without a mesh the tree is returned as it is.
    """
    if mesh is None:
        return tree
    copies = replicate(tree, mesh)
    if shared is None:
        return copies
    return eqx.tree_at(shared, copies, shard_batch(shared(tree), mesh))


def choose_mesh(*counts: int) -> Mesh | None:
    """Return a mesh over all devices for batches of these sizes; None for one device.

    Alone, a process leaves out devices over which the batches do not divide, and says
    so. On several hosts all devices take part, or ValueError says what does not divide.
    """
    devices, several = jax.devices(), jax.process_count() > 1
    common = math.gcd(*counts)
    used = next(n for n in range(len(devices), 0, -1) if common % n == 0)
    if used < len(devices):
        words = (
            f"{' and '.join(map(str, counts))} items do not divide over "
            f"{len(devices)} devices"
        )
        if several:
            raise ValueError(f"{words}: choose multiples of {len(devices)}")
        warnings.warn(f"{words}: {used} are used", stacklevel=2)
    return make_mesh(devices[:used]) if used > 1 else None


def map_shares(
    function: Callable[[Any, Any], Any],
    mesh: Mesh | None,
    whole: PyTree,
    batch: PyTree,
    results: Any = SHARED,
) -> Any:
    """Return `function(whole, batch)`, where each device works on its share of `batch`.

    No device waits for another inside, and what XLA cannot divide, such as a kernel of
    our own, runs on the shares. `results` says along which axis results are joined.
    Without a mesh this is a plain call.
    """
    if mesh is None:
        return function(whole, batch)
    arrays, rest = eqx.partition(whole, eqx.is_array)
    shared = jax.shard_map(
        lambda arrays, share: function(eqx.combine(arrays, rest), share),
        mesh=mesh,
        in_specs=(PartitionSpec(), SHARED),
        out_specs=results,
        check_vma=False,
    )
    return shared(arrays, batch)


def constrain(tree: Any, mesh: Mesh | None, *axes: str | None) -> Any:
    """Tell XLA how arrays inside a program lie: copied, or shared out along `axes`."""
    if mesh is None:
        return tree
    place = NamedSharding(mesh, PartitionSpec(*axes))
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.lax.with_sharding_constraint(arrays, place), rest)


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
        # XLA copies what has no elements, and so returns it: nothing is to be split.
        place = sharding if x.size else NamedSharding(sharding.mesh, PartitionSpec())
        if sharding.is_fully_addressable:
            return jax.device_put(x, place)
        if is_key(x.dtype):
            data = put(jax.random.key_data(x))
            return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
        # device_put cannot reach devices of other processes: each makes its own shards.
        host = np.asarray(x)
        return jax.make_array_from_callback(host.shape, place, host.__getitem__)

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


@contextmanager
def joined_hosts(words: str | None = None) -> Generator[None]:
    """Join the other processes for a block, where there are any.

    `words` is "ADDRESS:PORT,NUMBER/COUNT" of this process among all, with the address
    of number 0. Without it the tasks of a Slurm job step find each other.
    """
    if words is None:
        # A job script that was not started by srun is one process, whatever it asks of.
        step = "SLURM_STEP_NODELIST" in os.environ
        several = step and int(os.environ.get("SLURM_NTASKS", "1")) > 1
        start = start_hosts
    else:
        found = re.fullmatch(r"(.+:\d+),(\d+)/(\d+)", words)
        if found is None:
            raise ValueError(
                f"hosts {words!r} is not ADDRESS:PORT,NUMBER/COUNT, for example "
                "10.0.0.1:1234,0/2 for the first of two processes"
            )
        address, number, count = found.groups()
        several = True
        start = partial(start_hosts, address, int(count), int(number))
    if several:
        start()
    try:
        yield
        if several:
            wait_for_all("end of the command")
    finally:
        if several:
            stop_hosts()


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
