"""Meshes on the host: cells of mixed kinds, who is next to whom, and the boundary."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxtrace.fields.blocks import Nodes, check_points, read_blocks
from jaxtrace.fields.cells import KINDS, Kind


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
        """How many coordinates a place in the mesh has."""
        return len(self.axes)

    def members(self, index: int) -> Int[np.ndarray, " members"]:
        """The cells of one kind."""
        return np.flatnonzero(self.kind == index)


def make_mesh(
    points: Any,
    connectivity: Any,
    offsets: Any = None,
    types: Any = None,
    kind: str | None = None,
    same: Int[np.ndarray, " points"] | None = None,
) -> Mesh:
    """A checked mesh of VTK cells, or of rows (M, k) of nodes of one kind.

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
    """For each node the first one at the same place: files in pieces repeat nodes.

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
    """Neighbors of cells across faces; faces without one, their cells and places."""
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
    """For each face the next one with the same corners, and whether it is alone."""
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
    """Faces as triangles (edges in a plane), and the face each one is part of."""
    width = faces.shape[1]
    everyone = np.arange(len(faces))
    if width == 2:
        return faces, everyone
    if width == 3:
        return faces, everyone
    quads = np.flatnonzero(faces[:, 3] >= 0)
    parts = np.concatenate([faces[:, :3], faces[quads][:, [0, 2, 3]]])
    return parts, np.concatenate([everyone, quads])


def wall_normals(corners: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Normals as long as the area of triangles, or the length of edges in a plane."""
    if corners.shape[1] == 3:
        sides = corners[:, 1:] - corners[:, :1]
        return np.cross(sides[:, 0], sides[:, 1]) / 2
    edge = corners[:, 1] - corners[:, 0]
    normals = np.zeros_like(edge)
    normals[:, axes[0]], normals[:, axes[1]] = -edge[:, axes[1]], edge[:, axes[0]]
    return normals
