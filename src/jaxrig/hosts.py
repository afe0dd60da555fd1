"""Several processes as one program: start-up, who is first, and waiting for all.

This is JAX's own distributed runtime. Under Slurm, Open MPI or Kubernetes JAX finds
the other processes by itself; elsewhere name a coordinator.
"""

import jax
from jax.experimental import multihost_utils


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
    """Whether this process is the one that writes files and reports progress."""
    # Asking for the index opens the devices, so a lone process does not ask.
    return not jax.distributed.is_initialized() or jax.process_index() == 0


def wait_for_all(name: str) -> None:
    """Block until every process has come to the barrier of this name."""
    if jax.distributed.is_initialized() and jax.process_count() > 1:
        multihost_utils.sync_global_devices(name)
