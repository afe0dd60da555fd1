"""Meshes as users describe them, checked, and which element holds a point."""

from enum import StrEnum
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Integer

from jaxtrace.fields.base import Corner
from jaxtrace.fields.blocks import check_points
from jaxtrace.fields.cells import VTK_CODES, VTK_KINDS

ROUNDINGS = 64  # roundings by which a point may miss an element and still be in it


class ElementType(StrEnum):
    """Types of elements."""

    TRIANGLE = "triangle"
    QUAD = "quad"
    TETRA = "tetra"
    HEXAHEDRON = "hexahedron"
    WEDGE = "wedge"
    PYRAMID = "pyramid"


class UnstructuredMesh:
    """Nodes (N, 2 or 3) and elements (M, k) of one type, linear or of order 2.

    Elements of several types are VTK's flat list of nodes with `cell_types` and
    `cell_offsets` in place of `etype`. Without elements it is a cloud of points.
    """

    def __init__(
        self,
        nodes: Any,
        elements: Any = None,
        etype: Any = None,
        order: int = 1,
        *,
        cell_types: Any = None,
        cell_offsets: Any = None,
    ) -> None:
        self.nodes: Float[np.ndarray, "nodes 3"] = check_points(nodes)
        self.elements = _whole("elements", elements)
        self.etype = None if etype is None else ElementType(etype)
        self.order = order
        self.cell_types = _whole("cell_types", cell_types)
        self.cell_offsets = _whole("cell_offsets", cell_offsets)
        if self.elements is not None:
            self._check(self.elements)

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.nodes)

    @property
    def num_elements(self) -> int:
        """How many elements there are."""
        listed = self.elements if self.cell_types is None else self.cell_types
        return 0 if listed is None else len(listed)

    @property
    def kind(self) -> str | None:
        """The type and order of all elements in one word; None if there is no one."""
        if self.elements is None or self.etype is None:
            return None
        prefix = {1: "", 2: "quadratic_"}.get(self.order, f"order-{self.order} ")
        return prefix + self.etype.value

    @property
    def expected_nodes_per_element(self) -> int:
        """How many nodes an element of this type and order has."""
        if self.kind not in VTK_CODES:
            raise ValueError(
                f"etype {self.etype} of order {self.order}: a triangle or tetra has "
                "order 1 or 2, the other types order 1; several types have no number"
            )
        return VTK_KINDS[VTK_CODES[self.kind]][0].nodes

    def get_spatial_bounds(self) -> tuple[Corner, Corner]:
        """The corners of the box around all nodes."""
        return self.nodes.min(0), self.nodes.max(0)

    def _check(self, elements: Integer[np.ndarray, "..."]) -> None:
        bad = elements[(elements < 0) | (elements >= self.num_nodes)]
        if bad.size:
            raise ValueError(
                f"elements name node {bad[0]}, but there are {self.num_nodes} nodes, "
                "numbered from 0"
            )
        if self.cell_types is not None:
            return
        count = self.expected_nodes_per_element
        if elements.ndim != 2 or elements.shape[1] != count:
            raise ValueError(
                f"elements of shape {elements.shape}: a {self.kind} has {count} nodes"
            )


def _whole(name: str, numbers: Any) -> Integer[np.ndarray, "..."] | None:
    if numbers is None:
        return None
    array = np.asarray(numbers)
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"{name} of {array.dtype}: give whole numbers")
    return array


def guess_type(nodes: Any, elements: Any) -> tuple[ElementType, int]:
    """The type and order that so many nodes per element mean, in a plane or in space.

    >>> guess_type([[0, 0], [1, 0], [0, 1]], [[0, 1, 2]])
    (<ElementType.TRIANGLE: 'triangle'>, 1)
    """
    flat = np.ptp(check_points(nodes), axis=0).min() == 0
    width = np.shape(elements)[-1]
    plane = {3: ("triangle", 1), 4: ("quad", 1), 6: ("triangle", 2)}
    space = {4: ("tetra", 1), 5: ("pyramid", 1), 6: ("wedge", 1), 8: ("hexahedron", 1)}
    known = plane if flat else space | {10: ("tetra", 2)}
    if width not in known:
        raise ValueError(
            f"elements of {width} nodes {'in a plane' if flat else 'in space'}: give "
            f"{', '.join(map(str, known))} nodes, or say the etype"
        )
    name, order = known[width]
    return ElementType(name), order


def precompute_element_data(field: Any) -> dict[str, np.ndarray]:
    """Centroids (M, 3), bounds (M, 2, 3) and nodes (M, k, 3) of all elements.

    Takes a mesh, or a field that has one.
    """
    mesh = getattr(field, "mesh", field)
    if mesh.kind is None:
        raise ValueError("element data need a mesh with elements of one type")
    nodes = mesh.nodes[mesh.elements]
    return {
        "centroids": nodes.mean(1),
        "element_bounds": np.stack([nodes.min(1), nodes.max(1)], 1),
        "element_nodes": nodes,
    }


def optimized_element_search(
    x: Any, precomputed: dict[str, np.ndarray], mesh: UnstructuredMesh
) -> int | None:
    """The number of the triangle or tetrahedron that holds a point; None outside.

    Of several that touch at the point it is the one the point lies deepest in.
    """
    if mesh.etype not in (ElementType.TRIANGLE, ElementType.TETRA):
        raise ValueError(f"elements of type {mesh.etype}: only simplices are searched")
    point = np.asarray(x)
    single = point.dtype == np.float32
    rounding = ROUNDINGS * float(np.finfo(np.float32 if single else np.float64).eps)
    place = np.zeros(3)
    place[: point.size] = point
    near = np.flatnonzero(_touched(place, precomputed["element_bounds"], rounding))
    if near.size == 0:
        return None
    corners = 3 if mesh.etype == ElementType.TRIANGLE else 4
    depth = _depths(place, precomputed["element_nodes"][near, :corners])
    best = int(np.argmax(depth))
    return int(near[best]) if depth[best] >= -rounding else None


def _touched(
    place: Float[np.ndarray, " 3"], bounds: Float[np.ndarray, "m 2 3"], rounding: float
) -> Bool[np.ndarray, " m"]:
    room = rounding * np.ptp(bounds, axis=1).max(1, keepdims=True)
    low, high = bounds[:, 0] - room, bounds[:, 1] + room
    return ((place >= low) & (place <= high)).all(1)


def _depths(
    place: Float[np.ndarray, " 3"], nodes: Float[np.ndarray, "m corners 3"]
) -> Float[np.ndarray, " m"]:
    """The smallest barycentric coordinate in each simplex."""
    edges = nodes[:, 1:] - nodes[:, :1]
    offset = place - nodes[:, 0]
    later = np.einsum("mde,md->me", np.linalg.pinv(edges), offset)
    return np.minimum(later.min(1), 1 - later.sum(1))
