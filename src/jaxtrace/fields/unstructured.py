"""Fields on unstructured meshes as users make them: a mesh, and values at its nodes."""

import os
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from jaxtrace.fields.base import AbstractField, Field
from jaxtrace.fields.clock import steady_clock
from jaxtrace.fields.mesh import check_values, make_mesh_field
from jaxtrace.fields.scattered import make_scattered_field


@dataclass(frozen=True, eq=False)
class UnstructuredMesh:
    """Nodes (N, 2 or 3) and elements (M, k) of one type, linear or of order 2.

    `etype` is "triangle", "quad", "tetra", "hexahedron", "wedge" or "pyramid". Elements
    of several types are VTK's flat list of nodes with `cell_types` and `cell_offsets`
    in place of `etype`. Without elements it is a cloud of points.
    """

    nodes: Any
    elements: Any = None
    etype: str | None = None
    order: int = 1
    cell_types: Any = None
    cell_offsets: Any = None

    @property
    def kind(self) -> str | None:
        """Return the type and order of all elements; None if they differ."""
        if self.elements is None or self.etype is None:
            return None
        prefix = {1: "", 2: "quadratic_"}.get(self.order, f"order-{self.order} ")
        return f"{prefix}{self.etype}"


class UnstructuredField(Field):
    """Velocities on a mesh, by the shape functions of its elements.

    With `values` (N, 3), or (T, N, 3) and `times`, it is a field that trackers take;
    without, `sample(positions, nodal_values)` interpolates whatever is given. Positions
    beyond the mesh get what `outside` says: the closest point of it
    ("nearest_element"), "zero", "nan" or "extrapolate".

    A mesh without elements is interpolated on Delaunay's simplices of its nodes, or by
    the nearest node if `spatial_interpolation` is "nearest". A large mesh of elements
    is kept in the folder `cache`, and read from there the next time.
    """

    def __init__(
        self,
        mesh: UnstructuredMesh,
        values: Any = None,
        times: Any = None,
        *,
        spatial_interpolation: str = "linear",
        outside: str = "nearest_element",
        interpolation: str = "linear",
        extrapolation: str = "constant",
        dtype: Any = None,
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        self.mesh = mesh
        self.has_values = values is not None
        if values is None:
            values, times = np.zeros((len(mesh.nodes), 3)), None
        rules: dict[str, Any] = {
            "times": times,
            "outside": outside,
            "interpolation": interpolation,
            "extrapolation": extrapolation,
            "dtype": dtype,
        }
        if mesh.elements is None:
            rules["spatial_interpolation"] = spatial_interpolation
            self._frozen = make_scattered_field(mesh.nodes, values, **rules)
            return
        cells = {"types": mesh.cell_types, "offsets": mesh.cell_offsets}
        self._frozen = make_mesh_field(
            mesh.nodes,
            mesh.elements,
            values,
            kind=mesh.kind,
            **cells,
            **rules,
            cache=cache,
        )

    @property
    def frozen(self) -> AbstractField:
        """Return the field as the pytree that compiled code takes."""
        if not self.has_values:
            raise ValueError(
                "this field has no values: make it with values=(N, 3), or sample it "
                "with nodal values"
            )
        return self._frozen

    def contains(self, positions: Any, t: Any = 0.0) -> Bool[Array, " n"]:
        """Return whether an element holds each position, with values or without."""
        return self._frozen.contains(positions, t)

    def sample(self, positions: Any, nodal_values: Any = None) -> Array:
        """Interpolate the given nodal values, or the field at time 0."""
        if nodal_values is None:
            return self.sample_at_positions(positions, 0.0)
        field, count = self._frozen, self._frozen.values.shape[-2]
        if not isinstance(nodal_values, jax.Array):
            nodal_values = check_values(nodal_values, count, None)[0]
        if nodal_values.shape != (count, 3):
            shape = nodal_values.shape
            raise ValueError(f"nodal values of shape {shape}: give ({count}, 3)")
        values = jnp.asarray(nodal_values).astype(field.values.dtype)[None]
        parts = (values, steady_clock())
        fitted = eqx.tree_at(lambda f: (f.values, f.clock), field, parts)
        return fitted.sample_at_positions(positions, 0.0)
