"""`load_optimized_dataset`: from files to a field, within limits of memory."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxtrace.config import memory_budget_bytes
from jaxtrace.fields.streamed import StreamedField, stream_series
from jaxtrace.fields.time_series import TimeSeriesField
from jaxtrace.files.series import Slices, load
from jaxtrace.files.slices import float_dtype
from jaxtrace.files.snapshot import Cells, Geometry, GridAxes
from jaxtrace.io.changing_series import ChangingSeriesField
from jaxtrace.io.dataset import series_arrays
from jaxtrace.io.sources import (
    format_of,
    node_arrays,
    noted,
    open_slices,
    source_name,
)
from jaxtrace.io.thinning import (
    MIB,
    FixedSlices,
    ThinSlices,
    discard_still_nodes,
)

COPIES = 2  # of a series in memory while its field is made: on the host, on the device
_FIELD_OPTIONS = (
    "interpolation",
    "extrapolation",
    "spatial_interpolation",
    "outside",
)


LoadedField = TimeSeriesField | StreamedField | ChangingSeriesField


@dataclass(frozen=True)
class MemoryOptimizedConfig:
    """How a series is made to fit: limits, precision, and what is left out.

    `subsample_factor` keeps every so-many-th node (along each axis of a grid; a mesh
    loses its cells). `discard_boundary_layers` leaves out the nodes at which the
    velocity is zero in every slice, and the cells around them; walls are kept without.
    """

    max_memory_per_timestep_mb: float = 100.0
    dtype: str = "float32"
    discard_boundary_layers: bool = False
    subsample_factor: int | None = None

    def __post_init__(self) -> None:
        float_dtype(self.dtype)
        limit, factor = self.max_memory_per_timestep_mb, self.subsample_factor
        if not limit > 0:
            raise ValueError(f"max_memory_per_timestep_mb={limit} must be above 0")
        if factor is not None and factor < 1:
            raise ValueError(f"subsample_factor={factor} must be at least 1, or None")


class MemoryOptimizedLoader:
    """Reads series within the limits of a configuration."""

    def __init__(self, config: MemoryOptimizedConfig | None = None) -> None:
        self.config = config or MemoryOptimizedConfig()

    def open(self, data_pattern: Any, **options: Any) -> ThinSlices:
        """The slices of a series as the configuration wants them; none is read yet."""
        slices = open_slices(data_pattern, dtype=self.config.dtype, **options)
        limit = self.config.max_memory_per_timestep_mb
        return ThinSlices(slices, limit, self.config.subsample_factor)

    def load_dataset(
        self,
        data_pattern: Any,
        max_time_steps: int | None = None,
        time_range: tuple[float, float] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Read a series into arrays by their names, as `open_dataset` has them."""
        slices = self.open(
            data_pattern,
            max_time_steps=max_time_steps,
            time_range=time_range,
            **options,
        )
        return self.read(slices) | _facts(data_pattern, slices, options)

    def create_time_series_field(
        self, dataset: dict[str, Any], **options: Any
    ) -> TimeSeriesField:
        """The field of a loaded series; `options` are those of `TimeSeriesField`."""
        if isinstance(dataset["velocity_data"], tuple):
            raise ValueError(
                "the mesh changes between slices: load_optimized_dataset makes a field "
                "of such a series, use_stable_mesh_only=True leaves out odd slices"
            )
        _check_precision(self.config.dtype)
        cells = ("connectivity", "cell_types", "cell_offsets")
        return TimeSeriesField(
            dataset["velocity_data"],
            dataset["times"],
            dataset["positions"],
            _source_info=self._source_info(dataset),
            **{name: dataset.get(name) for name in cells},
            **options,
        )

    def create_changing_field(
        self, dataset: dict[str, Any], **options: Any
    ) -> ChangingSeriesField:
        """The field of a loaded series with a mesh for each slice."""
        _check_precision(self.config.dtype)
        scheme = options.pop("spatial_interpolation", "auto")
        if scheme == "nearest":
            raise ValueError(
                "spatial_interpolation='nearest' is not for meshes that change: leave "
                "it out, or give use_stable_mesh_only=True"
            )
        return ChangingSeriesField(dataset, self._source_info(dataset), **options)

    def read(self, slices: Slices) -> dict[str, Any]:
        """Read slices into arrays by their names."""
        series = load(slices)
        if self.config.discard_boundary_layers:
            series = discard_still_nodes(series)
        return series_arrays(series)

    def stream(
        self, slices: Slices, facts: dict[str, Any], **options: Any
    ) -> StreamedField:
        """A field that keeps only some slices in memory."""
        if self.config.discard_boundary_layers:
            raise ValueError(
                "nodes without motion are known only once all slices are read, and "
                "these do not fit the memory limit: leave out discard_boundary_layers"
            )
        _check_precision(self.config.dtype)
        geometry, _ = slices.read_slice(0)
        rules = _streaming_rules(geometry, options)
        field = stream_series(FixedSlices(slices), **rules)
        notes = {"notes": slices.describe(), "streamed": True}
        info = self._source_info(node_arrays(geometry) | facts | notes)
        field._source_info = info
        return field

    def _source_info(self, dataset: dict[str, Any]) -> dict[str, Any]:
        """Where a field comes from; arrays that it holds itself are left out."""
        left_out = ("velocity_data", "positions", "times")
        kept = {name: v for name, v in dataset.items() if name not in left_out}
        settings = dataclasses.asdict(self.config)
        return kept | {"memory_optimized": True, "optimization_config": settings}


def load_optimized_dataset(
    data_pattern: Any,
    max_memory_per_timestep_mb: float = 100.0,
    max_time_steps: int | None = None,
    time_range: tuple[float, float] | None = None,
    dtype: str = "float32",
    *,
    subsample_factor: int | None = None,
    discard_boundary_layers: bool = False,
    **options: Any,
) -> LoadedField:
    """The field of a series in files: times, cells and walls as they are there.

    A `TimeSeriesField`; a series above the configured memory limit is streamed, and a
    mesh that changes between slices is kept for each. A slice above
    `max_memory_per_timestep_mb` is a ValueError. Other options are those of
    `jaxtrace.io.sources.open_slices` (velocity_field_name, skip_initial_timesteps,
    use_stable_mesh_only, ...) and of `TimeSeriesField` (interpolation, extrapolation,
    outside, spatial_interpolation).
    """
    config = MemoryOptimizedConfig(
        max_memory_per_timestep_mb, dtype, discard_boundary_layers, subsample_factor
    )
    loader = MemoryOptimizedLoader(config)
    rules = {name: options.pop(name) for name in _FIELD_OPTIONS if name in options}
    selection = {"max_time_steps": max_time_steps, "time_range": time_range}
    slices = loader.open(data_pattern, **selection, **options)
    facts = _facts(data_pattern, slices, options)
    if slices.read_slice(0)[1].nbytes * len(slices) * COPIES > memory_budget_bytes():
        return loader.stream(slices, facts, **rules)
    dataset = loader.read(slices) | facts
    if isinstance(dataset["velocity_data"], tuple):
        return loader.create_changing_field(dataset, **rules)
    return loader.create_time_series_field(dataset, **rules)


def estimate_memory_usage(
    data_pattern: Any,
    num_timesteps: int | None = None,
    dtype: str = "float32",
    **options: Any,
) -> dict[str, Any]:
    """What a series takes in memory, in MB, from its first slice alone.

    Keys: timestep_mb, velocity_mb (all slices), positions_mb, connectivity_mb,
    total_mb, limit_mb (the configured one), streamed, num_timesteps, nodes, cells.
    """
    slices = open_slices(data_pattern, dtype=dtype, **options)
    count = len(slices) if num_timesteps is None else num_timesteps
    if count < 1:
        raise ValueError(f"num_timesteps={num_timesteps} must be at least 1")
    geometry, values = slices.read_slice(0)
    mesh = isinstance(geometry, Cells)
    parts = (geometry.connectivity, geometry.offsets, geometry.types) if mesh else ()
    figures = {
        "timestep_mb": values.nbytes,
        "velocity_mb": values.nbytes * count,
        "positions_mb": geometry.n_points * 3 * 8,
        "connectivity_mb": sum(part.nbytes for part in parts),
    }
    total = sum(figures.values()) - figures["timestep_mb"]
    sizes = figures | {"total_mb": total, "limit_mb": memory_budget_bytes()}
    return {name: size / MIB for name, size in sizes.items()} | {
        "streamed": figures["velocity_mb"] * COPIES > memory_budget_bytes(),
        "num_timesteps": count,
        "nodes": geometry.n_points,
        "cells": geometry.n_cells if mesh else 0,
    }


def _facts(
    data_pattern: Any, slices: Slices, options: dict[str, Any]
) -> dict[str, Any]:
    return {
        "source": format_of(data_pattern, options.get("format_type")),
        "file_pattern": source_name(data_pattern),
        "files": slices.labels,
        "velocity_field_name": noted(slices, "velocity"),
        "time_source": noted(slices, "times"),
    }


def _check_precision(dtype: str) -> None:
    if jax.dtypes.canonicalize_dtype(np.dtype(dtype)) != np.dtype(dtype):
        raise ValueError(
            f'dtype={dtype!r} is off in JAX: call jt.configure(dtype="float64") first'
        )


def _streaming_rules(geometry: Geometry, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a streamed field, which takes grids and cells as they come."""
    rules = dict(options)
    scheme = rules.pop("spatial_interpolation", "auto")
    gridded = isinstance(geometry, GridAxes)
    if scheme == "nearest" or (scheme == "elements" and gridded):
        raise ValueError(
            f"spatial_interpolation={scheme!r} is not for series larger than the "
            "memory limit: leave it out, or raise jt.configure(memory_limit_gb=...)"
        )
    if isinstance(geometry, Cells) and not geometry.n_cells:
        raise ValueError(
            "points without cells are not streamed: give fewer slices "
            "(max_time_steps), or raise jt.configure(memory_limit_gb=...)"
        )
    policy = rules.get("outside")
    if policy in ("clamp", "nearest_element"):
        rules["outside"] = "clamp" if gridded else "nearest_element"
    return rules
