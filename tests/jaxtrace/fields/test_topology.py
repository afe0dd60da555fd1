"""Meshes on the host against counting and geometry done by hand."""

import numpy as np
import pytest

from jaxtrace.fields import faces as face_module
from jaxtrace.fields.cells import KINDS
from jaxtrace.fields.mesh_boundary import make_walls
from jaxtrace.fields.topology import Elements, coincident, make_mesh, relative_volumes
from trace_meshes import (
    SIX,
    boundary_area,
    boundary_patches,
    flat,
    lattice,
    mixed,
    plane_lattice,
    quadratic,
    split,
)


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
    mesh = make_mesh(points, Elements(cells, kind=name))
    faces = KINDS[name].faces
    owners = shared_faces(cells, lambda _: faces)
    np.testing.assert_array_equal(mesh.nodes, cells[mesh.numbers])
    given = np.append(mesh.numbers, -1)  # by a cell's place on the curve
    for cell, row in zip(mesh.numbers, mesh.neighbors, strict=True):
        for place, face in enumerate(faces):
            others = owners[frozenset(int(cells[cell, i]) for i in face)]
            expected = [c for c in others if c != cell] or [-1]
            assert given[row[place]] == expected[0]
    assert len(mesh.boundary.cells) == sum(len(o) == 1 for o in owners.values())


def test_boundary_of_a_box_has_its_area_and_looks_inward():
    points, cells = lattice((4, 3, 5), (2.0, 1.0, 0.5))
    for kind, rows in (("hexahedron", cells), ("tetra", split(cells, SIX))):
        mesh = make_mesh(points, Elements(rows, kind=kind))
        parts = np.zeros(len(mesh.nodes), np.int32)
        walls = make_walls(mesh, points, np.dtype(np.float64), parts)
        found = boundary_patches(walls, 1.0, mesh.axes, points[0])
        assert found.areas.sum() == pytest.approx(2 * (2 * 1 + 1 * 0.5 + 2 * 0.5))
        flux = (found.normals * found.areas[:, None]).sum(0)
        np.testing.assert_allclose(flux, 0, atol=1e-12)
        inward = np.array([1.0, 0.5, 0.25]) - found.corners.mean(1)
        assert np.all((inward * found.normals).sum(1) > 0)
        np.testing.assert_allclose(np.linalg.norm(found.normals, axis=1), 1)


def test_mixed_cells_join_without_gaps():
    points, rows, codes = mixed((4, 4, 4))
    connectivity, offsets = flat(rows)
    mesh = make_mesh(points, Elements(connectivity, codes, offsets))
    assert set(mesh.kinds) == {"tetra", "hexahedron", "wedge", "pyramid"}
    assert boundary_area(mesh) == pytest.approx(6)
    # Ends of cells alone, as .vtu files store them, are as good.
    ends = make_mesh(points, Elements(connectivity, codes, offsets[1:]))
    np.testing.assert_array_equal(ends.neighbors, mesh.neighbors)


def test_seams_between_pieces_are_closed_where_nodes_are_one():
    points, cells = lattice((3, 3, 3))
    halves = [cells[:4], cells[4:]]
    pieces, rows, first = [], [], 0
    for half in halves:
        used, renumbered = np.unique(half, return_inverse=True)
        pieces.append(points[used])
        rows.append(renumbered.reshape(half.shape) + first)
        first += len(used)
    points, cells = np.concatenate(pieces), np.concatenate(rows)
    mesh = make_mesh(points, Elements(cells), coincident(points))
    assert boundary_area(mesh) == pytest.approx(6)
    assert boundary_area(make_mesh(points, Elements(cells))) == pytest.approx(8)


def broken(**change):
    points, cells = lattice((2, 2, 2))
    given = {"points": points, "connectivity": cells} | change
    return given.pop("points"), Elements(**given)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"connectivity": np.array([[0, 1, 2, 99]])}, "names node 99"),
        ({"connectivity": np.array([[0, 1, -1, 2]])}, "names node -1"),
        ({"connectivity": np.array([[0, 1, 2, 3, 4]])}, "cells of 5 nodes"),
        ({"kind": "tetra"}, "cell 0 has 8 nodes"),
        ({"kind": "blob"}, "choose one of"),
        ({"points": np.zeros((8, 4))}, r"give \(N, 3\)"),
        ({"points": np.full((8, 3), np.nan)}, "8 points are not finite"),
        ({"connectivity": np.arange(8)}, "offsets and types"),
        (
            {"connectivity": np.arange(8), "offsets": [0, 8], "types": [42]},
            "VTK type 42",
        ),
        (
            {"connectivity": np.arange(7), "offsets": [0, 7], "types": [12]},
            "cell 0 has 7 nodes",
        ),
        (
            {"connectivity": np.arange(8), "offsets": [0, 4], "types": [10]},
            "do not describe",
        ),
        (
            {"connectivity": np.arange(2), "offsets": [0, 2], "types": [3]},
            "no cells with an area",
        ),
        ({"connectivity": np.array([[0, 6, 3]])}, "must lie in a plane"),
        ({"connectivity": np.zeros((1, 4))}, "give node numbers"),
    ],
)
def test_what_is_no_mesh_is_refused(change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make_mesh(*broken(**change))


def test_curved_edges_are_refused():
    points, cells = lattice((2, 2, 2))
    points, cells = quadratic(points, split(cells, SIX))
    points[-1] += 0.1
    with pytest.raises(ValueError, match="curved edges"):
        make_mesh(points, Elements(cells))


def test_flat_cells_are_left_out_with_a_warning():
    points, cells = lattice((2, 2, 3))
    cells = np.concatenate([split(cells, SIX), [[0, 1, 2, 3]]])
    assert relative_volumes(points, cells[-1:], KINDS["tetra"])[0] < 1e-12
    with pytest.warns(UserWarning, match="1 of 13 .* no volume, the first is cell 12"):
        mesh = make_mesh(points, Elements(cells, kind="tetra"))
    assert len(mesh.nodes) == 12


def test_cells_that_are_there_twice_are_named():
    points, cells = lattice((2, 2, 3))
    cells = split(cells, SIX)
    twice = np.concatenate([cells, cells[4:5]])
    with pytest.warns(UserWarning, match="faces are shared .* by cells [^:]*12"):
        make_mesh(points, Elements(twice, kind="tetra"))


@pytest.mark.parametrize("corners", [2, 3, 4])
def test_faces_are_paired_by_their_corners_even_where_keys_clash(corners, monkeypatch):
    rng = np.random.default_rng(0)
    faces = np.argsort(rng.random((3000, 12)), 1)[:, :corners]
    faces[::7, -1] = -1
    _, kind = np.unique(np.sort(faces, 1), axis=0, return_inverse=True)
    once = kind[np.unique(kind, return_index=True)[1]]
    twice = faces[np.unique(kind, return_index=True)[1]]
    faces = np.concatenate([twice, twice[::2, ::-1]]).astype(np.int32)
    kind = np.concatenate([once, once[::2]])
    for mixers in (face_module.MIXERS, (1, 1, 1, 1)):  # the latter mix nothing
        monkeypatch.setattr(face_module, "MIXERS", mixers)
        other, crowded = face_module.pair_faces(faces.T)
        assert not crowded.size
        paired = other >= 0
        np.testing.assert_array_equal(paired, np.bincount(kind)[kind] == 2)
        np.testing.assert_array_equal(kind[other[paired]], kind[paired])
        assert np.all(other[paired] != np.flatnonzero(paired))


def test_surfaces_among_volumes_are_left_out_with_a_warning():
    points, cells = lattice((2, 2, 2))
    connectivity, offsets = flat([cells[0], cells[0][:4], cells[0][:2]])
    with pytest.warns(UserWarning, match="1 quad cells are surfaces"):
        mesh = make_mesh(points, Elements(connectivity, np.array([12, 9, 3]), offsets))
    assert len(mesh.nodes) == 1


def test_voxels_and_pixels_are_brought_into_order():
    points, cells = lattice((3, 3, 3))
    voxels = make_mesh(
        points, Elements(cells[:, [0, 1, 3, 2, 4, 5, 7, 6]], kind="voxel")
    )
    np.testing.assert_array_equal(voxels.nodes, cells[voxels.numbers])
    points, cells = plane_lattice((3, 3))
    pixels = make_mesh(points, Elements(cells[:, [0, 1, 3, 2]], kind="pixel"))
    np.testing.assert_array_equal(pixels.nodes, cells[pixels.numbers])
