"""The shared core: knows arrays, devices and hosts; knows no domain.

Names are loaded on first use, so that the command line starts without JAX.
`jaxrig.learn`, `jaxrig.report` and `jaxrig.testing` are imported by name.
"""

from typing import TYPE_CHECKING

from jaxrig.lazy import lazy_attributes
from jaxrig.machine import __version__

if TYPE_CHECKING:
    from jaxrig.batching import largest_batch, map_chunked
    from jaxrig.callbacks import (
        SlowCalls,
        callback_statistics,
        host_callback,
        reset_callback_statistics,
    )
    from jaxrig.checkpoint import (
        CheckpointManager,
        CheckpointMismatch,
        load_tree,
        read_header,
        save_tree,
    )
    from jaxrig.checks import (
        CheckError,
        check,
        error_mode,
    )
    from jaxrig.compilation import keep_compilations, record_compilations
    from jaxrig.compile_guard import RetraceError, adaptive, compile_once
    from jaxrig.keys import batch_keys, named_key
    from jaxrig.memory import (
        compiled_memory,
        device_memory,
        host_memory,
        tree_bytes,
    )
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
    from jaxrig.timing import Timing, compare, measure

__all__ = [
    "BlobStore",
    "CheckError",
    "CheckpointManager",
    "CheckpointMismatch",
    "Meter",
    "RetraceError",
    "SlowCalls",
    "Timing",
    "__version__",
    "adaptive",
    "batch_keys",
    "callback_statistics",
    "check",
    "compare",
    "compile_once",
    "compiled_memory",
    "device_memory",
    "error_mode",
    "gather",
    "host_callback",
    "host_memory",
    "is_main",
    "keep_compilations",
    "largest_batch",
    "load_tree",
    "make_mesh",
    "make_meter",
    "map_chunked",
    "measure",
    "named_key",
    "read_header",
    "record_compilations",
    "replicate",
    "reset_callback_statistics",
    "save_tree",
    "scan_with_progress",
    "shard_batch",
    "start_hosts",
    "stop_hosts",
    "tree_bytes",
    "wait_for_all",
]

__getattr__ = lazy_attributes(__name__, __file__)
