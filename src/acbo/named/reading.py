"""Tables as laboratories keep them: a file, a frame or columns, read into numbers.

Nothing is left out in silence. What each column was taken for, and which rows could not
be used, is told in the `notes` of the table.
"""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from acbo.named.cells import LISTED, commas_are_decimal, plain_cell, read_column
from acbo.named.names import find_name, plain_name
from acbo.named.tables import (
    TARGETS_COLUMN,
    DataTable,
    is_value,
    lack_measured,
    read_frame,
    read_targets,
    target_flags,
    units_below_header,
    write_targets,
)
from acbo.types import import_extra

# Headers under which people write what was set. Columns under the second group are
# read so only if their cells name columns: "treatment" may as well be a category.
CERTAIN = (
    TARGETS_COLUMN,
    *("intervention_target", "interventions", "intervention", "intervened"),
    *("intervened_on", "do", "set_variables", "variables_set", "what_was_set"),
    *("is_intervention", "is_interventional", "interventional"),
)
POSSIBLE = (
    "set",
    "targets",
    "treatment",
    "treated",
    "manipulated",
    "changed",
    "varied",
)
# Headers of columns of 0 and 1 that tell whether one variable was set.
FLAG = re.compile(
    r"(?:do|set|intervened|manipulated)_(?:on_)?(.+)|(.+?)_(?:is_|was_)?(?:set|do|intervened|manipulated|intervention)"
)
FLAGGED = ("1", "1.0", "true", "yes", "y", "x", "set")
NOT_FLAGGED = ("0", "0.0", "false", "no", "n", "-", "")

TWIN = 0.999  # correlation of what is hardly another quantity


def read_table(
    data: Any,
    target: str | None = None,
    ignore: Sequence[str] = (),
    keep: Sequence[str] = (),
) -> DataTable:
    """Return the numbers of a CSV file, a pandas frame or a mapping of columns.

    Left out and told in `notes`: columns of text, dates, identifiers, one value, or
    the same values as another one, and rows in which a value is missing. Text of two
    levels becomes 0 and 1. Units behind numbers are taken off. Experiments that lack
    only what was measured beside the target are kept apart, in `partial`. Columns of
    `keep` stay however much of them is missing, others if it is less than half.

    >>> table = read_table({"dose": [1, 2, 4], "run": ["a", "b", "c"], "y": [3, 5, 9]})
    >>> table.names
    ('dose', 'y')
    """
    frame, sets, wanted, notes = _open(data, target, ignore)
    numbers, labels = _read_columns(frame, wanted, notes, keep)
    rows = len(frame)
    values = (
        np.stack(list(numbers.values()), axis=1) if numbers else np.zeros((rows, 0))
    )
    missing = ~np.isfinite(values)
    usable = ~missing.any(axis=1)
    left = _sets_what_is_left(sets, tuple(numbers), notes)
    place = list(numbers).index(wanted) if wanted is not None else None
    partial = left & lack_measured(missing, *target_flags(sets, tuple(numbers)), place)
    dropped = int((~usable & ~partial).sum())
    if dropped:
        notes.append(
            f"{dropped} of {rows} rows were left out: a value is missing in them"
        )
    if partial.any():
        lacking = _names(np.array([*numbers])[missing[partial].any(axis=0)].tolist())
        what = "their outcomes count, and they tell nothing about causes"
        notes.append(f"{int(partial.sum())} of {rows} rows lack {lacking}: {what}")
    usable &= left
    for row in np.flatnonzero([wanted in found for found in sets]).tolist()[:1]:
        raise ValueError(
            f"row {row + 1}: the target {wanted!r} is among the variables that were "
            "set; drop the row, the target is never set"
        )
    if usable.sum() < 2:
        raise ValueError(
            f"the table has {int(usable.sum())} row(s) that can be used: give at "
            "least 2" + "".join(f"; {note}" for note in notes)
        )
    numbers = _telling(numbers, usable, wanted, notes)
    there = [found if part else {} for found, part in zip(sets, partial, strict=True)]
    partial &= _sets_what_is_left(there, tuple(numbers), notes)
    values = np.stack(list(numbers.values()), axis=1)
    flags, soft = target_flags(sets, tuple(numbers))
    labels = {name: both for name, both in labels.items() if name in numbers}
    more = (values[partial], flags[partial]) if partial.any() else None
    given = dropped, tuple(notes), labels, frame.attrs["told_by"], soft[usable], more
    return DataTable(tuple(numbers), values[usable], flags[usable], *given)


def read_cells(
    data: Any, target: str | None = None, ignore: Sequence[str] = ()
) -> tuple[Any, tuple[str, ...]]:
    """Return a frame of the columns that can be used, as numbers or texts of two
    levels, with what was set in a column `intervention_targets`, and what was left out.
    """
    frame, sets, wanted, notes = _open(data, target, ignore)
    numbers, labels = _read_columns(frame, wanted, notes)
    # Not as they were written: rows in another style may follow.
    plain = {name: each for name, each in numbers.items() if name not in labels}
    frame = frame[list(numbers)].assign(**plain).reset_index(drop=True)
    frame[TARGETS_COLUMN] = [write_targets(found) for found in sets]
    kept = _sets_what_is_left(sets, tuple(numbers), notes)
    return frame[kept].reset_index(drop=True), tuple(notes)


def _open(
    data: Any, target: str | None, ignore: Sequence[str]
) -> tuple[Any, list[dict[str, bool]], str | None, list[str]]:
    """Return the columns of variables, what was set in each row, the target's column,
    and what there is to tell so far.
    """
    frame, notes = _as_frame(data)
    known = list(frame.columns)
    ignored = [find_name(name, known, "ignored column") for name in ignore]
    # Rows that set a variable which is ignored are left out later, and told.
    sets, columns = _interventions(frame, ignored, notes)
    frame = frame.drop(columns=[*ignored, *columns])
    frame.attrs["told_by"] = tuple(columns)
    wanted = None
    if target is not None:
        numbers = [name for name in frame.columns if is_value(name)]
        if target not in frame.columns and 2 * len(numbers) > len(frame.columns):
            raise ValueError(
                f"names of columns are numbers ({', '.join(numbers[:3])}, ...): write "
                "names into a line above them, or, if each line is a variable, "
                "transpose the table"
            )
        wanted = find_name(target, list(frame.columns), "target")
        if wanted != target:
            notes.append(f"the target is the column {wanted!r}")
        # pandas numbers columns of one name.
        again = [n for n in frame.columns if re.sub(r"\.\d+$", "", n) == wanted != n]
        notes += [f"{name!r} was left out: it is the target again" for name in again]
        frame = frame.drop(columns=again)
    return frame, sets, wanted, notes


def _as_frame(data: Any) -> tuple[Any, list[str]]:
    pandas = import_extra("pandas", "tables")
    notes: list[str] = []
    if isinstance(data, str | os.PathLike):
        frame = read_frame(data)
        notes += frame.attrs["notes"]
    elif isinstance(data, Mapping):
        frame = pandas.DataFrame(dict(data))
    elif isinstance(data, pandas.DataFrame):
        frame = data
    else:
        raise TypeError(
            f"data is a {type(data).__name__}: give a pandas DataFrame, a mapping of "
            "columns, or the path of a CSV file"
        )
    named = [
        " ".join(map(str, name)) if isinstance(name, tuple) else str(name)
        for name in frame.columns
    ]
    frame = frame.set_axis([name.strip() for name in named], axis=1)
    twice = frame.columns[frame.columns.duplicated()].unique().tolist()
    if twice:
        notes.append(
            f"{_names(twice)}: several columns have this name; the first is used"
        )
        frame = frame.loc[:, ~frame.columns.duplicated()]
    for name in frame.columns if isinstance(data, str | os.PathLike) else ():
        first = re.sub(r"\.\d+$", "", name)  # pandas numbers the others
        if first != name and first in frame.columns:
            notes.append(f"{name!r} is another column {first!r} of the file")
    empty = [name for name in frame.columns if frame[name].isna().all()]
    # A column of interventions is empty while nothing was set yet.
    empty = [name for name in empty if plain_name(name) not in CERTAIN]
    if empty:
        notes.append(f"{_names(empty)} was left out: the column is empty")
    frame = frame.drop(columns=empty).dropna(how="all")
    if not len(frame):
        raise ValueError("the table has no rows: give at least 2")
    if units := units_below_header(frame):
        notes.append(f"the row below the header holds units ({units}): left out")
        frame = frame.iloc[1:]
    return frame, notes


def _names(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _interventions(
    frame: Any, ignored: Sequence[str], notes: list[str]
) -> tuple[list[dict[str, bool]], list[str]]:
    """Return the names set in each row (True: softly), and the columns that tell."""
    columns = list(frame.columns)
    flags = _flag_columns(frame, ignored)
    sets: list[dict[str, bool]] = [{} for _ in range(len(frame))]
    for flag, (variable, where) in flags.items():
        notes.append(f"column {flag!r} was read as whether {variable!r} was set")
        for row in np.flatnonzero(where):
            sets[row][variable] = False
    candidates = [name for name in columns if name not in (*ignored, *flags)]
    for name in sorted(candidates, key=lambda each: plain_name(each) not in CERTAIN):
        others = [each for each in columns if each != name]
        if plain_name(name) in CERTAIN:
            named = [
                read_targets(cell, others, f"row {row}: intervention target")
                for row, cell in enumerate(frame[name].tolist(), 1)
            ]
        else:
            possible = plain_name(name) in POSSIBLE
            named = _sets_if_names(frame[name].tolist(), others, name * possible)
            if named is None:
                continue
            if not possible:
                raise ValueError(
                    f"the cells of column {name!r} are names of other columns: if it "
                    f"tells what was set, did you mean {TARGETS_COLUMN!r} as its name? "
                    "If not, leave it out (ignore, or --ignore on the command line)"
                )
        if name != TARGETS_COLUMN:
            notes.append(f"column {name!r} was read as what was set in each row")
        both = zip(sets, named, strict=True)
        return [flagged | told for flagged, told in both], [*flags, name]
    return sets, list(flags)


def _flag_columns(
    frame: Any, ignored: Sequence[str]
) -> dict[str, tuple[str, np.ndarray]]:
    """Return the columns that flag that another one was set, with that one, and where
    they do.
    """
    variables = {plain_name(name): name for name in frame.columns}
    found: dict[str, tuple[str, np.ndarray]] = {}
    for name in frame.columns:
        told = FLAG.fullmatch(plain_name(name).rstrip("?"))
        variable = variables.get(told[1] or told[2]) if told else None
        if variable is None or name in ignored:
            continue
        cells = frame[name].astype(object).where(frame[name].notna(), "")
        words = cells.map(lambda cell: str(cell).strip().casefold())
        if words.isin((*FLAGGED, *NOT_FLAGGED)).all():
            found[name] = variable, words.isin(FLAGGED).to_numpy()
    return found


def _sets_if_names(
    cells: Sequence[Any], names: Sequence[str], possible: str
) -> list[dict[str, bool]] | None:
    """Return the names in the cells if all are names of columns, and some are. Where
    others are not, a column that may tell what was set (`possible`) is refused.
    """
    if not any(isinstance(cell, str | list | tuple | set) for cell in cells):
        return None
    sets, wrong = list[dict[str, bool]](), list[ValueError]()
    for row, cell in enumerate(cells, 1):
        try:
            sets.append(read_targets(cell, names, f"row {row}: intervention target"))
        except ValueError as error:  # a cell is something else
            wrong.append(error)
    if wrong and possible and any(sets):
        raise ValueError(
            f"column {possible!r} names columns that were set, but {wrong[0]}; correct "
            "it, or leave the column out (ignore, or --ignore on the command line)"
        )
    return sets if any(sets) and not wrong else None


def _sets_what_is_left(
    sets: Sequence[Mapping[str, bool]], names: Sequence[str], notes: list[str]
) -> np.ndarray:
    """Return which rows set only variables that are in the table."""
    gone = [sorted(set(found) - set(names)) for found in sets]
    missing = sorted({name for found in gone for name in found})
    if missing:
        count = sum(map(bool, gone))
        notes.append(f"{count} rows were left out: they set {_names(missing)}")
    return np.array([not found for found in gone], bool)


def _read_columns(
    frame: Any, target: str | None, notes: list[str], keep: Sequence[str] = ()
) -> tuple[dict[str, np.ndarray], dict[str, tuple[str, str]]]:
    numbers: dict[str, np.ndarray] = {}
    labels: dict[str, tuple[str, str]] = {}
    texts = frame.select_dtypes(exclude="number").map(plain_cell)
    decimal = frame.attrs.get("decimal_commas") or commas_are_decimal(
        texts[name] for name in texts.columns
    )
    frame = frame.assign(**{name: texts[name] for name in texts.columns})
    for name in frame.columns:
        try:
            column = read_column(frame[name], name, decimal)
        except ValueError as error:
            raise ValueError(f"column {name!r}: {error}") from None
        if column.numbers is None:
            if name == target:
                raise ValueError(f"the target {name!r} cannot be used: {column.note}")
            notes.append(f"{name!r} was left out: {column.note}")
            continue
        missing = np.isnan(column.numbers)
        if 2 * missing.sum() > len(missing) and name != target and name not in keep:
            share = f"{int(missing.sum())} of {len(missing)} values are missing"
            notes.append(f"{name!r} was left out: {share}")
            continue
        if column.note:
            notes.append(f"{name!r}: {column.note}")
        if column.labels:
            labels[name] = column.labels
        numbers[name] = column.numbers
    return numbers, labels


def _telling(
    numbers: Mapping[str, np.ndarray],
    usable: np.ndarray,
    target: str | None,
    notes: list[str],
) -> dict[str, np.ndarray]:
    """Return the columns that vary and do not repeat another one."""
    kept: dict[str, np.ndarray] = {}
    # The target comes first: of two equal columns, it is the one to keep.
    for name in sorted(numbers, key=lambda each: each != target):
        cells = numbers[name][usable]
        if np.ptp(cells) == 0:
            note = f"it is {cells[0]:g} in every row, which says nothing about causes"
            if name == target:
                raise ValueError(f"the target {name!r} cannot be used: {note}")
            notes.append(f"{name!r} was left out: {note}")
            continue
        same = [o for o, other in kept.items() if np.array_equal(other[usable], cells)]
        if same:
            notes.append(f"{name!r} was left out: it is equal to {same[0]!r}")
            continue
        outcome = kept[target][usable] if target in kept else 0 * cells
        alike = usable.sum() > LISTED and np.ptp(outcome) > 0
        if alike and abs(np.corrcoef(cells, outcome)[0, 1]) > TWIN:
            notes.append(
                f"{name!r} goes with {target!r} almost exactly: if it is the same "
                "measurement in another form, leave it out (ignore)"
            )
        kept[name] = numbers[name]
    return {name: kept[name] for name in numbers if name in kept}
