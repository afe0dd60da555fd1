"""Columns: named arrays that a file writer takes block by block, never whole."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

BLOCK = 8 * 2**20  # bytes per block: large enough to stream, small beside the data

KINDS = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
Blocks = Callable[[], Iterable[np.ndarray]]


@dataclass(frozen=True)
class Column:
    """One array of a file: `rows` tuples of `components`, made by `blocks` on demand.

    The blocks, one after the other, are the rows in order.
    """

    name: str
    dtype: np.dtype
    rows: int
    components: int
    blocks: Blocks

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return self.rows * self.components * self.dtype.itemsize

    def stream(self, order: Literal["<", ">"]) -> Iterator[memoryview]:
        """The bytes in a byte order; ValueError if the blocks have another size."""
        dtype, left = self.dtype.newbyteorder(order), self.nbytes
        for block in self.blocks():
            data = np.ascontiguousarray(block, dtype)
            left -= data.nbytes
            if data.nbytes:
                yield data.reshape(-1).view(np.uint8).data
        if left:
            raise ValueError(f"{self.name!r} made {-left:+} bytes beside its size")


@dataclass(frozen=True)
class Cells:
    """Cells as VTK has them: node numbers, the end of each cell, its type numbers."""

    connectivity: Column
    ends: Column
    types: Column | None = None


def as_kind(dtype: Any, name: str) -> np.dtype:
    """The stored dtype of an array: booleans are bytes; TypeError if none fits."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.dtype("u1")
    if dtype.str[1:] not in KINDS:
        raise TypeError(
            f"{name!r} has dtype {dtype}, which these files cannot hold: convert it "
            f"to float32, float64 or an integer type"
        )
    return dtype.newbyteorder("=")


def column(name: str, values: Any, rows: int | None = None) -> Column:
    """A column of an array (rows) or (rows, components...), checked against `rows`."""
    array = np.asarray(values)
    if array.ndim == 0 or (rows is not None and len(array) != rows):
        due = "an array" if rows is None else f"{rows} rows"
        raise ValueError(f"{name!r} has shape {array.shape}, it needs {due}")
    dtype = as_kind(array.dtype, name)
    components = math.prod(array.shape[1:])

    def blocks() -> Iterator[np.ndarray]:
        step = rows_per_block(components * dtype.itemsize)
        for begin in range(0, len(array), step):
            yield array[begin : begin + step]

    return Column(name, dtype, len(array), components, blocks)


def columns(arrays: Mapping[str, Any] | None, rows: int) -> list[Column]:
    """Columns of named arrays; those that already are columns pass as they are."""
    made = []
    for name, values in (arrays or {}).items():
        made.append(
            values if isinstance(values, Column) else column(name, values, rows)
        )
        if made[-1].rows != rows:
            raise ValueError(f"{name!r} has {made[-1].rows} rows, it needs {rows}")
    return made


def whole_columns(arrays: Mapping[str, Any]) -> list[Column]:
    """Columns of named values that belong to the file, each as long as it is."""
    return [column(n, np.atleast_1d(np.asarray(v))) for n, v in arrays.items()]


def numbers(values: Any) -> str:
    """Numbers as text that reads back as the same ones."""
    return " ".join(repr(float(value)) for value in values)


def points(name: str, positions: Any) -> Column:
    """A column of positions (N,3) in floating point; (N,2) gets z = 0.

    One that already is a column passes as it is.
    """
    if isinstance(positions, Column):
        return positions
    return column(name, as_points(positions, name))


def as_points(positions: Any, name: str = "positions") -> np.ndarray:
    """An array (..., 3) in float32 or float64; two columns get a third of zeros."""
    array = np.asarray(positions)
    if array.ndim == 0 or array.shape[-1] not in (2, 3):
        raise ValueError(f"{name} has shape {array.shape}, it needs (..., 3)")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype.itemsize < 4 else np.float64)
    if array.shape[-1] == 2:
        array = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, 1)])
    return array


def integers(name: str, count: int, top: int, start: int = 0, step: int = 1) -> Column:
    """The column start, start+step, ... of `count` numbers, none greater than `top`."""
    dtype = index_kind(top)

    def blocks() -> Iterator[np.ndarray]:
        rows = rows_per_block(dtype.itemsize)
        for begin in range(0, count, rows):
            end = min(begin + rows, count)
            yield start + step * np.arange(begin, end, dtype=dtype)

    return Column(name, dtype, count, 1, blocks)


def index_kind(top: int) -> np.dtype:
    """The smaller of int32 and int64 that holds `top`."""
    return np.dtype("i4" if top < 2**31 else "i8")


def rows_per_block(nbytes: int) -> int:
    """How many rows of `nbytes` bytes make one block."""
    return max(1, BLOCK // max(1, nbytes))


def vertices(count: int) -> Cells:
    """One vertex cell per point."""
    types = Column(
        "types", np.dtype("u1"), count, 1, lambda: iter([np.ones(count, np.uint8)])
    )
    return Cells(
        integers("connectivity", count, count),
        integers("offsets", count, count, start=1),
        types,
    )
