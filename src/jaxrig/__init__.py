"""The shared core: knows arrays, devices and hosts; knows no domain.

Names are loaded on first use, so that the command line starts without JAX.
`jaxrig.learn`, `jaxrig.report` and `jaxrig.testing` are imported by name.
"""

from typing import TYPE_CHECKING

from jaxrig.lazy import lazy_attributes
from jaxrig.machine import __version__

if TYPE_CHECKING:
    from jaxrig.batching import map_chunked, map_workers, pad_axis
    from jaxrig.caching import ByteCache, LazyLoader
    from jaxrig.callbacks import (
        callback_report,
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
        get_error_mode,
        set_error_mode,
        tally,
    )
    from jaxrig.compilation import keep_compilations, record_compilations
    from jaxrig.devices import pick_devices, place, set_accelerator_memory
    from jaxrig.dtypes import shrink, smallest_dtype
    from jaxrig.hosts import is_main, start_hosts, stop_hosts, wait_for_all
    from jaxrig.keys import batch_keys, named_key, worker_keys
    from jaxrig.memory import (
        compiled_memory,
        detect_memory_leaks,
        device_memory,
        host_memory,
        tree_bytes,
    )
    from jaxrig.planning import (
        BatchSizeController,
        best_throughput,
        largest_batch,
        next_batch_size,
    )
    from jaxrig.profiling import profile, region
    from jaxrig.progress import Meter, make_meter, scan_with_progress
    from jaxrig.sharding import constrain, gather, make_mesh, replicate, shard_batch
    from jaxrig.static import freeze, thaw
    from jaxrig.storage import BlobStore
    from jaxrig.throttle import Interval, SlowCalls
    from jaxrig.timing import PerformanceMonitor, Timing, compare, measure
    from jaxrig.tracing import RetraceError, adaptive, compile_once

__all__ = [
    "BatchSizeController",
    "BlobStore",
    "ByteCache",
    "CheckError",
    "CheckpointManager",
    "CheckpointMismatch",
    "Interval",
    "LazyLoader",
    "Meter",
    "PerformanceMonitor",
    "RetraceError",
    "SlowCalls",
    "Timing",
    "__version__",
    "adaptive",
    "batch_keys",
    "best_throughput",
    "callback_report",
    "callback_statistics",
    "check",
    "compare",
    "compile_once",
    "compiled_memory",
    "constrain",
    "detect_memory_leaks",
    "device_memory",
    "error_mode",
    "freeze",
    "gather",
    "get_error_mode",
    "host_callback",
    "host_memory",
    "is_main",
    "keep_compilations",
    "largest_batch",
    "load_tree",
    "make_mesh",
    "make_meter",
    "map_chunked",
    "map_workers",
    "measure",
    "named_key",
    "next_batch_size",
    "pad_axis",
    "pick_devices",
    "place",
    "profile",
    "read_header",
    "record_compilations",
    "region",
    "replicate",
    "reset_callback_statistics",
    "save_tree",
    "scan_with_progress",
    "set_accelerator_memory",
    "set_error_mode",
    "shard_batch",
    "shrink",
    "smallest_dtype",
    "start_hosts",
    "stop_hosts",
    "tally",
    "thaw",
    "tree_bytes",
    "wait_for_all",
    "worker_keys",
]

__getattr__ = lazy_attributes(__name__, __file__)
