"""A task file's text to checked grids; every refusal names the place and the rule."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from jaxarc import bit_planes

MAX_COLOR = 9
MAX_SIDE = bit_planes.LARGEST_SIDE
MAX_FILE_BYTES = 16 * 2**20  # a hundred times the text of the largest ARC task
SHOWN = 60  # characters of a bad value that an error repeats

GridArray: TypeAlias = np.ndarray
Pair: TypeAlias = tuple[GridArray, GridArray]
TestPair: TypeAlias = tuple[GridArray, GridArray | None]


class TaskError(ValueError):
    """A task is not one: says where, what was found, the rule and the remedy."""


@dataclass(frozen=True, eq=False)
class RawTask:
    """A checked task on the host: int8 grids of their real size, a name."""

    id: str
    train: tuple[Pair, ...]
    test: tuple[TestPair, ...]


def read_json(path: Path) -> Any:
    """Return the JSON value of a file; TaskError if it is too long or has none."""
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise TaskError(
            f"{path}: {size} bytes, a task file has at most {MAX_FILE_BYTES}; remove "
            "it from the folder or split it into one file per task"
        )
    try:
        return json.loads(path.read_bytes())
    except RecursionError as error:
        raise TaskError(
            f"{path}: nested too deeply to read; a task is an object of lists of "
            "pairs of lists of rows, download the file again"
        ) from error
    except ValueError as error:  # not JSON, not UTF-8, or a number of absurd length
        raise TaskError(
            f"{path}: not JSON ({error}); download the file again or remove it"
        ) from error


def parse_task(raw: Any, task_id: str, where: str | None = None) -> RawTask:
    """Check a task's JSON value; `where` (by default the id) begins every error."""
    where = where or task_id
    if not isinstance(raw, dict):
        raise TaskError(
            f"{where}: holds {_shown(raw)}; a task is an object with the lists 'train' "
            "and 'test'"
        )
    train = tuple(
        (_grid(pair, "input", at), _grid(pair, "output", at))
        for pair, at in _pairs(raw, "train", where)
    )
    answer = lambda pair, at: (
        None if pair.get("output") is None else _grid(pair, "output", at)
    )
    test = tuple(
        (_grid(pair, "input", at), answer(pair, at))
        for pair, at in _pairs(raw, "test", where)
    )
    return RawTask(task_id, train, test)


def _pairs(
    raw: dict[str, Any], part: str, where: str
) -> Iterator[tuple[dict[str, Any], str]]:
    pairs = raw.get(part)
    if not isinstance(pairs, list | tuple) or not pairs:
        found = f"is {_shown(pairs)}" if part in raw else "is missing"
        raise TaskError(
            f"{where}: '{part}' {found}; it must be a list of at least one pair, add "
            "one or remove the task"
        )
    for index, pair in enumerate(pairs):
        at = f"{where}: {part}[{index}]"
        if not isinstance(pair, dict):
            raise TaskError(
                f"{at} is {_shown(pair)}; a pair is an object with 'input' and "
                "'output', correct it or remove it"
            )
        yield pair, at


def _grid(pair: dict[str, Any], side: str, at: str) -> GridArray:
    """Return one grid; cells are looked at one by one only to name a bad one."""
    if side not in pair:
        raise TaskError(f"{at} has no '{side}'; add the grid or remove the pair")
    at = f"{at}.{side}"
    rows = pair[side]
    if isinstance(rows, np.ndarray):
        rows = rows.tolist()
    height, width = _shape(rows, at)
    cells = list(chain.from_iterable(rows))
    if set(map(type, cells)) != {int} or min(cells) < 0 or max(cells) > MAX_COLOR:
        raise _bad_cell(rows, at)
    return np.frombuffer(bytes(cells), np.int8).reshape(height, width)


def _shape(rows: Any, at: str) -> tuple[int, int]:
    if not isinstance(rows, list | tuple) or not rows:
        raise TaskError(
            f"{at} is {_shown(rows)}; a grid is a list of at least one row, correct it "
            "or remove the pair"
        )
    for index, row in enumerate(rows):
        if not isinstance(row, list | tuple) or not row:
            raise TaskError(
                f"{at}[{index}] is {_shown(row)}; a row is a list of at least one "
                "cell, correct it or remove the pair"
            )
        if len(row) != len(rows[0]):
            raise TaskError(
                f"{at}[{index}] has {len(row)} cells and row 0 has {len(rows[0])}; all "
                "rows of a grid are equally long, correct the row"
            )
    shape = len(rows), len(rows[0])
    if max(shape) > MAX_SIDE:
        raise TaskError(
            f"{at} has {shape[0]} rows and {shape[1]} columns; a grid has at most "
            f"{MAX_SIDE} of both, cut it or remove the task"
        )
    return shape


def _bad_cell(rows: Sequence[Sequence[Any]], at: str) -> TaskError:
    row, column, cell = next(
        (r, c, cell)
        for r, row in enumerate(rows)
        for c, cell in enumerate(row)
        if type(cell) is not int or not 0 <= cell <= MAX_COLOR
    )
    return TaskError(
        f"{at}[{row}][{column}] is {_shown(cell)}; a cell is a whole number from 0 to "
        f"{MAX_COLOR}, correct it or remove the task"
    )


def _shown(value: Any) -> str:
    """Return a bad value and its type, short whatever it holds."""
    if value is None:
        return "null"
    if isinstance(value, list | tuple | dict):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an int of {value.bit_length()} bits"  # its decimal text may be refused
    text = repr(value)
    shortened = text if len(text) <= SHOWN else text[:SHOWN] + "…"
    return f"{shortened} ({type(value).__name__})"
