"""The one on-disk format: a JSON header and raw arrays, checked on reading, no pickle.

Layout: prefix (magic, version, header length and crc32, little-endian), JSON header,
then each array at the next multiple of 64 bytes (C order, little-endian), then one
crc32 per array. The checksums come last so that arrays are streamed in one pass.
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
        raise ValueError(f"{said}: keep numbers in arrays, not in Python lists")
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
            raise ContainerError(f"{where}: {str(item)[:200]} describes no array")
    # Bounded before they are multiplied: JSON integers have thousands of digits.
    lengths = [n for n in shape[:64] if type(n) is int and 0 <= n < 2**63]
    _check(dtype in DTYPES, at, f"unknown dtype {dtype[:60]!r}")
    _check(len(lengths) == len(shape), at, f"{str(shape)[:60]} is not a shape")
    needed = math.prod(lengths) * DTYPES[dtype].itemsize
    _check(nbytes == needed, at, f"{nbytes} bytes for {dtype} {str(shape)[:60]}")
    _check(offset == due, at, f"offset {offset}, not {due}: overlap or gap")
    return Entry(name, dtype, tuple(shape), offset, nbytes, key)


def read_arrays(
    file: io.BufferedIOBase, header: Header, where: str
) -> Iterator[tuple[Entry, np.ndarray]]:
    """Yield every array; only the exhausted iterator has compared the checksums."""
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
        yield entry, array
    stored = np.frombuffer(_read(file, 4 * len(checksums), where), "<u4").tolist()
    for entry, found, expected in zip(header.entries, checksums, stored, strict=True):
        _check(found == expected, where, f"entry {entry.name!r} is damaged (crc32)")
    _check(not file.read(1), where, "bytes follow the end of the container")


def as_value(entry: Entry, data: np.ndarray, where: str) -> np.ndarray | jax.Array:
    """What was stored: the array itself, or typed PRNG keys from their data."""
    if entry.key is None:
        return data
    try:
        return jax.random.wrap_key_data(jnp.asarray(data), impl=entry.key)
    except (ValueError, TypeError) as error:
        raise ContainerError(f"{where}: entry {entry.name!r}: {error}") from error


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
