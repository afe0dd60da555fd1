"""The shared core: knows arrays, devices and hosts; knows no domain.

Names are loaded on first use, so that the command line starts without JAX.
`jaxrig.learn`, `jaxrig.report` and `jaxrig.testing` are imported by name.
"""

from typing import TYPE_CHECKING

from jaxrig.lazy_imports import lazy_attributes
from jaxrig.machine import __version__

if TYPE_CHECKING:
    from jaxrig.batching import largest_batch, map_chunked
    from jaxrig.callbacks import callback_statistics, host_callback
    from jaxrig.checkpoint import CheckpointManager, load_tree, save_tree
    from jaxrig.checks import CheckError, check, error_mode
    from jaxrig.compile_cache import record_compilations
    from jaxrig.compile_guard import RetraceError, adaptive, compile_once
    from jaxrig.keys import batch_keys
    from jaxrig.memory import compiled_memory, host_memory, tree_bytes
    from jaxrig.progress import Meter, make_meter, scan_with_progress
    from jaxrig.sharding import (
        gather,
        is_main,
        make_mesh,
        replicate,
        shard_batch,
        start_hosts,
        stop_hosts,
        wait_for_all,
    )
    from jaxrig.storage import BlobStore
    from jaxrig.timing import compare, measure

__all__ = [
    "BlobStore",
    "CheckError",
    "CheckpointManager",
    "Meter",
    "RetraceError",
    "__version__",
    "adaptive",
    "batch_keys",
    "callback_statistics",
    "check",
    "compare",
    "compile_once",
    "compiled_memory",
    "error_mode",
    "gather",
    "host_callback",
    "host_memory",
    "is_main",
    "largest_batch",
    "load_tree",
    "make_mesh",
    "make_meter",
    "map_chunked",
    "measure",
    "record_compilations",
    "replicate",
    "save_tree",
    "scan_with_progress",
    "shard_batch",
    "start_hosts",
    "stop_hosts",
    "tree_bytes",
    "wait_for_all",
]

__getattr__ = lazy_attributes(__name__, __file__)
