"""Prepared meshes on disk: the same bits as prepared anew, and never a wrong one."""

import functools

import jax
import numpy as np
import pytest

import trace_files as files
from jaxtrace.fields import mesh, mesh_cache
from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.io.loader import find_cache, load_field
from trace_meshes import lattice, plane_lattice, warp
from trace_series import linear, tetra_mesh

POINTS, TETS = tetra_mesh()
VALUES = linear(POINTS)


@pytest.fixture(autouse=True)
def small_meshes_too(monkeypatch):
    monkeypatch.setattr(mesh_cache, "SMALLEST", 1)
    monkeypatch.delenv("JAXRIG_NO_CACHE", raising=False)


@pytest.fixture
def prepared(monkeypatch):
    """Counts how often a mesh was prepared."""
    calls, prepare = [], mesh.make_mesh
    count = lambda *given: (calls.append(1), prepare(*given))[1]
    monkeypatch.setattr(mesh, "make_mesh", count)
    return calls


def make(folder, points=POINTS, cells=TETS, **options):
    return make_mesh_field(points, cells, linear(points), cache=folder, **options)


def assert_same_bits(one, two):
    assert jax.tree.structure(one) == jax.tree.structure(two)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes()


def warped_boxes():
    points, cells = lattice((3, 3, 3))
    return warp(points, 0.05), cells


@pytest.mark.parametrize(
    "made", [tetra_mesh, warped_boxes, lambda: plane_lattice((3, 4))]
)
def test_a_mesh_comes_back_bit_for_bit(tmp_path, prepared, made):
    points, cells = made()
    plain = make(None, points, cells)
    first = make(tmp_path / "new", points, cells)
    assert len(prepared) == 2
    again = make(tmp_path / "new", points, cells)
    assert len(prepared) == 2
    assert_same_bits(plain, first)
    assert_same_bits(plain, again)


def test_other_data_never_find_it(tmp_path, prepared):
    make(tmp_path)
    make(tmp_path, kind="tetra")
    make(tmp_path, dtype=np.float16)
    make(tmp_path, cells=TETS[::-1])
    make(tmp_path, points=POINTS * 2)
    assert len(prepared) == len(list(tmp_path.iterdir())) == 5
    make_mesh_field(POINTS, TETS, 2 * VALUES, cache=tmp_path)
    assert len(prepared) == 5


def flip(data, place):
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda data: flip(data, 1500), "damaged"),
        (lambda data: flip(data, len(data) // 2), "damaged"),
        (lambda data: data[:-9], "declares"),
        (lambda data: b"# vtk DataFile Version 3.0\n", "not a jaxrig"),
        (lambda data: b"", "not a jaxrig"),
    ],
)
def test_a_damaged_file_is_made_again(tmp_path, prepared, harm, said):
    sound = make(tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(harm(whole))
    with pytest.warns(UserWarning, match=f"{said}.*prepared again"):
        again = make(tmp_path)
    assert len(prepared) == 2
    assert path.read_bytes() == whole
    assert_same_bits(sound, again)


def test_a_file_of_another_mesh_is_made_again(tmp_path, prepared):
    make(tmp_path)
    (first,) = tmp_path.iterdir()
    make(tmp_path, points=POINTS * 2)
    (second,) = set(tmp_path.iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    with pytest.warns(UserWarning, match="not the prepared mesh of its name"):
        again = make(tmp_path, points=POINTS * 2)
    assert_same_bits(make(None, POINTS * 2), again)


def test_what_was_said_of_a_mesh_is_said_again(tmp_path, prepared):
    flat = np.concatenate([TETS, TETS[:1, [0, 0, 1, 2]]])
    for _ in range(2):
        with pytest.warns(UserWarning, match="1 of .* tetra cells have no volume"):
            make(tmp_path, cells=flat)
    assert len(prepared) == 1


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path):
    (tmp_path / "taken").write_text("a file, where a folder is wanted")
    with pytest.warns(UserWarning, match="is not kept"):
        field = make(tmp_path / "taken")
    assert_same_bits(make(None), field)


def test_the_oldest_files_make_room(tmp_path, monkeypatch):
    make(tmp_path)
    (first,) = tmp_path.iterdir()
    monkeypatch.setattr(mesh_cache, "LARGEST", 2 * first.stat().st_size)
    make(tmp_path, points=POINTS * 2)
    make(tmp_path, points=POINTS * 3)
    assert len(list(tmp_path.iterdir())) == 2
    assert not first.exists()
    monkeypatch.setattr(mesh_cache, "LARGEST", 100)
    with pytest.warns(UserWarning, match="is not kept: the limit"):
        make(tmp_path, points=POINTS * 4)
    assert len(list(tmp_path.iterdir())) == 2


def test_files_are_cached_beside_the_data(tmp_path, prepared, monkeypatch):
    data = files.hexahedra()
    data["velocity"] = files.linear(data.points)
    files.write_xml(data, tmp_path / "flow.vtu")
    pattern = str(tmp_path / "*.vtu")
    load = functools.partial(load_field, pattern, spatial_interpolation="elements")
    first, again = load().field, load().field
    assert len(prepared) == 1
    assert_same_bits(first.frozen, again.frozen)
    assert len(list((tmp_path / ".jaxtrace").iterdir())) == 1
    load(cache=False)
    monkeypatch.setenv("JAXRIG_NO_CACHE", "1")
    load()
    assert len(prepared) == 3


def test_where_files_are_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXRIG_CACHE", str(tmp_path / "user"))
    (tmp_path / "a.vtu").touch()
    assert find_cache(str(tmp_path)) == tmp_path / ".jaxtrace"
    assert find_cache([tmp_path / "a.vtu"]) == tmp_path / ".jaxtrace"
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert find_cache(tmp_path) == tmp_path / "user" / "meshes"
