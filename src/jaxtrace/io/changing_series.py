"""The field of a series whose mesh changes between slices, as users see it."""

from typing import Any

import numpy as np
from jaxtyping import Float

from jaxrig.memory import tree_bytes
from jaxtrace.fields.base import Field
from jaxtrace.fields.changing import ChangingMeshField, MeshSlice, make_changing_field

MIB = 2**20


class ChangingSeriesField(Field):
    """Velocities with a mesh per slice: each is asked on its own mesh, then blended.

    `data` and `positions` hold one array (N, 3) per slice. `arrays` are those of
    `jaxtrace.io.dataset.series_arrays` where the mesh changes.
    """

    def __init__(
        self,
        arrays: dict[str, Any],
        _source_info: dict[str, Any] | None = None,
        *,
        outside: str = "nearest_element",
        **options: Any,
    ) -> None:
        self.times: Float[np.ndarray, " slices"] = arrays["times"]
        self.data: tuple[np.ndarray, ...] = arrays["velocity_data"]
        self.positions: tuple[np.ndarray, ...] = arrays["positions"]
        self._source_info = dict(_source_info or {})
        for index, cells in enumerate(arrays["connectivity"]):
            if cells is None:
                raise ValueError(
                    f"slice {index} is points without cells, which cannot change: give "
                    "use_stable_mesh_only=True"
                )
        columns = ("positions", "connectivity", "velocity_data")
        columns += ("cell_offsets", "cell_types")
        parts = zip(*(arrays[name] for name in columns), strict=True)
        self._frozen = make_changing_field(
            [MeshSlice(*part) for part in parts],
            self.times,
            outside="nearest_element" if outside == "clamp" else outside,
            **options,
        )

    @property
    def frozen(self) -> ChangingMeshField:
        """The field as the pytree that compiled code takes."""
        return self._frozen

    @property
    def T(self) -> int:
        """How many slices there are."""
        return len(self.data)

    @property
    def t_min(self) -> float:
        """The first instant."""
        return float(self.times[0])

    @property
    def t_max(self) -> float:
        """The last instant."""
        return float(self.times[-1])

    @property
    def interpolation_scheme(self) -> str:
        """How velocities between nodes are made."""
        return "elements of a mesh per slice"

    def memory_usage_mb(self) -> float:
        """Memory that the field takes, look-up tables included, in MiB."""
        return tree_bytes(self._frozen) / MIB
