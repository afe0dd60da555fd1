"""Data in tables: pandas frames and CSV files with a column of intervention targets.

The column `intervention_targets` holds, for each row, the names that were set: text
with commas or semicolons between names, or a list or set; empty means observational.
"""

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from acbo.named.codec import Codec
from acbo.named.digraph import check_known, check_names
from acbo.named.mechanisms import plain_numbers
from jaxrig.atomic import atomic_write
from jaxrig.machine import missing_extra

TARGETS_COLUMN = "intervention_targets"


class DataTable(eqx.Module):
    """Rows of data in the user's units: which columns, and which cells were set."""

    names: tuple[str, ...] = eqx.field(static=True)
    values: Float[Array, "*batch n d"]
    intervened: Bool[Array, "*batch n d"]

    def index(self, name: str) -> int:
        """Column of a name; ValueError listing the names for an unknown one."""
        return Codec(self.names).index(name)


def frame_to_table(
    frame: Any, names: Sequence[str] | None = None, target: str | None = None
) -> DataTable:
    """The columns `names` (default: all) of a pandas frame, checked.

    Refused, with a sentence that says where: a missing column, text or nothing where
    a number is needed, a column of one value, fewer than two rows, an unknown name
    among the intervention targets, and interventions on `target`.
    """
    columns = [c for c in frame.columns if c != TARGETS_COLUMN]
    order = check_names(columns if names is None else list(names), "column")
    for name in order:
        check_known(name, columns, "column")
    if target is not None:
        check_known(target, order, "target")
    if len(frame) < 2:
        raise ValueError(f"the table has {len(frame)} row(s): give at least 2")
    values = np.stack([_numbers(frame[name], name) for name in order], axis=1)
    _check_varies(values, order)
    flags = np.zeros(values.shape, bool)
    if TARGETS_COLUMN in frame.columns:
        cells = frame[TARGETS_COLUMN].tolist()
        sets = [_parse(cell, order, row) for row, cell in enumerate(cells, 1)]
        _check_target(sets, target)
        flags = np.stack([Codec(order).mask(found) for found in sets])
    return DataTable(order, jnp.asarray(values), jnp.asarray(flags))


def table_to_frame(table: DataTable) -> Any:
    """A pandas frame of the values, with the names that were set in each row."""
    pandas = import_pandas()
    codec = Codec(table.names)
    values = plain_numbers(table.values)
    frame = pandas.DataFrame(values, columns=list(table.names))
    sets = [sorted(codec.members(row)) for row in np.asarray(table.intervened)]
    for found in sets:
        split = [name for name in found if re.search("[,;]", name)]
        if split and len(found) > 1:
            raise ValueError(
                f"name {split[0]!r} has a comma or semicolon, which separate the "
                "names of one row: rename the column"
            )
    frame[TARGETS_COLUMN] = ["; ".join(found) for found in sets]
    return frame


def read_csv(
    path: str | os.PathLike[str],
    names: Sequence[str] | None = None,
    target: str | None = None,
) -> DataTable:
    """A CSV file with a header line, checked as by `frame_to_table`."""
    pandas = import_pandas()
    try:
        frame = pandas.read_csv(path, skipinitialspace=True)
    except (pandas.errors.EmptyDataError, pandas.errors.ParserError) as error:
        raise ValueError(f"{os.fspath(path)} is no CSV table: {error}") from error
    try:
        return frame_to_table(frame, names, target)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from error


def write_csv(path: str | os.PathLike[str], table: DataTable) -> None:
    """The table as a CSV file that `read_csv` reads back equal."""
    text = table_to_frame(table).to_csv(index=False)
    with atomic_write(path) as file:
        file.write(text.encode())


def observed_ranges(table: DataTable) -> dict[str, tuple[float, float]]:
    """Smallest and largest value of each column: ranges for interventions."""
    values = np.asarray(table.values)
    low, high = plain_numbers(values.min(0)), plain_numbers(values.max(0))
    return {name: (float(low[i]), float(high[i])) for i, name in enumerate(table.names)}


def import_pandas() -> Any:
    """The library, or an ImportError that says how to get it."""
    try:
        import pandas
    except ImportError as error:
        raise missing_extra("tables need pandas", "causal") from error
    return pandas


def _numbers(column: Any, name: str) -> Float[np.ndarray, " n"]:
    pandas = import_pandas()
    if isinstance(column, pandas.DataFrame):
        raise ValueError(f"column {name!r} is given twice: names must differ")
    found = pandas.to_numeric(column, errors="coerce")
    with np.errstate(over="ignore"):  # what the device computes with
        numbers = found.to_numpy(np.float64, na_value=np.nan).astype(np.float32)
    for row in np.flatnonzero(~np.isfinite(numbers)).tolist()[:1]:
        cell = column.iloc[row]
        if isinstance(cell, str):
            raise ValueError(
                f"row {row + 1}, column {name!r} holds {cell!r}: give a number"
            )
        raise ValueError(
            f"row {row + 1}, column {name!r} holds {cell}: fill it or drop the row"
        )
    return numbers


def _check_varies(values: np.ndarray, names: Sequence[str]) -> None:
    for place in np.flatnonzero(values.max(0) == values.min(0)).tolist()[:1]:
        raise ValueError(
            f"column {names[place]!r} is {values[0, place]:g} in every row, which says "
            "nothing about causes: drop the column"
        )


def _parse(cell: Any, names: Sequence[str], row: int) -> frozenset[str]:
    """The names in one cell: text, a list or set, or nothing (None, NaN, "")."""
    empty = cell is None or cell is import_pandas().NA
    if empty or (isinstance(cell, float) and np.isnan(cell)):
        return frozenset()
    if isinstance(cell, str):
        parts = [cell] if cell in names else re.split("[,;]", cell)
        found = frozenset(part.strip() for part in parts if part.strip())
    elif isinstance(cell, Iterable):
        found = frozenset(cell)
    else:  # a column of bare numbers, whose names are text
        found = frozenset([str(cell)])
    for name in sorted(found, key=str):
        check_known(name, names, f"row {row}: intervention target")
    return found


def _check_target(sets: Sequence[frozenset[str]], target: str | None) -> None:
    for row, found in enumerate(sets, 1):
        if target in found:
            raise ValueError(
                f"row {row}: the target {target!r} is among the intervention targets; "
                "drop the row, the target is never set"
            )
