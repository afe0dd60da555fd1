"""Pytrees in one checked file, and a folder of numbered ones that survives a kill."""

import io
import json
import os
import re
import types
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import numpy as np

from jaxrig.atomic import atomic_write, remove_leftovers
from jaxrig.dtypes import is_key
from jaxrig.file_format import (
    SCALARS,
    Container,
    ContainerError,
    Entry,
    decode,
    encode,
    is_array,
    write_container,
)
from jaxrig.machine import package_versions
from jaxrig.settings import nearest, whole
from jaxrig.sharding import gather, is_main, wait_for_all

SCHEMA = "jaxrig.checkpoint"
VERSION = 1
_FILE = re.compile(r"step_(\d{9,})\.ckpt")
T = TypeVar("T")
CODE = "code"  # the kind of functions, of which only the name is stored


class Kind(NamedTuple):
    """What a leaf is: a dtype and a shape, a Python type, or code."""

    type: str
    shape: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return self.type if self.shape is None else f"{self.type} {self.shape}"


def _kind_of(leaf: Any) -> Kind:
    """Return the kind of a leaf in memory."""
    if is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct):
        typed = is_key(leaf.dtype)
        name = str(leaf.dtype) if typed else np.dtype(leaf.dtype).name
        return Kind(name, tuple(leaf.shape))
    return Kind(f"Python {type(leaf).__name__}" if type(leaf) in SCALARS else CODE)


def _stored_kind(entry: Entry) -> Kind:
    if entry.key is None:
        return Kind(entry.dtype, entry.shape)
    dtype = jax.eval_shape(lambda: jax.random.key(0, impl=entry.key)).dtype
    return Kind(str(dtype), entry.shape[:-1])


def _is_under(name: str, prefixes: Sequence[str]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def _differences(
    saved: Mapping[str, Kind], leaves: Mapping[str, Any], excluded: Sequence[str]
) -> list[str]:
    """Return a sentence for each difference of a file from the expected leaves."""
    found = []
    for name, leaf in leaves.items():
        expected = _kind_of(leaf)
        if name in saved:
            if remedy := _remedy(saved[name], expected, leaf):
                found.append(
                    f"{name}: {saved[name]} in the file, {expected} expected; {remedy}"
                )
        elif not _is_under(name, excluded):
            found.append(
                f"{name}: missing in the file, {expected} expected; drop it from "
                f"`like` or save again with it"
            )
    unexpected = [name for name in saved if name not in leaves]
    return found + [
        f"{name}: {saved[name]} in the file, nothing expected; add it to `like` or "
        f"save again without it"
        for name in unexpected
    ]


def _remedy(saved: Kind, expected: Kind, leaf: Any) -> str | None:
    if (saved.shape is None) != (expected.shape is None):
        return "use an array in both places or a Python value in both"
    if saved.shape != expected.shape:
        return "build `like` with the sizes used when saving"
    if saved.type != expected.type:
        return "build `like` with the type used when saving, convert after loading"
    on_device = isinstance(leaf, jax.Array | jax.ShapeDtypeStruct)
    if (
        on_device
        and not is_key(leaf.dtype)
        and jax.dtypes.canonicalize_dtype(leaf.dtype) != leaf.dtype
    ):
        return "JAX would narrow it; set jax_enable_x64 or give a NumPy array in `like`"
    return None


def _place(value: Any, leaf: Any) -> Any:
    """Return a loaded array in the kind, and with the sharding, of its counterpart."""
    if isinstance(leaf, np.generic):
        return value[()]
    if isinstance(leaf, np.ndarray):
        return value
    # An uncommitted array must stay so, or later computations could not move it.
    if leaf.sharding is None or (isinstance(leaf, jax.Array) and not leaf.committed):
        return jax.device_put(value)
    if leaf.sharding.is_fully_addressable:
        return jax.device_put(value, leaf.sharding)
    return jax.make_array_from_callback(
        leaf.shape, leaf.sharding, lambda index: value[index]
    )


class CheckpointMismatch(ValueError):
    """A sound checkpoint that does not fit the tree it is loaded into."""


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
    try:
        json.dumps(metadata)
    except TypeError as error:
        raise TypeError(
            f"metadata: {error}: convert it, or put it in the tree"
        ) from error
    arrays = {name: leaf for name, leaf in leaves.items() if is_array(leaf)}
    rest = {name: leaf for name, leaf in leaves.items() if name not in arrays}
    meta = {
        "schema": SCHEMA,
        "version": VERSION,
        "versions": package_versions(("jaxrig", "jax", "numpy")),
        "excluded": prefixes,
        "scalars": encode({n: x for n, x in rest.items() if type(x) in SCALARS})[0],
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
        write_container(file, meta, arrays, fetch=_fetch)
    return path


def load_tree(path: str | os.PathLike[str], like: Any) -> Any:
    """Return the saved tree, in the structure and with the leaf kinds of `like`.

    JAX arrays take the sharding of their counterpart, `jax.ShapeDtypeStruct` becomes a
    JAX array, NumPy stays NumPy, scalars stay Python. Functions and excluded leaves are
    those of `like`. Raises CheckpointMismatch with every difference, or ContainerError
    if the file is damaged.
    """
    leaves, structure = _named_leaves(like)
    with open(path, "rb") as file:
        container, scalars, kinds = _open(file, str(path))
        saved = container.meta
        if differences := _differences(kinds, leaves, saved["excluded"]):
            raise CheckpointMismatch(
                f"{path} does not fit `like`; differences: {len(differences)}\n  "
                + "\n  ".join(differences)
            )
        _warn_of_other_code(saved["code"], leaves, str(path))
        found = {n: _place(value, leaves[n]) for n, value in container.arrays()}
    found |= scalars
    return structure.unflatten(found.get(name, leaf) for name, leaf in leaves.items())


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a checkpoint says of itself: versions, leaves, excluded, metadata.

    Reads no array, so damage to one is not noticed here.
    """
    with open(path, "rb") as file:
        container, _, kinds = _open(file, str(path))
    leaves = {name: kind._asdict() for name, kind in kinds.items()}
    return {**container.meta, "leaves": leaves}


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
        if not any(_is_under(name, [prefix]) for name in leaves):
            parts = [name.split(".") for name in leaves]
            paths = {".".join(p[:n]) for p in parts for n in range(1, len(p) + 1)}
            raise ValueError(
                f"exclude={prefix!r} matches no leaf; {nearest(prefix, sorted(paths))}"
            )
    return {n: leaf for n, leaf in leaves.items() if not _is_under(n, prefixes)}


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


def _open(
    file: io.BufferedIOBase, where: str
) -> tuple[Container, dict[str, Any], dict[str, Kind]]:
    """Return the file, its Python scalars, and the kind of every leaf it holds."""
    container = Container(file, where)
    meta = container.meta
    if meta.get("schema") != SCHEMA:
        raise ContainerError(f"{where}: a container, but not a checkpoint")
    if meta["version"] != VERSION:
        raise CheckpointMismatch(
            f"{where}: schema version {meta['version']}, but this version of jaxrig "
            f"reads {VERSION}; load it with the version that wrote it: "
            f"{meta.get('versions')}"
        )
    scalars = decode(meta["scalars"], {})
    kinds = {entry.name: _stored_kind(entry) for entry in container.entries}
    kinds |= {name: _kind_of(value) for name, value in scalars.items()}
    return container, scalars, kinds | dict.fromkeys(meta["code"], Kind(CODE))


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


@dataclass(frozen=True)
class Restored(Generic[T]):
    """What a checkpoint gave back; the tree has the structure of `like`."""

    step: int
    tree: T
    metadata: dict[str, Any]


class CheckpointManager:
    """The newest `keep` checkpoints of one run, in one folder, by step number.

    A checkpoint counts only when it is whole on the disk; older ones are deleted after
    that. One run writes to a folder at a time.

        manager = CheckpointManager("runs/a", keep=3)
        manager.save(100, state, metadata={"loss": 0.1})
        state = manager.restore(like=state).tree
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 3):
        self.folder = Path(folder)
        self.keep = whole()(keep, "keep")

    def save(
        self,
        step: int,
        tree: Any,
        metadata: Mapping[str, Any] | None = None,
        exclude: str | Sequence[str] = (),
    ) -> Path:
        """Write the checkpoint of a step, then delete older ones beyond `keep`.

        On several hosts every process calls this; it returns when the file is whole.
        """
        whole(at_least=0)(step, "step")
        if is_main() and self.folder.exists():
            remove_leftovers(self.folder)
        path = self.path(step)
        save_tree(path, tree, metadata=metadata, exclude=exclude)
        if is_main():
            # The one just written stays even when older runs left higher numbers.
            others = [number for number in self.steps() if number != step]
            for number in others[: max(0, len(others) + 1 - self.keep)]:
                self.path(number).unlink(missing_ok=True)
        wait_for_all(f"checkpoint {path}")
        return path

    def path(self, step: int) -> Path:
        """Return where the checkpoint of a step lies, or would lie."""
        return self.folder / f"step_{step:09d}.ckpt"

    def steps(self) -> list[int]:
        """Return the steps that have a checkpoint, oldest first."""
        if not self.folder.is_dir():
            return []
        matches = (_FILE.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def latest(self) -> int | None:
        """Return the highest step that has a checkpoint."""
        return max(self.steps(), default=None)

    def restore(self, like: T, step: int | None = None) -> Restored[T]:
        """Load a step, or the newest sound checkpoint, into the structure of `like`.

        Without `step`, damaged files are skipped with a warning that names them.
        A checkpoint that does not fit `like` raises CheckpointMismatch in any case.
        """
        steps = self.steps()
        if step is not None:
            if step not in steps:
                raise FileNotFoundError(
                    f"no checkpoint for step {step} in {self.folder}; "
                    f"available steps: {steps}"
                )
            return self._load(step, like)
        if not steps:
            raise FileNotFoundError(
                f"no checkpoint in {self.folder}: save one first, or check the folder"
            )
        for number in reversed(steps):
            try:
                return self._load(number, like)
            except ContainerError as error:
                warnings.warn(f"skipped a damaged checkpoint: {error}", stacklevel=2)
        raise ContainerError(f"every checkpoint in {self.folder} is damaged: {steps}")

    def _load(self, step: int, like: T) -> Restored[T]:
        path = self.path(step)
        return Restored(step, load_tree(path, like), read_header(path)["metadata"])
