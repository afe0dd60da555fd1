"""Pytrees in one checked file: save, leave parts out, load into a tree like it."""

import difflib
import io
import os
import types
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxrig import container
from jaxrig.atomic import atomic_write
from jaxrig.checkpoint.fit import Kind, differences, is_under, place, saved_kinds
from jaxrig.container import ContainerError, Header
from jaxrig.dtypes import is_key
from jaxrig.hosts import is_main
from jaxrig.machine import package_versions
from jaxrig.plain import SCALARS, Scalar, is_array, pack_scalar, unpack_scalar
from jaxrig.sharding import gather

SCHEMA = "jaxrig.checkpoint"
VERSION = 1


class CheckpointMismatch(ValueError):
    """A sound checkpoint that does not fit the tree it is loaded into."""


@dataclass(frozen=True)
class _Saved:
    """The leaves of a file by dotted path, and the prefixes that were left out."""

    kinds: dict[str, Kind]
    scalars: dict[str, Scalar]
    code: dict[str, str]
    excluded: list[str]


def save_tree(
    path: str | os.PathLike[str],
    tree: Any,
    *,
    metadata: Mapping[str, Any] | None = None,
    exclude: str | Sequence[str] = (),
) -> Path:
    """Write a pytree to one file, atomically, and return its path.

    Arrays, typed PRNG keys and Python scalars are stored; of functions only the name.
    `exclude` names dotted prefixes to leave out, `metadata` is kept as JSON. On several
    hosts every process calls this and process 0 writes; wait for all before reading.

        save_tree("run.ckpt", (model, state), metadata={"loss": 0.1}, exclude="1.data")
    """
    prefixes = (exclude,) if isinstance(exclude, str) else tuple(exclude)
    leaves = _without(_named_leaves(tree)[0], prefixes)
    metadata = dict(metadata or {})
    _check_metadata(metadata, "metadata")
    arrays = {name: leaf for name, leaf in leaves.items() if is_array(leaf)}
    rest = {name: leaf for name, leaf in leaves.items() if name not in arrays}
    meta = {
        "schema": SCHEMA,
        "version": VERSION,
        "versions": package_versions(("jaxrig", "jax", "numpy")),
        "excluded": prefixes,
        "scalars": {n: pack_scalar(x) for n, x in rest.items() if type(x) in SCALARS},
        "code": {
            n: _code_name(n, x) for n, x in rest.items() if type(x) not in SCALARS
        },
        "metadata": metadata,
    }
    path = Path(path)
    if not is_main():
        for array in arrays.values():  # gathering takes part of every process
            _fetch(jax.random.key_data(array) if is_key(array.dtype) else array)
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        container.write_container(file, meta, arrays, fetch=_fetch)
    return path


def load_tree(path: str | os.PathLike[str], like: Any) -> Any:
    """The saved tree, in the structure and with the leaf kinds of `like`.

    JAX arrays take the sharding of their counterpart, `jax.ShapeDtypeStruct` becomes a
    JAX array, NumPy stays NumPy, scalars stay Python. Functions and excluded leaves are
    those of `like`. Raises CheckpointMismatch with every difference, or ContainerError
    if the file is damaged.
    """
    leaves, structure = _named_leaves(like)
    with open(path, "rb") as file:
        header = _read(file, str(path))
        saved = _decode(header, str(path))
        _check_fit(saved, leaves, str(path))
        _warn_of_other_code(saved.code, leaves, str(path))
        found: dict[str, Any] = dict(saved.scalars)
        for entry, data in container.read_arrays(file, header, str(path)):
            value = container.as_value(entry, data, str(path))
            found[entry.name] = place(value, leaves[entry.name])
    return structure.unflatten(found.get(name, leaf) for name, leaf in leaves.items())


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a checkpoint says of itself: versions, leaves, excluded, metadata.

    Reads no array, so damage to one is not noticed here.
    """
    with open(path, "rb") as file:
        header = _read(file, str(path))
    kinds = _decode(header, str(path)).kinds
    leaves = {name: kind._asdict() for name, kind in kinds.items()}
    return {**header.meta, "leaves": leaves}


def _named_leaves(tree: Any) -> tuple[dict[str, Any], Any]:
    pairs, structure = jax.tree_util.tree_flatten_with_path(tree)
    leaves: dict[str, Any] = {}
    for keys, leaf in pairs:
        name = jax.tree_util.keystr(keys, simple=True, separator=".")
        if name in leaves:
            raise ValueError(f"two leaves have the dotted path {name!r}: rename one")
        leaves[name] = leaf
    return leaves, structure


def _without(leaves: dict[str, Any], prefixes: Sequence[str]) -> dict[str, Any]:
    for prefix in prefixes:
        if not any(is_under(name, [prefix]) for name in leaves):
            parts = [name.split(".") for name in leaves]
            paths = {".".join(p[:n]) for p in parts for n in range(1, len(p) + 1)}
            near = difflib.get_close_matches(prefix, paths, cutoff=0.5) or sorted(paths)
            raise ValueError(
                f"exclude={prefix!r} matches no leaf; near it: {', '.join(near[:5])}"
            )
    return {name: leaf for name, leaf in leaves.items() if not is_under(name, prefixes)}


def _check_metadata(value: Any, at: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{at} has the key {key!r}: JSON keys are strings")
            _check_metadata(item, f"{at}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check_metadata(item, f"{at}.{index}")
    elif not isinstance(value, str | int | float | None):
        raise TypeError(
            f"{at} is a {type(value).__qualname__}, which JSON cannot hold: "
            f"convert it, or put it in the tree"
        )


def _code_name(at: str, leaf: Any) -> str:
    if not (callable(leaf) or isinstance(leaf, types.ModuleType | np.dtype)):
        raise TypeError(
            f"leaf {at!r} is a {type(leaf).__qualname__}: not an array, Python scalar "
            f"or function. Exclude it, make it static, or put it in the metadata"
        )
    named = leaf if hasattr(leaf, "__qualname__") else type(leaf)
    return f"{named.__module__}.{named.__qualname__}"


def _fetch(array: Any) -> np.ndarray:
    if isinstance(array, jax.Array) and array.is_fully_addressable:
        # A second handle on the same buffer: JAX would keep the host copy on the first.
        array = jax.device_put(array, array.sharding)
    return np.asarray(gather(array))


def _read(file: io.BufferedIOBase, where: str) -> Header:
    return container.read_header(file, where, os.fstat(file.fileno()).st_size)


def _decode(header: Header, where: str) -> _Saved:
    match header.meta:
        case {"schema": "jaxrig.checkpoint", "version": int(version)} if (
            version != VERSION
        ):
            raise CheckpointMismatch(
                f"{where}: schema version {version}, this jaxrig reads {VERSION}; "
                f"load it with what wrote it: {header.meta.get('versions')}"
            )
        case {
            "schema": "jaxrig.checkpoint",
            "version": int(),
            "scalars": dict(scalars),
            "code": dict(code),
            "excluded": list(excluded),
            "metadata": dict(),
        } if all(isinstance(text, str) for text in [*code.values(), *excluded]):
            pass
        case _:
            raise ContainerError(f"{where}: a container, but not a checkpoint")
    try:
        values = {name: unpack_scalar(node) for name, node in scalars.items()}
    except ValueError as error:
        raise ContainerError(f"{where}: {error}") from error
    kinds = saved_kinds(header.entries, values, code, where)
    return _Saved(kinds, values, code, excluded)


def _check_fit(saved: _Saved, leaves: Mapping[str, Any], where: str) -> None:
    found = differences(saved.kinds, leaves, saved.excluded)
    if found:
        raise CheckpointMismatch(
            f"{where} does not fit `like`; differences: {len(found)}\n  "
            + "\n  ".join(found)
        )


def _warn_of_other_code(
    code: Mapping[str, str], leaves: Mapping[str, Any], where: str
) -> None:
    for name, saved in code.items():
        # Modules move between releases, private ones of JAX too: compare last names.
        found = _code_name(name, leaves[name])
        if saved.rpartition(".")[2] != found.rpartition(".")[2]:
            warnings.warn(
                f"{where}: {name} was {saved} when saved and is {found} now",
                stacklevel=3,
            )
