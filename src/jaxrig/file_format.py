"""The one on-disk format: a JSON header and raw arrays, checked on reading, no pickle.

Layout: magic, length of the header (8 bytes), header, then each array (C order); header
and arrays are each followed by their crc32, all numbers are little-endian. `encode` and
`decode` turn nested Python data into such a header and its arrays.
"""

import io
import json
import math
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrig.dtypes import DTYPES, is_key

MAGIC = b"\x93JAXRIG2"
CHUNK = 4 * 2**20  # bytes per read or write

# What reading, JSON and NumPy raise for bytes that are cut off, changed or foreign.
_DAMAGE = (ValueError, TypeError, KeyError, OverflowError, RecursionError)


class ContainerError(ValueError):
    """A file is not a sound container: damaged, truncated, foreign or hostile."""


@dataclass(frozen=True)
class Entry:
    """One array of a container; `key` names the PRNG of a typed key's data."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    key: str | None

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * DTYPES[self.dtype].itemsize


def write_container(
    file: io.BufferedIOBase,
    meta: dict[str, Any],
    arrays: Mapping[str, Any],
    *,
    fetch: Callable[[Any], np.ndarray] = np.asarray,
) -> None:
    """Write JSON-able `meta` and named arrays; `fetch` brings each to the host."""
    typed = {name: array for name, array in arrays.items() if is_key(array.dtype)}
    keys = {name: str(jax.random.key_impl(array)) for name, array in typed.items()}
    arrays = {**arrays, **{n: jax.random.key_data(a) for n, a in typed.items()}}
    for name, array in arrays.items():
        if np.dtype(array.dtype).name not in DTYPES:
            raise TypeError(f"{name!r} has dtype {array.dtype}, which cannot be stored")
    entries = [
        Entry(name, np.dtype(array.dtype).name, array.shape, keys.get(name))
        for name, array in arrays.items()
    ]
    header = {"meta": meta, "arrays": [vars(entry) for entry in entries]}
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    file.write(MAGIC + len(text).to_bytes(8, "little"))
    _write_block(file, text)
    for entry in entries:
        array = np.ascontiguousarray(fetch(arrays[entry.name]), DTYPES[entry.dtype])
        _write_block(file, array.reshape(-1).view(np.uint8))


def _write_block(file: io.BufferedIOBase, data: np.ndarray) -> None:
    # crc32 finds damage, not forgery, and keeps up with the disk. A forged file needs
    # no hash: reading one runs no code and allocates no more than the file holds.
    checksum = 0
    for begin in range(0, data.nbytes, CHUNK):
        part = data[begin : begin + CHUNK].data
        checksum = zlib.crc32(part, checksum)
        file.write(part)
    file.write(checksum.to_bytes(4, "little"))


class Container:
    """A file opened for reading: `meta`, `entries`, and the arrays on request."""

    def __init__(self, file: io.BufferedIOBase, where: str):
        self._file, self._where = file, where
        with self._naming_damage():
            size = file.seek(0, io.SEEK_END)
            file.seek(0)
            if (magic := file.read(len(MAGIC))) != MAGIC:
                raise ValueError(f"not a jaxrig file, it begins with {magic!r}")
            length = int.from_bytes(file.read(8), "little")
            if length > size:
                raise ValueError(f"a header of {length} bytes in {size}")
            header = json.loads(self._read_block(length).tobytes())
            self.meta: dict[str, Any] = dict(header["meta"])
            self.entries = [
                Entry(x["name"], x["dtype"], tuple(x["shape"]), x["key"])
                for x in header["arrays"]
            ]
            declared = sum(entry.nbytes + 4 for entry in self.entries)
            if declared != size - file.tell():
                raise ValueError(f"declares {declared} bytes, in a file of {size}")

    @contextmanager
    def _naming_damage(self, of: str = "") -> Generator[None, None, None]:
        try:
            yield
        except _DAMAGE as error:
            raise ContainerError(
                f"{self._where} is not a sound container: {of}{error}"
            ) from error

    def arrays(self) -> Iterator[tuple[str, np.ndarray | jax.Array]]:
        """Yield every array, or typed PRNG keys, with its name, in their order."""
        for entry in self.entries:
            with self._naming_damage(f"{entry.name!r}: "):
                data = self._read_block(entry.nbytes)
                array: Any = data.view(DTYPES[entry.dtype]).reshape(entry.shape)
                if entry.key is not None:
                    array = jnp.asarray(array)
                    array = jax.random.wrap_key_data(array, impl=entry.key)
            yield entry.name, array

    def _read_block(self, count: int) -> np.ndarray:
        data = np.empty(count, np.uint8)
        done = checksum = 0
        while done < count:
            part = data[done : done + CHUNK].data
            if not (read := self._file.readinto(part)):
                raise ValueError(f"truncated, {count - done} bytes are missing")
            checksum = zlib.crc32(part[:read], checksum)
            done += read
        if checksum.to_bytes(4, "little") != self._file.read(4):
            raise ValueError("damaged (crc32 differs)")
        return data


SCALARS = (type(None), bool, int, float, complex, str)
_SEQUENCES = {kind.__name__: kind for kind in (list, tuple, set, frozenset)}


def is_array(value: object) -> bool:
    """Return whether a value is a plain NumPy array, NumPy scalar or JAX array."""
    # Other ndarray subclasses (masked arrays, matrices) carry more than their bytes.
    plain = type(value) in (np.ndarray, np.memmap)
    return plain or isinstance(value, jax.Array | np.generic)


def encode(data: Any) -> tuple[Any, dict[str, Any]]:
    """Return a JSON value and the arrays it refers to by name.

    Takes dict, list, tuple, set, frozenset, str, int, float, bool, None, complex,
    bytes, NumPy and JAX arrays and NumPy scalars, of exactly these types; anything
    else is a TypeError that says where in the data it lies.
    """
    arrays: dict[str, Any] = {}
    try:
        return _encode(data, "data", arrays), arrays
    except RecursionError as error:
        raise ValueError("data is nested too deep or contains itself") from error


def _encode(value: Any, path: str, arrays: dict[str, Any]) -> Any:
    kind = type(value)
    if kind in SCALARS:
        return _encode_scalar(value)
    if kind is dict:
        return ["dict", _encode_pairs(value, path, arrays)]
    if kind in _SEQUENCES.values():
        # Sets of strings change order from run to run; files should not.
        items = sorted(value, key=repr) if kind in (set, frozenset) else value
        nodes = [_encode(x, f"{path}[{i}]", arrays) for i, x in enumerate(items)]
        return [kind.__name__, nodes]
    name = str(len(arrays))
    if kind is bytes:
        arrays[name] = np.frombuffer(value, np.uint8)
        return ["bytes", name]
    if is_array(value):
        if not is_key(value.dtype) and np.dtype(value.dtype).name not in DTYPES:
            raise TypeError(f"{path} has dtype {value.dtype}, which cannot be stored")
        arrays[name] = value
        return ["scalar" if isinstance(value, np.generic) else "array", name]
    raise TypeError(
        f"{path} is a {kind.__module__}.{kind.__qualname__}, which cannot be stored: "
        "turn it into dicts, lists, scalars and arrays first"
    )


def _encode_scalar(value: Any) -> Any:
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return ["int", hex(value)]  # Python bounds the length of decimal text
    return value


def _encode_pairs(value: dict[Any, Any], path: str, arrays: dict[str, Any]) -> Any:
    for key in value:
        if type(key) not in SCALARS:
            raise TypeError(
                f"{path} has the key {key!r} of type {type(key).__qualname__}: keys "
                "are str, int, float, bool, None or complex"
            )
    return [
        [_encode_scalar(key), _encode(item, f"{path}[{key!r}]", arrays)]
        for key, item in value.items()
    ]


def decode(node: Any, arrays: Mapping[str, Any]) -> Any:
    """Return what `encode` was given; ValueError for what it cannot have written."""
    below = lambda item: decode(item, arrays)
    try:
        match node:
            case None | bool() | int() | float() | str():
                return node
            case ["int", str(text)]:
                return int(text, 16)
            case ["complex", float(real), float(imag)]:
                return complex(real, imag)
            case ["dict", list(pairs)]:
                return {below(key): below(value) for key, value in pairs}
            case ["list" | "tuple" | "set" | "frozenset" as tag, list(nodes)]:
                return _SEQUENCES[tag](map(below, nodes))
            case ["array", str(name)]:
                return arrays[name]
            case ["scalar", str(name)]:
                return arrays[name][()]
            case ["bytes", str(name)]:
                return arrays[name].tobytes()
            case _:
                raise TypeError("does not represent a value")
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{str(node)[:60]}: {error}") from error
