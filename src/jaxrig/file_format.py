"""The one on-disk format: a JSON header and raw arrays, checked on reading, no pickle.

Layout: prefix (magic, version, header length and crc32, little-endian), JSON header,
then each array at the next multiple of 64 bytes (C order, little-endian), then one
crc32 per array. The checksums come last so that arrays are streamed in one pass.
`encode` and `decode` turn nested Python data into such a header and its arrays.
"""

import io
import json
import math
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrig.dtypes import DTYPES, is_key

MAGIC = b"\x93JAXRIG\n"
VERSION = 1
PREFIX = struct.Struct("<8sIQI")
ALIGNMENT = 64  # bytes; a cache line, and what XLA wants for zero-copy on CPU
MAX_HEADER = 64 * 2**20  # bytes; parsed JSON takes some twenty times its text
CHUNK = 4 * 2**20  # bytes per read or write


class ContainerError(ValueError):
    """A file is not a sound container: damaged, truncated, foreign or hostile."""


@dataclass(frozen=True)
class Entry:
    """One array of a container; `key` names the PRNG of a typed key's data."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int
    key: str | None


@dataclass(frozen=True)
class Header:
    """What a container holds; `start` is where the arrays begin, `size` the total."""

    meta: dict[str, Any]
    entries: tuple[Entry, ...]
    start: int
    size: int


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT


def _lay_out(arrays: Mapping[str, Any], keys: Mapping[str, str]) -> list[Entry]:
    entries, end = [], 0
    for name, array in arrays.items():
        dtype = np.dtype(array.dtype).name
        if dtype not in DTYPES:
            raise TypeError(f"{name!r} has dtype {array.dtype}, which cannot be stored")
        nbytes = math.prod(array.shape) * DTYPES[dtype].itemsize
        begin, end = _aligned(end), _aligned(end) + nbytes
        entries.append(Entry(name, dtype, array.shape, begin, nbytes, keys.get(name)))
    return entries


def _encode_header(meta: dict[str, Any], entries: list[Entry]) -> bytes:
    header = {"meta": meta, "arrays": [vars(entry) for entry in entries]}
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    if len(text) > MAX_HEADER:
        said = f"{len(text)} bytes of JSON, at most {MAX_HEADER} are read back"
        raise ValueError(f"{said}: store numbers in arrays, not in Python lists")
    return text


def write_container(
    file: io.BufferedIOBase,
    meta: dict[str, Any],
    arrays: Mapping[str, Any],
    *,
    fetch: Callable[[Any], np.ndarray] = np.asarray,
    limit: int | None = None,
) -> int:
    """Write JSON-able `meta` and named arrays, one at a time; return the bytes written.

    `fetch` brings one array to the host. More than `limit` bytes is a ValueError,
    raised before anything is written.
    """
    typed = {name: array for name, array in arrays.items() if is_key(array.dtype)}
    keys = {name: str(jax.random.key_impl(array)) for name, array in typed.items()}
    arrays = {**arrays, **{n: jax.random.key_data(a) for n, a in typed.items()}}
    entries = _lay_out(arrays, keys)
    header = _encode_header(meta, entries)
    start = _aligned(PREFIX.size + len(header))
    size = _size(start, entries)
    if limit is not None and size > limit:
        raise ValueError(f"{size} bytes before compression, the limit is {limit}")
    file.write(PREFIX.pack(MAGIC, VERSION, len(header), zlib.crc32(header)) + header)
    position, checksums = PREFIX.size + len(header), []
    for entry in entries:
        file.write(bytes(start + entry.offset - position))
        checksums.append(_write_array(file, fetch(arrays[entry.name]), entry))
        position = start + entry.offset + entry.nbytes
    file.write(bytes(max(0, start - position)))
    file.write(np.array(checksums, "<u4").tobytes())
    return size


def _size(start: int, entries: list[Entry]) -> int:
    end = entries[-1].offset + entries[-1].nbytes if entries else 0
    return start + end + 4 * len(entries)


def _write_array(file: io.BufferedIOBase, array: np.ndarray, entry: Entry) -> int:
    data = np.ascontiguousarray(array, DTYPES[entry.dtype]).reshape(-1).view(np.uint8)
    if data.nbytes != entry.nbytes:
        raise ValueError(f"{entry.name!r} changed size while it was written")
    # crc32 finds damage, not forgery, and keeps up with the disk. A forged file needs
    # no hash: reading one runs no code and allocates no more than the file holds.
    checksum = 0
    for begin in range(0, entry.nbytes, CHUNK):
        part = data[begin : begin + CHUNK].data
        checksum = zlib.crc32(part, checksum)
        file.write(part)
    return checksum


def read_header(
    file: io.BufferedIOBase, where: str, size: int, *, exact: bool = True
) -> Header:
    """Read and check the header; `size` is the file's, or a bound if not `exact`."""
    magic, version, length, checksum = PREFIX.unpack(_read(file, PREFIX.size, where))
    _check(magic == MAGIC, where, f"not a jaxrig container, it begins {magic!r}")
    _check(version == VERSION, where, f"version {version}, this code reads {VERSION}")
    _check(length <= min(size, MAX_HEADER), where, f"a header of {length} bytes")
    text = _read(file, length, where)
    _check(zlib.crc32(text) == checksum, where, "the header is damaged (crc32 differs)")
    header = _decode_header(text, where)
    fits = header.size == size if exact else header.size <= size
    _check(fits, where, f"the header declares {header.size} bytes, there are {size}")
    _read_padding(file, header.start - PREFIX.size - length, where)
    return header


def _decode_header(text: bytes, where: str) -> Header:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ContainerError(f"{where}: the header is not JSON: {error}") from error
    match header:
        case {"meta": dict(meta), "arrays": list(items)}:
            pass
        case _:
            raise ContainerError(f"{where}: the header lacks 'meta' or 'arrays'")
    entries: list[Entry] = []
    end = 0
    for item in items:
        entries.append(_decode_entry(item, _aligned(end), where))
        end = entries[-1].offset + entries[-1].nbytes
    distinct = len({entry.name for entry in entries}) == len(entries)
    _check(distinct, where, "two arrays have the same name")
    start = _aligned(PREFIX.size + len(text))
    return Header(meta, tuple(entries), start, _size(start, entries))


def _decode_entry(item: Any, due: int, where: str) -> Entry:
    match item:
        case {
            "name": str(name),
            "dtype": str(dtype),
            "shape": list(shape),
            "offset": int(offset),
            "nbytes": int(nbytes),
            "key": str() | None as key,
        }:
            at = f"{where}: entry {name[:200]!r}"
        case _:
            raise ContainerError(
                f"{where}: {str(item)[:200]} does not describe an array"
            )
    # Bounded before they are multiplied: JSON integers have thousands of digits.
    lengths = [n for n in shape[:64] if type(n) is int and 0 <= n < 2**63]
    _check(dtype in DTYPES, at, f"unknown dtype {dtype[:60]!r}")
    _check(len(lengths) == len(shape), at, f"{str(shape)[:60]} is not a shape")
    needed = math.prod(lengths) * DTYPES[dtype].itemsize
    _check(nbytes == needed, at, f"{nbytes} bytes for {dtype} {str(shape)[:60]}")
    _check(offset == due, at, f"offset {offset}, not {due}: overlap or gap")
    if key is not None:
        try:
            make = lambda: jax.random.key_data(jax.random.key(0, impl=key))
            data = jax.eval_shape(make)
        except ValueError as error:
            raise ContainerError(f"{at}: {error}") from error
        fits = (dtype, shape[-1:]) == (data.dtype.name, list(data.shape))
        _check(fits, at, f"{dtype} {str(shape)[:60]} is not PRNG key data of {key}")
    return Entry(name, dtype, tuple(shape), offset, nbytes, key)


def read_arrays(
    file: io.BufferedIOBase, header: Header, where: str
) -> Iterator[tuple[str, np.ndarray | jax.Array]]:
    """Yield every array, or typed PRNG keys, by name.

    Only the exhausted iterator has compared the checksums.
    """
    end, checksums = 0, []
    for entry in header.entries:
        at = f"{where}: entry {entry.name!r}"
        _read_padding(file, entry.offset - end, at)
        data = np.empty(entry.nbytes, np.uint8)
        checksums.append(_read_into(file, data, at))
        end = entry.offset + entry.nbytes
        try:
            array = data.view(DTYPES[entry.dtype]).reshape(entry.shape)
        except (ValueError, OverflowError) as error:  # more or longer axes than NumPy's
            raise ContainerError(f"{at}: {error}") from error
        if entry.key is not None:
            array = jax.random.wrap_key_data(jnp.asarray(array), impl=entry.key)
        yield entry.name, array
    stored = np.frombuffer(_read(file, 4 * len(checksums), where), "<u4").tolist()
    for entry, found, expected in zip(header.entries, checksums, stored, strict=True):
        _check(found == expected, where, f"entry {entry.name!r} is damaged (crc32)")
    _check(not file.read(1), where, "bytes follow the end of the container")


def _read(file: io.BufferedIOBase, count: int, where: str) -> bytes:
    data = np.empty(count, np.uint8)
    _read_into(file, data, where)
    return data.tobytes()


def _read_into(file: io.BufferedIOBase, data: np.ndarray, where: str) -> int:
    done = checksum = 0
    while done < data.nbytes:
        part = data[done : done + CHUNK].data
        count = file.readinto(part)
        _check(bool(count), where, f"truncated, {data.nbytes - done} bytes are missing")
        checksum = zlib.crc32(part[:count], checksum)
        done += count
    return checksum


def _read_padding(file: io.BufferedIOBase, count: int, where: str) -> None:
    _check(not any(_read(file, count, where)), where, "damaged bytes in the padding")


def _check(sound: bool, where: str, problem: str) -> None:
    if not sound:
        raise ContainerError(f"{where}: {problem}")


MAX_DEPTH = 100  # levels; far below what exhausts the stack of the JSON reader

Scalar = None | bool | int | float | complex | str
SCALARS = (type(None), bool, int, float, complex, str)
_SEQUENCES = {kind.__name__: kind for kind in (list, tuple, set, frozenset)}


def is_array(value: object) -> bool:
    """Return whether a value is a plain NumPy array, NumPy scalar or JAX array."""
    # Other ndarray subclasses (masked arrays, matrices) carry more than their bytes.
    plain = type(value) in (np.ndarray, np.memmap)
    return plain or isinstance(value, jax.Array | np.generic)


def pack_scalar(value: Scalar) -> Any:
    """Return a JSON value from which `unpack_scalar` makes the scalar again."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return ["int", hex(value)]  # Python bounds the length of decimal text
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, str) and any(
        "\ud800" <= letter <= "\udfff" for letter in value
    ):
        # JSON would join two surrogates into one character.
        return ["str", value.encode("utf-8", "surrogatepass").hex()]
    return value


def unpack_scalar(node: Any) -> Scalar:
    """Return the scalar that `pack_scalar` was given; ValueError for all else."""
    match node:
        case None | bool() | int() | float() | str():
            return node
        case ["int", str(text)]:
            return int(text, 16)
        case ["complex", float(real), float(imag)]:
            return complex(real, imag)
        case ["str", str(text)]:
            return bytes.fromhex(text).decode("utf-8", "surrogatepass")
        case _:
            raise ValueError(f"{str(node)[:60]} does not represent a value")


def encode(data: Any) -> tuple[Any, dict[str, Any]]:
    """Return a JSON value and the arrays it refers to by name.

    Takes dict, list, tuple, set, frozenset, str, int, float, bool, None, complex,
    bytes, NumPy and JAX arrays and NumPy scalars, of exactly these types; anything
    else is a TypeError that says where in the data it lies.
    """
    arrays: dict[str, Any] = {}
    return _encode(data, "data", 0, arrays), arrays


def _encode(value: Any, path: str, depth: int, arrays: dict[str, Any]) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError(
            f"{path[:60]}... is nested more than {MAX_DEPTH} levels deep or "
            "contains itself"
        )
    kind = type(value)
    if kind in SCALARS:
        return pack_scalar(value)
    if kind is dict:
        return ["dict", _encode_pairs(value, path, depth, arrays)]
    if kind in _SEQUENCES.values():
        items = sorted(value, key=_rank) if kind in (set, frozenset) else value
        nodes = [
            _encode(item, f"{path}[{i}]", depth + 1, arrays)
            for i, item in enumerate(items)
        ]
        return [kind.__name__, nodes]
    if kind is bytes:
        return ["bytes", _refer(np.frombuffer(value, np.uint8), arrays)]
    if is_array(value):
        if not is_key(value.dtype) and np.dtype(value.dtype).name not in DTYPES:
            raise TypeError(f"{path} has dtype {value.dtype}, which cannot be stored")
        tag = "scalar" if isinstance(value, np.generic) else "array"
        return [tag, _refer(value, arrays)]
    raise TypeError(
        f"{path} is a {kind.__module__}.{kind.__qualname__}, which cannot be stored: "
        f"turn it into dicts, lists, scalars and arrays first"
    )


def _encode_pairs(
    value: dict[Any, Any], path: str, depth: int, arrays: dict[str, Any]
) -> list[Any]:
    pairs = []
    for key, item in value.items():
        if type(key) not in SCALARS:
            raise TypeError(
                f"{path} has the key {_show(key)} of type {type(key).__qualname__}: "
                f"keys are str, int, float, bool, None or complex"
            )
        node = _encode(item, f"{path}[{_show(key)}]", depth + 1, arrays)
        pairs.append([pack_scalar(key), node])
    return pairs


def _rank(value: Any) -> str:
    # Sets of strings change order from run to run; files should not.
    if isinstance(value, frozenset | tuple):
        ranks = [_rank(item) for item in value]
        value = sorted(ranks) if isinstance(value, frozenset) else ranks
    return f"{type(value).__qualname__} {_show(value)}"


def _show(value: Any) -> str:
    # Python refuses to write very long integers in decimal.
    return hex(value) if type(value) is int and abs(value) >= 2**63 else repr(value)


def _refer(array: Any, arrays: dict[str, Any]) -> str:
    name = str(len(arrays))
    arrays[name] = array
    return name


def decode(node: Any, arrays: Mapping[str, Any], depth: int = 0) -> Any:
    """Return what `encode` was given; ValueError for what it cannot have written."""
    if depth > MAX_DEPTH:
        raise ValueError(f"nests more than {MAX_DEPTH} levels deep")
    below = lambda item: decode(item, arrays, depth + 1)
    try:
        match node:
            case ["dict", list(pairs)]:
                return {unpack_scalar(key): below(value) for key, value in pairs}
            case ["list" | "tuple" | "set" | "frozenset" as tag, list(nodes)]:
                return _SEQUENCES[tag](map(below, nodes))
            case ["array" | "scalar" | "bytes" as tag, str(name)] if name in arrays:
                return _decode_array(tag, arrays[name])
            case _:
                return unpack_scalar(node)
    except TypeError as error:  # not a pair, or an unhashable member of a set
        raise ValueError(f"{str(node)[:60]}: {error}") from error


def _decode_array(tag: str, array: Any) -> Any:
    if tag == "array":
        return array
    if not isinstance(array, np.ndarray) or (tag == "scalar" and array.ndim):
        raise ValueError(f"an array of shape {array.shape} is not {tag}")
    return array[()] if tag == "scalar" else array.tobytes()
