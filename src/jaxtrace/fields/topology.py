"""Meshes on the host: cells checked and sorted by kind, neighbors and boundary."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxtrace.fields.cells import (
    KINDS,
    VTK_CODES,
    VTK_KINDS,
    VTK_THIN,
    Kind,
    middle_edges,
)
from jaxtrace.types import check_choice

Nodes = Int[np.ndarray, "_ _"]
WIDTHS = {3: "triangle", 8: "hexahedron", 10: "quadratic_tetra"}  # of known meaning
FLAT = 1e-12  # a volume, over the longest edge's cube, that is only rounding
STRAIGHT = 1e-3  # how far off the middle, in edges, a straight edge's node may be


def read_blocks(
    points: Float[np.ndarray, "points 3"],
    connectivity: Any,
    offsets: Any = None,
    types: Any = None,
    kind: str | None = None,
) -> tuple[dict[str, Nodes], tuple[int, ...]]:
    """Return rows of nodes per kind, and the axes along which the cells extend."""
    blocks = cell_blocks(points, connectivity, offsets, types, kind)
    dimension = max(KINDS[name].dimension for name in blocks)
    blocks = _of_dimension(blocks, dimension)
    axes = (0, 1, 2) if dimension == 3 else _plane(points, blocks)
    blocks = {name: _proper(points[:, axes], n, name) for name, n in blocks.items()}
    blocks = {name: nodes for name, nodes in blocks.items() if len(nodes)}
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


def flatten(
    points: np.ndarray, connectivity: Any, offsets: Any, types: Any, kind: str | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return cells as VTK's flat connectivity, offsets from 0 on, and types."""
    connectivity = np.asarray(connectivity)
    if connectivity.ndim == 2:
        name = kind or _kind_of_width(points, connectivity)
        check_choice("kind", name, VTK_CODES)
        count, width = connectivity.shape
        types = np.full(count, VTK_CODES[name])
        return connectivity.ravel(), width * np.arange(count + 1), types
    if offsets is None or types is None:
        raise ValueError("flat connectivity needs the offsets and types of its cells")
    offsets, types = np.asarray(offsets), np.asarray(types)
    if len(offsets) == len(types):  # ends only, as .vtu files store them
        offsets = np.concatenate([[0], offsets])
    return connectivity, offsets, types


def cell_blocks(
    points: np.ndarray, connectivity: Any, offsets: Any, types: Any, kind: str | None
) -> dict[str, Nodes]:
    """Return rows of nodes for each kind of cell, whatever their shape or dimension."""
    connectivity = np.asarray(connectivity)
    if not np.issubdtype(connectivity.dtype, np.integer):
        raise TypeError(f"connectivity of {connectivity.dtype}: give node numbers")
    outside = connectivity[(connectivity < 0) | (connectivity >= len(points))]
    if outside.size:
        raise ValueError(
            f"connectivity names node {outside[0]}, but there are {len(points)} "
            "points, numbered from 0"
        )
    return _unpack(*flatten(points, connectivity, offsets, types, kind))


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
) -> dict[str, Nodes]:
    """Return blocks of rows per kind from cells laid end to end."""
    if len(offsets) != len(types) + 1 or offsets[-1] != len(connectivity):
        raise ValueError(
            f"{len(types)} types, {len(offsets)} offsets up to {offsets[-1]} and "
            f"{len(connectivity)} node numbers do not describe the same cells"
        )
    sizes = np.diff(offsets)
    blocks: dict[str, list[np.ndarray]] = {}
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
        nodes = connectivity[offsets[cells][:, None] + np.asarray(order)]
        blocks.setdefault(kind.name, []).append(nodes.astype(np.int64))
    if not blocks:
        raise ValueError("the mesh has no cells with an area or a volume")
    return {name: np.concatenate(parts) for name, parts in blocks.items()}


def _of_dimension(blocks: dict[str, Nodes], dimension: int) -> dict[str, Nodes]:
    lower = {k: n for k, n in blocks.items() if KINDS[k].dimension < dimension}
    if lower:
        counts = ", ".join(f"{len(n)} {name}" for name, n in lower.items())
        warnings.warn(
            f"{counts} cells are surfaces in a mesh of volumes: they are ignored",
            stacklevel=5,
        )
    return {k: n for k, n in blocks.items() if k not in lower}


def _plane(points: np.ndarray, blocks: dict[str, Nodes]) -> tuple[int, int]:
    used = np.unique(np.concatenate([n.ravel() for n in blocks.values()]))
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


def _proper(points: np.ndarray, nodes: Nodes, name: str) -> Nodes:
    """Return the cells that have a volume and, if quadratic, straight edges."""
    kind = KINDS[name]
    _check_straight(points, nodes, kind)
    flat = relative_volumes(points, nodes, kind) <= FLAT
    if flat.any():
        warnings.warn(
            f"{int(flat.sum())} of {len(nodes)} {name} cells have no volume: they are "
            "ignored",
            stacklevel=5,
        )
    return nodes[~flat]


def _check_straight(points: np.ndarray, nodes: Nodes, kind: Kind) -> None:
    for i, (a, b) in enumerate(middle_edges(kind)):
        start, end = points[nodes[:, a]], points[nodes[:, b]]
        off = np.linalg.norm(
            points[nodes[:, kind.corners + i]] - (start + end) / 2, axis=1
        )
        curved = off > STRAIGHT * np.linalg.norm(end - start, axis=1)
        if curved.any():
            raise ValueError(
                f"{int(curved.sum())} {kind.name} cells have curved edges, the first "
                f"is number {int(np.argmax(curved))}: only straight edges, with nodes "
                "in their middle, are supported; split the cells at these nodes"
            )


def expand(points: np.ndarray, nodes: Nodes, kind: Kind) -> np.ndarray:
    """Return origin, linear part and products of every cell's map, (cells, terms, dim).

    They are relative to the cell's first corner, which loses nothing far from zero.
    """
    corners = points[nodes[:, : kind.corners]]
    return np.einsum(
        "tc,mcd->mtd", np.asarray(kind.expansion), corners - corners[:, :1]
    )


def relative_volumes(
    points: np.ndarray, nodes: Nodes, kind: Kind
) -> Float[np.ndarray, " cells"]:
    """Return volumes of the cells' linear parts over their longest edge cubed."""
    linear = expand(points, nodes, kind)[:, 1 : kind.dimension + 1]
    corners = points[nodes[:, : kind.corners]]
    longest = np.ptp(corners, axis=1).max(1)
    safe = np.where(longest > 0, longest, 1)
    return np.abs(np.linalg.det(linear / safe[:, None, None])) * (longest > 0)


@dataclass(frozen=True, eq=False)
class BoundaryFaces:
    """Faces with a cell on one side only; unit normals point into the mesh.

    In a plane faces are edges and areas are lengths; missing corners are -1.
    """

    nodes: Int[np.ndarray, "faces corners"]
    cells: Int[np.ndarray, " faces"]
    places: Int[np.ndarray, " faces"]  # which face of its cell each one is
    areas: Float[np.ndarray, " faces"]
    normals: Float[np.ndarray, "faces 3"]
    centers: Float[np.ndarray, "faces 3"]


@dataclass(frozen=True, eq=False)
class Mesh:
    """Cells as padded rows: spare nodes repeat the first, spare neighbors are -1."""

    points: Float[np.ndarray, "points 3"]
    axes: tuple[int, ...]  # the coordinates that vary: three, or two in a plane
    kinds: tuple[str, ...]
    kind: Int[np.ndarray, " cells"]  # index into kinds
    nodes: Nodes
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
    points: Any,
    connectivity: Any,
    offsets: Any = None,
    types: Any = None,
    kind: str | None = None,
    same: Int[np.ndarray, " points"] | None = None,
) -> Mesh:
    """Return a checked mesh of VTK cells, or of rows (M, k) of nodes of one kind.

    `same` names, for each node, the node that stands for it where cells are joined.
    """
    points = check_points(points)
    blocks, axes = read_blocks(points, connectivity, offsets, types, kind)
    kinds = tuple(blocks)
    sizes = [len(nodes) for nodes in blocks.values()]
    number = np.repeat(np.arange(len(kinds), dtype=np.int32), sizes)
    same = np.arange(len(points)) if same is None else same
    neighbors, faces, owners, places = _join([KINDS[k] for k in kinds], blocks, same)
    nodes = _padded_nodes(blocks)
    boundary = _boundary(points, axes, nodes, faces, owners, places)
    return Mesh(points, axes, kinds, number, nodes, neighbors, boundary)


def coincident(
    points: Float[np.ndarray, "points 3"],
    values: Float[np.ndarray, "times points 3"] | None = None,
) -> Int[np.ndarray, " points"]:
    """Return for each node the first at the same place: pieces repeat nodes.

    Where values are given, nodes that differ in value at any time stay apart.
    """
    _, first, place = np.unique(points, axis=0, return_index=True, return_inverse=True)
    lead = first[np.ravel(place)]
    if values is None:
        return lead
    repeated = np.flatnonzero(lead != np.arange(len(points)))
    equal = (values[:, repeated] == values[:, lead[repeated]]).all((0, 2))
    same = np.arange(len(points))
    same[repeated[equal]] = lead[repeated[equal]]
    return same


def _padded_nodes(blocks: dict[str, Nodes]) -> Nodes:
    width = max(nodes.shape[1] for nodes in blocks.values())
    padded = [
        np.concatenate([n, np.repeat(n[:, :1], width - n.shape[1], 1)], 1)
        for n in blocks.values()
    ]
    return np.concatenate(padded).astype(np.int32)


def _join(
    kinds: list[Kind], blocks: dict[str, Nodes], same: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return neighbors across faces; faces without one, their cells and places."""
    most = max(len(kind.faces) for kind in kinds)
    corners = max(len(face) for kind in kinds for face in kind.faces)
    faces, owners, places, first = [], [], [], 0
    for kind, nodes in zip(kinds, blocks.values(), strict=True):
        for place, face in enumerate(kind.faces):
            rows = np.full((len(nodes), corners), -1, np.int64)
            rows[:, : len(face)] = nodes[:, face]
            faces.append(rows)
            owners.append(first + np.arange(len(nodes)))
            places.append(np.full(len(nodes), place))
        first += len(nodes)
    face, owner = np.concatenate(faces), np.concatenate(owners)
    other, alone = pair_faces(np.where(face < 0, -1, same[face]), len(same))
    neighbors = np.full((first, most), -1, np.int32)
    place = np.concatenate(places)
    neighbors[owner, place] = np.where(alone, -1, owner[other])
    return neighbors, face[alone], owner[alone], place[alone]


def pair_faces(
    faces: np.ndarray, count: int
) -> tuple[np.ndarray, Bool[np.ndarray, " n"]]:
    """Return the next face with the same corners, and whether there is none."""
    ordered = np.sort(faces, 1) + 1
    keys = [ordered[:, -1] * (count + 1) + ordered[:, -2]]
    if ordered.shape[1] > 2:
        rest = ordered[:, -3] * (count + 1)
        keys.append(rest + ordered[:, -4] if ordered.shape[1] > 3 else rest)
    order = np.lexsort(keys)
    ranked = [key[order] for key in keys]
    fresh = np.ones(len(order), bool)
    fresh[1:] = np.any([key[1:] != key[:-1] for key in ranked], 0)
    starts = np.flatnonzero(fresh)
    run = np.cumsum(fresh) - 1
    ends = np.append(starts[1:], len(order)) - 1
    following = np.arange(1, len(order) + 1)
    following[ends] = starts  # the last of equal faces is followed by the first
    other = np.empty_like(order)
    other[order] = order[following]
    alone = np.empty(len(order), bool)
    alone[order] = (ends == starts)[run]
    return other, alone


def _boundary(
    points: np.ndarray,
    axes: tuple[int, ...],
    nodes: Nodes,
    faces: np.ndarray,
    owners: np.ndarray,
    places: np.ndarray,
) -> BoundaryFaces:
    triangles, face = split_faces(faces)
    corners = points[triangles]
    crossed = wall_normals(corners, axes)
    vectors = np.zeros((len(faces), 3))
    np.add.at(vectors, face, crossed)
    areas = np.zeros(len(faces))
    np.add.at(areas, face, np.linalg.norm(crossed, axis=1))
    known = (faces >= 0)[..., None]
    centers = (points[faces] * known).sum(1) / known.sum(1)
    inward = points[nodes[owners]].mean(1) - centers
    vectors *= np.sign((vectors * inward).sum(1, keepdims=True))
    size = np.linalg.norm(vectors, axis=1, keepdims=True)
    normals = vectors / np.where(size > 0, size, 1)
    cells = owners.astype(np.int32)
    return BoundaryFaces(faces, cells, places, areas, normals, centers)


def split_faces(faces: np.ndarray) -> tuple[np.ndarray, Int[np.ndarray, " parts"]]:
    """Split faces into triangles (edges in a plane); return their faces too."""
    width = faces.shape[1]
    everyone = np.arange(len(faces))
    if width < 4:
        return faces, everyone
    quads = np.flatnonzero(faces[:, 3] >= 0)
    parts = np.concatenate([faces[:, :3], faces[quads][:, [0, 2, 3]]])
    return parts, np.concatenate([everyone, quads])


def wall_normals(corners: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return normals as long as the triangle's area or the edge's length."""
    if corners.shape[1] == 3:
        sides = corners[:, 1:] - corners[:, :1]
        return np.cross(sides[:, 0], sides[:, 1]) / 2
    edge = corners[:, 1] - corners[:, 0]
    normals = np.zeros_like(edge)
    normals[:, axes[0]], normals[:, axes[1]] = -edge[:, axes[1]], edge[:, axes[0]]
    return normals
