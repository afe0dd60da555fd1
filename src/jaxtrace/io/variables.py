"""Variables of files, as fields to be sampled along paths."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxtrace.fields.variables import Variable
from jaxtrace.io.convert import dates_to_numbers
from jaxtrace.io.formats import find_format
from jaxtrace.io.geometry import Geometry
from jaxtrace.io.loader import load_field
from jaxtrace.io.series import SlicesOf


class _SeaOnly(SlicesOf):
    """A scalar of a grid and, as second component, where it has a value at all."""

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
        loaded = load_field(spec, **{**options, "velocity_field_name": name})
        # Readers give a scalar as a vector whose other components are zero.
        return Variable(loaded.field, scalar=not loaded.slices.read(0)[..., 1:].any())
    # As if it were a velocity of both directions, in the units of the file.
    options |= {"velocity_field_name": (name, name), "land": "nan", "slip": "none"}
    options |= {"velocity_units": "m/s", "cache": False, "view": _SeaOnly}
    return Variable(load_field(spec, **options).field, scalar=True, masked=True)


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
