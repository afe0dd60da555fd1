"""Prepared meshes on disk: the second start neither sorts cells nor pairs faces.

A file is named by a hash of all that a mesh is made of, so that other data never find
it, and holds what was prepared and what was said about the mesh. Files are written
whole or not at all, and one that is damaged or foreign is made again.
"""

import hashlib
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, Int

from jaxrig import __version__
from jaxrig.atomic import atomic_write, remove_leftovers
from jaxrig.file_format import Container, ContainerError, write_container
from jaxrig.sharding import is_main
from jaxtrace.fields.box_tree import Tree
from jaxtrace.fields.locate import Locator
from jaxtrace.fields.mesh_boundary import Walls
from jaxtrace.fields.reference_coordinates import Records

# Raise it when the arrays of a prepared mesh, or how they are found, change: files of
# an earlier format are then never looked at. Released versions differ by themselves.
FORMAT = 2
# Node numbers in all cells from which a file is kept: 100,000 tetrahedra are prepared
# in 0.2 s, about what reading them back and a file among the data would cost.
SMALLEST = 400_000
LARGEST = 16 * 2**30  # bytes of a folder: the oldest files beyond it are deleted
SUFFIX = ".mesh"

_TREE = ("boxes", "skips", "items", "starts")
_WALLS = ("table", "cells", "of_cells", "gaps")


class PreparedMesh(eqx.Module):
    """The part of a field that its nodes and cells decide, without the values."""

    nodes: Int[np.ndarray, "cells nodes"]
    locator: Locator
    scale: Float[np.ndarray, ""]  # a power of two: lengths of order one
    corners: Float[np.ndarray, "2 3"]
    axes: tuple[int, ...] = eqx.field(static=True)


def prepared_mesh(
    folder: str | os.PathLike[str],
    parts: Sequence[Any],
    prepare: Callable[[], PreparedMesh],
) -> PreparedMesh:
    """Return the mesh of these arrays and names from a folder, or prepare and keep it.

    What preparing warned of is said again when the mesh comes from the folder.
    """
    path = Path(folder) / f"{mesh_key(parts)}{SUFFIX}"
    found = _read(path)
    if found is not None:
        mesh, notes = found
        for note in notes:
            warnings.warn(note, stacklevel=4)
        return mesh
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mesh = prepare()
    notes = [str(said.message) for said in caught if said.category is UserWarning]
    if is_main():
        _write(path, mesh, notes)
    for said in caught:
        warnings.warn(said.message, said.category, stacklevel=4)
    return mesh


def mesh_key(parts: Sequence[Any]) -> str:
    """Return a hash of arrays, with their dtypes and shapes, and of other values."""
    digest = hashlib.blake2b(f"{FORMAT} {__version__}".encode(), digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"|{part.dtype.str}{part.shape}|".encode())
            digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
        else:
            digest.update(f"|{part!r}|".encode())
    return digest.hexdigest()


def _write(path: Path, mesh: PreparedMesh, notes: list[str]) -> None:
    leaves = jax.tree_util.tree_flatten_with_path(mesh)[0]
    arrays = {
        jax.tree_util.keystr(keys, simple=True, separator="."): np.asarray(leaf)
        for keys, leaf in leaves
    }
    records = mesh.locator.records
    meta = {
        "schema": "jaxtrace.mesh",
        "key": path.stem,
        "axes": mesh.axes,
        "kinds": records.kinds,
        "warped": records.warped,
        "notes": notes,
    }
    size = sum(array.nbytes for array in arrays.values())
    if size > LARGEST:
        warnings.warn(
            f"a prepared mesh of {size / 2**30:.1f} GiB is not kept: the limit of "
            f"{path.parent} is {LARGEST / 2**30:g} GiB",
            stacklevel=5,
        )
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent)
        _make_room(path.parent, size)
        with atomic_write(path) as file:
            write_container(file, meta, arrays)
    except OSError as error:  # a full disk, or a folder that others may write to only
        warnings.warn(f"the prepared mesh is not kept: {error}", stacklevel=5)


def _make_room(folder: Path, size: int) -> None:
    """Delete the oldest files of a folder that has no room for so many bytes more."""
    held = {path: path.stat() for path in folder.glob(f"*{SUFFIX}")}
    total = size + sum(stat.st_size for stat in held.values())
    for path, stat in sorted(held.items(), key=lambda item: item[1].st_mtime):
        if total <= LARGEST:
            return
        path.unlink(missing_ok=True)
        total -= stat.st_size


def _read(path: Path) -> tuple[PreparedMesh, list[str]] | None:
    """Return a mesh and its notes; None where there is no sound file of this name."""
    try:
        with open(path, "rb") as file:
            found = Container(file, str(path))
            return _unpack(found.meta, dict(found.arrays()), path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ContainerError, OSError) as error:
        warnings.warn(f"{error}: the mesh is prepared again", stacklevel=5)
        return None


def _unpack(
    meta: dict[str, Any], arrays: dict[str, Any], path: Path
) -> tuple[PreparedMesh, list[str]]:
    if meta.get("schema") != "jaxtrace.mesh" or meta.get("key") != path.stem:
        raise ContainerError(f"{path}: not the prepared mesh of its name")

    def tree(at: str) -> Tree:
        return Tree(*(arrays[f"{at}.{name}"] for name in _TREE))

    try:
        axes = tuple(meta["axes"])
        table, kind = (arrays[f"locator.records.{name}"] for name in ("table", "kind"))
        walls = (arrays[f"locator.walls.{name}"] for name in _WALLS)
        locator = Locator(
            Records(table, kind, tuple(meta["kinds"]), len(axes), meta["warped"]),
            arrays["locator.neighbors"],
            tree("locator.tree"),
            Walls(*walls, tree=tree("locator.walls.tree")),
        )
        nodes, scale, corners = (arrays[n] for n in ("nodes", "scale", "corners"))
        mesh = PreparedMesh(nodes, locator, scale, corners, axes)
        return mesh, [str(note) for note in meta["notes"]]
    except KeyError as error:
        raise ContainerError(f"{path}: it lacks {error}") from error
