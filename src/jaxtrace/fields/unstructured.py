"""Fields on unstructured meshes as users make them: a mesh, and values at its nodes."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxtrace.fields.base import AbstractField, Sampled
from jaxtrace.fields.clock import steady_clock
from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.fields.nodal import check_values
from jaxtrace.fields.scattered import make_scattered_field
from jaxtrace.fields.schemes import Elements, make_elements
from jaxtrace.fields.unstructured_mesh import (
    ElementType,
    UnstructuredMesh,
    guess_type,
)


class UnstructuredField(Sampled):
    """Velocities on a mesh, by the shape functions of its elements.

    With `values` (N, 3), or (T, N, 3) and `times`, it is a field that trackers take;
    without, `sample(positions, nodal_values)` interpolates whatever is given. Positions
    beyond the mesh get the closest point of it, or zeros with `strict_inside`, or what
    `outside` says: "nearest_element", "zero", "nan" or "extrapolate".

    A mesh without elements is interpolated on Delaunay's simplices of its nodes, or by
    the nearest node if `knn_k` is 1; other numbers of neighbors make no difference.
    Elements are always searched exactly, with `use_element_search` or without.
    """

    def __init__(
        self,
        mesh: UnstructuredMesh,
        values: Any = None,
        times: Any = None,
        knn_k: int | None = None,
        strict_inside: bool = False,
        use_element_search: bool = False,
        *,
        outside: str | None = None,
        interpolation: str = "linear",
        extrapolation: str = "constant",
        dtype: Any = None,
    ) -> None:
        del use_element_search
        self.mesh = mesh
        self.has_values = values is not None
        self._frozen = _build(
            mesh,
            values if self.has_values else np.zeros((mesh.num_nodes, 3)),
            knn_k,
            times=times if self.has_values else None,
            outside=outside or ("zero" if strict_inside else "nearest_element"),
            interpolation=interpolation,
            extrapolation=extrapolation,
            dtype=dtype,
        )

    @property
    def frozen(self) -> AbstractField:
        """The field as the pytree that compiled code takes."""
        if not self.has_values:
            raise ValueError(
                "this field has no values: make it with values=(N, 3), or sample it "
                "with nodal values"
            )
        return self._frozen

    def __call__(self, positions: Any, t: Any = 0.0) -> Array:
        """Velocities at positions and a time."""
        return self.sample_at_positions(positions, t)

    def contains(self, positions: Any, t: Any = 0.0) -> Bool[Array, " n"]:
        """Whether an element holds each position, with values or without."""
        return self._frozen.contains(positions, t)

    def sample(self, positions: Any, nodal_values: Any = None) -> Array:
        """Values at positions: of those given for the nodes, or the field at time 0."""
        if nodal_values is None:
            return self.sample_at_positions(positions, 0.0)
        return interpolate_nodal(self._frozen, positions, nodal_values)


def _build(
    mesh: UnstructuredMesh, values: Any, knn_k: int | None, **options: Any
) -> Any:
    if mesh.elements is None:
        scheme = "nearest" if knn_k == 1 else "linear"
        return make_scattered_field(
            mesh.nodes, values, spatial_interpolation=scheme, **options
        )
    return make_mesh_field(
        mesh.nodes,
        mesh.elements,
        values,
        types=mesh.cell_types,
        offsets=mesh.cell_offsets,
        kind=mesh.kind,
        **options,
    )


def interpolate_nodal(field: Any, positions: Any, nodal: Any) -> Float[Array, "n 3"]:
    """Nodal values (N, 2 or 3) at positions, on the mesh of a field made before."""
    count = field.values.shape[-2]
    if not isinstance(nodal, jax.Array):
        nodal = check_values(nodal, count, None)[0]
    if nodal.shape != (count, 3):
        raise ValueError(f"nodal values of shape {nodal.shape}: give ({count}, 3)")
    values = jnp.asarray(nodal).astype(field.values.dtype)[None]
    fitted = eqx.tree_at(lambda f: (f.values, f.clock), field, (values, steady_clock()))
    return fitted.sample_at_positions(positions, 0.0)


def create_unstructured_field_2d(
    nodes: Any, triangles: Any = None, order: int = 1, **options: Any
) -> UnstructuredField:
    """A field in a plane, on triangles of order 1 or 2, or on nodes alone."""
    mesh = UnstructuredMesh(nodes, triangles, ElementType.TRIANGLE, order)
    return UnstructuredField(mesh, **options)


def create_unstructured_field_3d(
    nodes: Any, tetrahedra: Any = None, order: int = 1, **options: Any
) -> UnstructuredField:
    """A field in space, on tetrahedra of order 1 or 2, or on nodes alone."""
    mesh = UnstructuredMesh(nodes, tetrahedra, ElementType.TETRA, order)
    return UnstructuredField(mesh, **options)


def create_unstructured_from_vtk_data(
    vtk_data: Mapping[str, Any], velocity_field_name: str = "velocity", **options: Any
) -> UnstructuredField:
    """A field from what a mesh file holds.

    `vtk_data` has `points` and, where there are any, `connectivity` (rows, or flat with
    `cell_types` and `cell_offsets`), the velocity (N, 3), or (T, N, 3) with `times`.
    """
    if "points" not in vtk_data:
        raise ValueError(
            f"vtk_data has no 'points', only {', '.join(map(str, vtk_data))}"
        )
    names = ("connectivity", "cell_types", "cell_offsets")
    elements = make_elements(*(vtk_data.get(name) for name in names))
    mesh = element_mesh(vtk_data["points"], elements)
    options.setdefault("values", vtk_data.get(velocity_field_name))
    options.setdefault("times", vtk_data.get("times"))
    return UnstructuredField(mesh, **options)


def element_mesh(points: Any, elements: Elements | None) -> UnstructuredMesh:
    """The mesh of elements whose type follows from how many nodes they have."""
    if elements is None:
        return UnstructuredMesh(points)
    if elements.types is None:
        etype, order = guess_type(points, elements.connectivity)
        return UnstructuredMesh(points, elements.connectivity, etype, order)
    return UnstructuredMesh(
        points,
        elements.connectivity,
        cell_types=elements.types,
        cell_offsets=elements.offsets,
    )


UnstructuredSampler = UnstructuredField
