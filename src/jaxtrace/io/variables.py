"""Variables of files, as fields to be sampled along paths."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxtrace.fields.variables import Variable
from jaxtrace.io.convert import dates_to_numbers
from jaxtrace.io.formats import find_format, open_slices
from jaxtrace.io.geometry import Geometry
from jaxtrace.io.loader import load_field
from jaxtrace.io.series import Slices


class _SeaOnly(Slices):
    """A scalar of a grid and, as second component, where it has a value at all."""

    def __init__(self, slices: Slices) -> None:
        self.slices, self.times, self.labels = slices, slices.times, slices.labels
        self.time_source = slices.time_source
        self.time_units, self.calendar = slices.time_units, slices.calendar

    @property
    def velocity_name(self) -> str:
        """The variable, named once."""
        return self.slices.velocity_name.partition(",")[0]

    def read_slice(self, index: int) -> tuple[Geometry, np.ndarray]:
        """Return the grid, and the scalar beside its mask."""
        geometry, values = self.slices.read_slice(index)
        known = np.isfinite(values[..., 0])
        values[..., 0] = np.where(known, values[..., 0], 0)
        values[..., 1], values[..., 2] = known, 0
        return geometry, values


def load_variable(spec: Any, name: str, **options: Any) -> Variable:
    """Return a scalar or vector of files, to be given in `sample=`.

    Options are those of `load_optimized_dataset`. Near the coast of a grid the nodes
    at sea decide.
    """
    if find_format(spec, options.get("format_type")).name != "grid":
        options |= {"velocity_field_name": name}
        loaded = load_field(spec, **options)
        # Readers give a scalar as a vector whose other components are zero.
        return Variable(loaded.field, scalar=not loaded.slices.read(0)[..., 1:].any())
    options.pop("slip", None)
    rules = {n: options.pop(n) for n in _RULES if n in options}
    # As if it were a velocity of both directions, in the units of the file.
    names: dict[str, Any] = {"velocity_field_name": (name, name), "land": "nan"}
    slices = open_slices(spec, **{**options, **names, "velocity_units": "m/s"})
    dtype = options.get("dtype", "float32")
    field = load_field(_SeaOnly(slices), dtype=dtype, cache=False, **rules).field
    return Variable(field, scalar=True, masked=True)


_RULES = ("interpolation", "extrapolation", "spatial_interpolation", "outside")


def align(variable: Variable, name: str, facts: Mapping[str, Any]) -> Variable:
    """Return a variable whose dates are counted from where those of a flow are."""
    own = getattr(variable.field, "_source_info", {})
    if "time_units" not in own or "time_units" not in facts:
        return variable
    if own["calendar"] != facts["calendar"]:
        raise ValueError(
            f"sample {name!r} has the calendar {own['calendar']}, and the velocity "
            f"{facts['calendar']}: their dates cannot be compared; convert one of them"
        )
    origin = own["time_units"].partition(" since ")[2].replace(" ", "T")
    return dataclasses.replace(variable, ahead=dates_to_numbers([origin], facts)[0])
