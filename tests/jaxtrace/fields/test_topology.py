"""Meshes on the host against counting and geometry done by hand."""

import numpy as np
import pytest

from jaxtrace.fields.cells import KINDS
from jaxtrace.fields.topology import (
    coincident,
    make_mesh,
    split_faces,
)
from trace_meshes import SIX, flat, lattice, mixed, plane_lattice, split


def shared_faces(rows, faces_of):
    """Naively: for every face, the cells that have it."""
    owners = {}
    for cell, row in enumerate(rows):
        for face in faces_of(row):
            owners.setdefault(frozenset(int(row[i]) for i in face), []).append(cell)
    return owners


@pytest.mark.parametrize("name", ["tetra", "hexahedron", "triangle", "quad"])
def test_neighbors_share_a_face(name):
    points, cells = lattice((3, 4, 3))
    if name in ("triangle", "quad"):
        points, cells = plane_lattice((4, 5))
    if name == "tetra":
        cells = split(cells, SIX)
    if name == "triangle":
        cells = split(cells, [[0, 1, 2], [0, 2, 3]])
    mesh = make_mesh(points, cells, kind=name)
    faces = KINDS[name].faces
    owners = shared_faces(cells, lambda _: faces)
    for cell, row in enumerate(cells):
        for place, face in enumerate(faces):
            others = owners[frozenset(int(row[i]) for i in face)]
            expected = [c for c in others if c != cell] or [-1]
            assert mesh.neighbors[cell, place] == expected[0]
    assert len(mesh.boundary.cells) == sum(len(o) == 1 for o in owners.values())


def test_boundary_of_a_box_has_its_area_and_looks_inward():
    points, cells = lattice((4, 3, 5), (2.0, 1.0, 0.5))
    for kind, rows in (("hexahedron", cells), ("tetra", split(cells, SIX))):
        boundary = make_mesh(points, rows, kind=kind).boundary
        assert boundary.areas.sum() == pytest.approx(2 * (2 * 1 + 1 * 0.5 + 2 * 0.5))
        center = np.array([1.0, 0.5, 0.25])
        inward = ((center - boundary.centers) * boundary.normals).sum(1)
        assert np.all(inward > 0)
        np.testing.assert_allclose(np.linalg.norm(boundary.normals, axis=1), 1)


def test_mixed_cells_join_without_gaps():
    points, rows, codes = mixed((4, 4, 4))
    connectivity, offsets = flat(rows)
    mesh = make_mesh(points, connectivity, offsets, codes)
    assert set(mesh.kinds) == {"tetra", "hexahedron", "wedge", "pyramid"}
    assert mesh.boundary.areas.sum() == pytest.approx(6)
    # Ends of cells alone, as .vtu files store them, are as good.
    ends = make_mesh(points, connectivity, offsets[1:], codes)
    np.testing.assert_array_equal(ends.neighbors, mesh.neighbors)


def test_seams_between_pieces_are_closed_unless_values_differ():
    points, cells = lattice((3, 3, 3))
    halves = [cells[:4], cells[4:]]
    pieces, rows, first = [], [], 0
    for half in halves:
        used, renumbered = np.unique(half, return_inverse=True)
        pieces.append(points[used])
        rows.append(renumbered.reshape(half.shape) + first)
        first += len(used)
    points, cells = np.concatenate(pieces), np.concatenate(rows)
    values = points[None].repeat(2, 0)
    same = coincident(points, values)
    assert make_mesh(points, cells, same=same).boundary.areas.sum() == pytest.approx(6)
    values[1, : len(pieces[0])] += 1
    apart = make_mesh(points, cells, same=coincident(points, values))
    assert apart.boundary.areas.sum() == pytest.approx(8)


def test_quads_are_split_into_triangles():
    faces = np.array([[0, 1, 2, 3], [4, 5, 6, -1]])
    parts, face = split_faces(faces)
    np.testing.assert_array_equal(parts, [[0, 1, 2], [4, 5, 6], [0, 2, 3]])
    np.testing.assert_array_equal(face, [0, 1, 0])
