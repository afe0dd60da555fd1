"""Tools around the tracking: memory, timing, geometry, random numbers, devices."""

from jaxtrace.utils.arrays import asarray, maybe_jit, maybe_vmap, to_device, to_numpy
from jaxtrace.utils.devices import (
    configure_xla_env,
    default_device_kind,
    get_devices,
    get_jax_version,
)
from jaxtrace.utils.geometry import (
    AABB,
    rotate2d,
    rotate3d_euler,
    scale,
    transform_points,
    translate,
)
from jaxtrace.utils.hashing import bincount_sum, grid_hash, segment_sum, unique_ids
from jaxtrace.utils.memory import (
    configure_memory_optimization,
    get_memory_tracker,
    initialize_memory_tracking,
    memory_tracked,
    stop_memory_tracking,
    track_memory,
    track_operation_memory,
    track_variable_memory,
)
from jaxtrace.utils.memory_tracker import GPUMemoryTracker
from jaxtrace.utils.progress import create_progress_callback
from jaxtrace.utils.random import (
    normal,
    random_choice,
    random_integers,
    rng_key,
    shuffle,
    split_keys,
    uniform,
)
from jaxtrace.utils.requirements import (
    check_requirements_for_workflow,
    check_system_requirements,
    suggest_installation_commands,
)
from jaxtrace.utils.timing import Timer, timeit
from jaxtrace.utils.usage import gpu_memory_info, memory_info, memory_report

__all__ = [
    "AABB",
    "GPUMemoryTracker",
    "Timer",
    "asarray",
    "bincount_sum",
    "check_requirements_for_workflow",
    "check_system_requirements",
    "configure_memory_optimization",
    "configure_xla_env",
    "create_progress_callback",
    "default_device_kind",
    "get_devices",
    "get_jax_version",
    "get_memory_tracker",
    "gpu_memory_info",
    "grid_hash",
    "initialize_memory_tracking",
    "maybe_jit",
    "maybe_vmap",
    "memory_info",
    "memory_report",
    "memory_tracked",
    "normal",
    "random_choice",
    "random_integers",
    "rng_key",
    "rotate2d",
    "rotate3d_euler",
    "scale",
    "segment_sum",
    "shuffle",
    "split_keys",
    "stop_memory_tracking",
    "suggest_installation_commands",
    "timeit",
    "to_device",
    "to_numpy",
    "track_memory",
    "track_operation_memory",
    "track_variable_memory",
    "transform_points",
    "translate",
    "uniform",
    "unique_ids",
]
