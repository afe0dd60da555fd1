"""Meshes on the host: cells checked and put in order, neighbors and boundary."""

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from jaxtrace.fields.cells import KINDS, VTK_CODES, VTK_KINDS, VTK_THIN, Kind
from jaxtrace.fields.curve import curve_order, in_chunks
from jaxtrace.fields.faces import pair_faces
from jaxtrace.types import check_choice

Nodes = Int[np.ndarray, "_ _"]
WIDTHS = {3: "triangle", 8: "hexahedron", 10: "quadratic_tetra"}  # of known meaning
FLAT = 1e-12  # a volume, over the longest edge's cube, that is only rounding
STRAIGHT = 1e-3  # how far off the middle, in edges, a straight edge's node may be


@dataclass(frozen=True, eq=False)
class Elements:
    """Cells over nodes: rows (M, k) of one kind, or VTK's flat list of several."""

    connectivity: Any
    types: Any = None
    offsets: Any = None
    kind: str | None = None

    def flatten(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return VTK's flat connectivity, offsets from 0 on, and types."""
        connectivity = np.asarray(self.connectivity)
        if connectivity.ndim == 2:
            name = self.kind or _kind_of_width(points, connectivity)
            check_choice("kind", name, VTK_CODES)
            count, width = connectivity.shape
            types = np.full(count, VTK_CODES[name])
            return connectivity.ravel(), width * np.arange(count + 1), types
        if self.offsets is None or self.types is None:
            raise ValueError(
                "flat connectivity needs the offsets and types of its cells"
            )
        offsets, types = np.asarray(self.offsets), np.asarray(self.types)
        if len(offsets) == len(types):  # ends only, as .vtu files store them
            offsets = np.concatenate([[0], offsets])
        return connectivity, offsets, types


class Block(NamedTuple):
    """Cells of one kind: rows of nodes, and the numbers the cells were given by."""

    nodes: Nodes
    numbers: Int[np.ndarray, " cells"]


def read_blocks(
    points: Float[np.ndarray, "points 3"], elements: Elements
) -> tuple[dict[str, Block], tuple[int, ...]]:
    """Return the cells of each kind, and the axes along which they extend."""
    connectivity = np.asarray(elements.connectivity)
    if not np.issubdtype(connectivity.dtype, np.integer):
        raise TypeError(f"connectivity of {connectivity.dtype}: give node numbers")
    bounds = (connectivity.min(), connectivity.max()) if connectivity.size else (0, 0)
    if bounds[0] < 0 or bounds[1] >= len(points):
        outside = connectivity[(connectivity < 0) | (connectivity >= len(points))]
        raise ValueError(
            f"connectivity names node {outside[0]}, but there are {len(points)} "
            "points, numbered from 0"
        )
    blocks = _unpack(*elements.flatten(points))
    dimension = max(KINDS[name].dimension for name in blocks)
    lower = {k: b for k, b in blocks.items() if KINDS[k].dimension < dimension}
    if lower:
        counts = ", ".join(f"{len(b.nodes)} {name}" for name, b in lower.items())
        warnings.warn(
            f"{counts} cells are surfaces in a mesh of volumes: they are ignored",
            stacklevel=5,
        )
    blocks = {k: b for k, b in blocks.items() if k not in lower}
    axes = (0, 1, 2) if dimension == 3 else _plane(points, blocks)
    blocks = {name: _proper(points[:, axes], b, name) for name, b in blocks.items()}
    blocks = {name: block for name, block in blocks.items() if len(block.nodes)}
    if not blocks:
        raise ValueError("the mesh has no cell with a volume: check its nodes")
    return blocks, axes


def check_points(points: Any) -> Float[np.ndarray, "points 3"]:
    """Return points as (N, 3) in float64; every one must be a number."""
    points = np.asarray(points, np.float64)
    if points.ndim != 2 or points.shape[1] not in (2, 3) or not len(points):
        raise ValueError(f"points of shape {points.shape}: give (N, 3) or (N, 2)")
    if points.shape[1] == 2:
        points = np.pad(points, ((0, 0), (0, 1)))
    bad = np.flatnonzero(~np.isfinite(points).all(1))
    if bad.size:
        raise ValueError(
            f"{bad.size} points are not finite, the first is points[{bad[0]}] = "
            f"{points[bad[0]]}: repair or remove them"
        )
    return points


def _kind_of_width(points: np.ndarray, connectivity: np.ndarray) -> str:
    width = connectivity.shape[1]
    if width == 4:
        flat = np.ptp(points, axis=0).min() == 0
        return "quad" if flat else "tetra"
    if width not in WIDTHS:
        raise ValueError(
            f"cells of {width} nodes: say which kind, one of {', '.join(VTK_CODES)}"
        )
    return WIDTHS[width]


def _unpack(
    connectivity: np.ndarray, offsets: np.ndarray, types: np.ndarray
) -> dict[str, Block]:
    """Return blocks per kind from cells laid end to end."""
    if len(offsets) != len(types) + 1 or offsets[-1] != len(connectivity):
        raise ValueError(
            f"{len(types)} types, {len(offsets)} offsets up to {offsets[-1]} and "
            f"{len(connectivity)} node numbers do not describe the same cells"
        )
    sizes = np.diff(offsets)
    blocks: dict[str, list[Block]] = {}
    for code in np.unique(types):
        if int(code) in VTK_THIN:
            continue
        if int(code) not in VTK_KINDS:
            known = ", ".join(f"{k} {v[0].name}" for k, v in VTK_KINDS.items())
            raise ValueError(f"cells of VTK type {code} are not supported; {known} are")
        kind, order = VTK_KINDS[int(code)]
        cells = np.flatnonzero(types == code)
        wrong = cells[sizes[cells] != kind.nodes]
        if wrong.size:
            raise ValueError(
                f"cell {wrong[0]} has {sizes[wrong[0]]} nodes, but a {kind.name} (VTK "
                f"type {code}) has {kind.nodes}"
            )
        if len(cells) == len(types):
            nodes = connectivity.reshape(-1, kind.nodes)
            nodes = nodes if order == tuple(range(kind.nodes)) else nodes[:, order]
        else:
            nodes = connectivity[offsets[cells][:, None] + np.asarray(order)]
        block = Block(nodes.astype(np.int32), cells)
        blocks.setdefault(kind.name, []).append(block)
    if not blocks:
        raise ValueError("the mesh has no cells with an area or a volume")
    return {
        name: Block(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        for name, parts in blocks.items()
    }


def _plane(points: np.ndarray, blocks: dict[str, Block]) -> tuple[int, int]:
    used = np.zeros(len(points), bool)
    for block in blocks.values():
        used[block.nodes] = True
    extent = np.ptp(points[used], axis=0)
    flat = extent <= 1e-6 * extent.max()
    for missing in (2, 1, 0):
        if flat[missing]:
            first, second = (i for i in range(3) if i != missing)
            return first, second
    raise ValueError(
        f"cells of a surface that extends {extent} along x, y and z: a mesh of "
        "triangles or quads must lie in a plane of constant x, y or z"
    )


def _proper(points: np.ndarray, block: Block, name: str) -> Block:
    """Return the cells that have a volume and, if quadratic, straight edges."""
    kind = KINDS[name]
    _check_straight(points, block, kind)
    flat = relative_volumes(points, block.nodes, kind) <= FLAT
    if not flat.any():
        return block
    warnings.warn(
        f"{int(flat.sum())} of {len(flat)} {name} cells have no volume, the first is "
        f"cell {block.numbers[np.argmax(flat)]}: they are ignored",
        stacklevel=6,
    )
    return Block(block.nodes[~flat], block.numbers[~flat])


def _check_straight(points: np.ndarray, block: Block, kind: Kind) -> None:
    nodes = block.nodes
    for i, (a, b) in enumerate(kind.middle_edges):
        start, end = points[nodes[:, a]], points[nodes[:, b]]
        off = np.linalg.norm(
            points[nodes[:, kind.corners + i]] - (start + end) / 2, axis=1
        )
        curved = off > STRAIGHT * np.linalg.norm(end - start, axis=1)
        if curved.any():
            raise ValueError(
                f"{int(curved.sum())} {kind.name} cells have curved edges, the first "
                f"is cell {block.numbers[np.argmax(curved)]}: only straight edges, "
                "with nodes in their middle, are supported; split the cells at these "
                "nodes"
            )


# Coordinates and small matrices have the points or cells last: NumPy is fast on rows
# that are long and without gaps.
def corner_places(
    columns: Float[np.ndarray, "dim points"], nodes: Nodes, corners: int
) -> Float[np.ndarray, "corners dim cells"]:
    """Return where the first so many nodes of cells are."""
    places = np.empty((corners, len(columns), len(nodes)), columns.dtype)
    for node, place in zip(nodes.T, places, strict=False):
        index = node.astype(np.intp)
        for column, part in zip(columns, place, strict=True):
            part[:] = column[index]
    return places


def expand(
    corners: Float[np.ndarray, "corners dim cells"], kind: Kind
) -> Float[np.ndarray, "terms dim cells"]:
    """Return origin, linear part and products of the maps of cells.

    They are relative to the cell's first corner, which loses nothing far from zero.
    """
    offsets = (corners - corners[:1]).reshape(kind.corners, -1)
    terms = np.asarray(kind.expansion) @ offsets
    return terms.reshape(-1, *corners.shape[1:])


def invert_linear(
    linear: Float[np.ndarray, "dim dim cells"],
) -> tuple[Float[np.ndarray, "dim dim cells"], Float[np.ndarray, " cells"]]:
    """Return cofactors and determinants: their quotient is the inverse map.

    Rows of `linear` are where unit steps along each coordinate lead.
    """
    if len(linear) == 2:
        (a, b), (c, d) = linear
        return np.stack([[d, -c], [-b, a]]), a * d - b * c
    cofactors = np.empty_like(linear)
    for i in range(3):
        one, two = linear[(i + 1) % 3], linear[(i + 2) % 3]
        for k in range(3):
            m, n = (k + 1) % 3, (k + 2) % 3
            cofactors[i, k] = one[m] * two[n] - one[n] * two[m]
    return cofactors, (linear[0] * cofactors[0]).sum(0)


def relative_volumes(
    points: np.ndarray, nodes: Nodes, kind: Kind
) -> Float[np.ndarray, " cells"]:
    """Return volumes of the cells' linear parts over their longest edge cubed."""
    columns = np.ascontiguousarray(points.T)
    volumes = np.empty(len(nodes))

    def fill(some: slice) -> None:
        corners = corner_places(columns, nodes[some], kind.corners)
        longest = np.ptp(corners, axis=0).max(0)
        safe = np.where(longest > 0, longest, 1)
        linear = expand(corners, kind)[1 : kind.dimension + 1] / safe
        volumes[some] = np.abs(invert_linear(linear)[1]) * (longest > 0)

    in_chunks(len(nodes), fill)
    return volumes


class BoundaryFaces(NamedTuple):
    """Faces with a cell on one side only; in a plane they are edges."""

    nodes: Nodes  # around each face; missing corners are -1
    cells: Int[np.ndarray, " faces"]
    places: Int[np.ndarray, " faces"]  # which face of its cell each one is


@dataclass(frozen=True, eq=False)
class Mesh:
    """Cells as padded rows: spare nodes repeat the first, spare neighbors are -1.

    Cells lie along a space-filling curve; `numbers` are those they were given by.
    """

    points: Float[np.ndarray, "points 3"]
    axes: tuple[int, ...]  # the coordinates that vary: three, or two in a plane
    kinds: tuple[str, ...]
    kind: Int[np.ndarray, " cells"]  # index into kinds
    nodes: Nodes
    numbers: Int[np.ndarray, " cells"]
    neighbors: Int[np.ndarray, "cells faces"]
    boundary: BoundaryFaces

    @property
    def dimension(self) -> int:
        """Return how many coordinates a place in the mesh has."""
        return len(self.axes)

    def members(self, index: int) -> Int[np.ndarray, " members"]:
        """Return the cells of one kind."""
        return np.flatnonzero(self.kind == index)


def make_mesh(
    points: Any, elements: Elements, same: Int[np.ndarray, " points"] | None = None
) -> Mesh:
    """Return a checked mesh of cells over points.

    `same` names, for each node, the node that stands for it where cells are joined.
    """
    points = check_points(points)
    blocks, axes = read_blocks(points, elements)
    kinds, sizes = tuple(blocks), [len(block.nodes) for block in blocks.values()]
    kind = np.repeat(np.arange(len(kinds), dtype=np.int32), sizes)
    width = max(block.nodes.shape[1] for block in blocks.values())
    nodes = np.concatenate(
        [
            np.concatenate([n, np.repeat(n[:, :1], width - n.shape[1], 1)], 1)
            for n, _ in blocks.values()
        ]
    )
    numbers = np.concatenate([block.numbers for block in blocks.values()])
    columns = np.ascontiguousarray(points.T)
    centers = lambda some: corner_places(columns, nodes[some], width).mean(0)
    order = curve_order(len(nodes), centers, points.min(0), points.max(0))
    kind, nodes, numbers = kind[order], nodes[order], numbers[order]
    neighbors, boundary = _join([KINDS[k] for k in kinds], kind, nodes, numbers, same)
    return Mesh(points, axes, kinds, kind, nodes, numbers, neighbors, boundary)


def coincident(
    points: Float[np.ndarray, "points numbers"],
) -> Int[np.ndarray, " points"]:
    """Return for each node the first at the same place: pieces repeat nodes."""
    order = np.lexsort(points.T)
    ranked = points[order]
    fresh = np.ones(len(points), bool)
    fresh[1:] = (ranked[1:] != ranked[:-1]).any(1)
    lead = np.empty(len(points), np.int64)
    lead[order] = order[np.flatnonzero(fresh)[np.cumsum(fresh) - 1]]
    return lead


def _join(
    kinds: list[Kind],
    kind: Int[np.ndarray, " cells"],
    nodes: Nodes,
    numbers: Int[np.ndarray, " cells"],
    same: Int[np.ndarray, " points"] | None,
) -> tuple[Int[np.ndarray, "cells faces"], BoundaryFaces]:
    """Return neighbors across faces, and the faces without one."""
    most = max(len(shape.faces) for shape in kinds)
    corners = max(len(face) for shape in kinds for face in shape.faces)
    table = np.empty((corners, len(nodes), most), np.int32)

    def fill(some: slice) -> None:
        table[:, some] = -1
        for index, shape in enumerate(kinds):
            here = np.flatnonzero(kind[some] == index)
            for place, face in enumerate(shape.faces):
                for c, corner in enumerate(face):
                    table[c, some, place][here] = nodes[some, corner][here]

    in_chunks(len(nodes), fill)
    faces = table.reshape(corners, -1)
    at = np.arange(faces.shape[1])
    if len(kinds) > 1:  # which differ in how many faces they have
        at = np.flatnonzero(faces[0] >= 0)
        faces = faces[:, at]
    other, crowded = pair_faces(faces, same)
    if crowded.size:
        alike = (np.sort(faces, 0) == np.sort(faces[:, crowded[:1]], 0)).all(0)
        cells = ", ".join(map(str, numbers[at[alike] // most]))
        warnings.warn(
            f"{crowded.size} faces are shared by more than two cells, the first by "
            f"cells {cells}: remove cells that are there twice",
            stacklevel=5,
        )
    neighbors = np.full(len(nodes) * most, -1, np.int32)
    neighbors[at] = np.where(other < 0, -1, at[other] // most)
    alone = np.flatnonzero(other < 0)
    cells, places = np.divmod(at[alone], most)
    boundary = BoundaryFaces(faces[:, alone].T, cells.astype(np.int32), places)
    return neighbors.reshape(-1, most), boundary
