"""Tables of data: pandas frames and CSV files, and the rows seen so far in an
optimization.

A frame's column `intervention_targets` holds, for each row, the names that were set:
text with commas or semicolons between names, or a list or set; empty means
observational. `soft:dose` means that dose was shifted or scaled and kept its causes.
"""

import codecs
import io
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float

from acbo.mechanisms import plain_numbers
from acbo.named.names import FrozenMap, check_known, check_names, find_name, plain_name
from acbo.types import check_direction, import_extra, lower_is_better
from jaxrig.atomic import write_file
from jaxrig.notebook import Shown

TARGETS_COLUMN = "intervention_targets"


@dataclass(frozen=True, eq=False)
class DataTable:
    """Rows of data in the user's units: names of columns, and which cells were set.

    Cells of `soft` are among those of `intervened`: they were changed and not set.
    Values are double precision: what is read of a table with a large offset must be
    centered before it is rounded to what the device computes with.
    """

    names: tuple[str, ...]
    values: Float[np.ndarray, "n d"]
    intervened: Bool[np.ndarray, "n d"]
    dropped: int = 0  # rows that were left out because a value is missing
    notes: tuple[str, ...] = ()  # what was left out or read as something else
    labels: Mapping[str, tuple[str, str]] = FrozenMap()  # texts behind 0 and 1
    told_by: tuple[str, ...] = ()  # columns that tell what was set
    soft: Any = None  # as `intervened`; by default nothing was
    #: Values, NaN where not measured, and what was set, of more experiments: their
    #: target and settings are known.
    partial: tuple[np.ndarray, np.ndarray] | None = None

    def __post_init__(self) -> None:
        if self.soft is None:
            object.__setattr__(self, "soft", np.zeros(self.values.shape, bool))

    def index(self, name: str) -> int:
        """Return the column of a name; ValueError listing the names if unknown."""
        check_known(name, self.names)
        return self.names.index(name)


def frame_to_table(
    frame: Any, names: Sequence[str] | None = None, target: str | None = None
) -> DataTable:
    """Return the columns `names` (default: all) of a pandas frame, checked.

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
    for place in np.flatnonzero(values.max(0) == values.min(0)).tolist()[:1]:
        raise ValueError(
            f"column {order[place]!r} is {values[0, place]:g} in every row, which says "
            "nothing about causes: drop the column"
        )
    flags = soft = np.zeros(values.shape, bool)
    if TARGETS_COLUMN in frame.columns:
        cells = frame[TARGETS_COLUMN].tolist()
        sets = [
            read_targets(cell, order, f"row {row}: intervention target")
            for row, cell in enumerate(cells, 1)
        ]
        for row, found in enumerate(sets, 1):
            if target in found:
                raise ValueError(
                    f"row {row}: the target {target!r} is among the intervention "
                    "targets; drop the row, the target is never set"
                )
        flags, soft = target_flags(sets, order)
    return DataTable(order, values, flags, soft=soft)


def table_to_frame(table: DataTable) -> Any:
    """Return a pandas frame of the values and the names that were set in each row."""
    pandas = import_extra("pandas", "tables")
    values = plain_numbers(table.values)
    frame = pandas.DataFrame(values, columns=list(table.names))
    rows = zip(table.intervened, table.soft, strict=True)
    sets: list[dict[str, bool]] = [
        {table.names[i]: bool(soft[i]) for i in np.flatnonzero(row)}
        for row, soft in rows
    ]
    for found in sets:
        split = [name for name in found if re.search("[,;]", name)]
        if split and len(found) > 1:
            raise ValueError(
                f"name {split[0]!r} has a comma or semicolon, which separate the "
                "names of one row: rename the column"
            )
    frame[TARGETS_COLUMN] = [write_targets(found) for found in sets]
    return frame


def read_csv(
    path: str | os.PathLike[str],
    names: Sequence[str] | None = None,
    target: str | None = None,
) -> DataTable:
    """Read a CSV file with a header line, checked as by `frame_to_table`.

    Nothing is left out; `acbo.named.reading.read_table` reads what is less tidy.
    """
    frame = read_frame(path)
    try:
        return frame_to_table(frame, names, target)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from error


def read_frame(path: str | os.PathLike[str]) -> Any:
    """Return a CSV file as a pandas frame; commas, semicolons, tabs or bars separate.

    Lines that start with # before the header are comments; the last of them is the
    header if it has as many cells as the next line, and that one holds a number. Titles
    and groups of columns above the header are left out, as `frame.attrs` notes, which
    also has whether commas are decimal.
    """
    pandas = import_extra("pandas", "tables")
    try:
        whole = _decode(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from error
    # Cells may hold line breaks; the header often does.
    whole = QUOTED.sub(lambda cell: re.sub(r"\s*[\r\n]+\s*", " ", cell[0]), whole)
    lines = whole.splitlines(keepends=True)
    # Spreadsheets write separators into empty rows.
    lines = [line for line in lines if line.strip(" \t\r\n,;|")]
    start = top = next((n for n, x in enumerate(lines) if x[0] != "#"), len(lines))
    while _is_title(*lines[start : start + 2]):
        start += 1
    titles = [line.strip(" \t\r\n,;|") for line in lines[top:start]]
    notes = [f"left out above the header: {'; '.join(titles)}"] if titles else []
    first = _split_line("".join(lines[start : start + 1]))
    alike = start > 0 and len(_split_line(lines[start - 1])) == len(first)
    if alike and any(map(is_value, first)):
        start -= 1
        # Alone in its cell, it is the name of a column.
        lines[start] = re.sub(r"^#+\s*(?=[^,;|\s])", "", lines[start])
    text, header = "".join(lines[start:]), "".join(lines[start : start + 1])
    separator = max(SEPARATORS, key=_unquoted(header).count)
    if separator not in _unquoted(header):
        separator = r"\s+"
    # Where semicolons separate, commas are decimal, and maybe elsewhere too.
    commas = separator != "," and _has_decimal(",", text, separator)
    point = "," if commas or separator == ";" else "."
    options = {"sep": separator, "decimal": point, "skipinitialspace": True}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            # Without index_col, pandas takes the first cells of lines that are longer
            # than the header for names of rows: every column gets the next one's name.
            frame = pandas.read_csv(
                io.StringIO(text), na_values=MISSING, index_col=False, **options
            )
            frame.columns = frame.columns.str.strip()
            alone = commas and not _has_decimal(".", text, separator)
            frame.attrs |= {"notes": notes, "decimal_commas": alone}
            return frame
    except pandas.errors.ParserWarning:
        raise ValueError(
            f"{os.fspath(path)}: lines have more cells than the header: name every "
            "column, that of names of rows as well"
        ) from None
    except (pandas.errors.EmptyDataError, pandas.errors.ParserError) as error:
        if at := re.search(r"in line (\d+)", str(error)):
            error = f"{lines[start + int(at[1]) - 1].strip()!r} has too many cells"
        raise ValueError(f"{os.fspath(path)} is not a CSV table: {error}") from None


SEPARATORS = (",", ";", "\t", "|")
QUOTED = re.compile(r'(?<![^,;\t|\n])"[^"]*"(?=[,;\t|\r\n]|$)')  # whole cells


def _has_decimal(point: str, text: str, separator: str) -> bool:
    """Return whether a cell is a number with this decimal point, and not thousands."""
    point = re.escape(point)
    edge = r"\s" if separator == r"\s+" else rf"{re.escape(separator)}\r\n"
    number = rf"[-+]?(?:\d*{point}\d{{1,2}}|0{point}\d+|\d+{point}\d{{4,}})"
    return bool(re.search(rf"(?:^|[{edge}]) *{number} *(?:[{edge}]|$)", text))


def _unquoted(line: str) -> str:
    """Return a line with a letter for quoted names, which may hold separators."""
    return re.sub('"[^"]*"', "q", line)


def _split_line(line: str) -> list[str]:
    return _unquoted(line).split(max(SEPARATORS, key=_unquoted(line).count))


def _is_title(line: str = "", following: str = "") -> bool:
    """Return whether a line is above the header: it has fewer cells than the next one,
    which holds different names.
    """
    cells, names = (
        [cell.strip() for cell in _split_line(each) if cell.strip()]
        for each in (line, following)
    )
    named = len(names) == len(set(names)) and not any(map(is_value, names))
    return len(cells) < len(names) and named


def is_value(cell: str) -> bool:
    """Return whether a cell is a number or missing, and so not a name."""
    plain = cell.strip().lower()
    try:
        float(plain.replace(",", "."))
    except ValueError:
        return plain in ("", *MISSING)
    return True


MISSING = ("-", "--", "?", "n.a.", "na", "missing")  # beside those that pandas knows


def _decode(data: bytes) -> str:
    """Return the text of a file; spreadsheets write three different ways."""
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return data.decode("utf-16")
    if b"\0" in data:
        raise ValueError("the file is not text: save the table as CSV")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


# A number and more, such as <0.1 or 12 mg, but not 1/h.
_AMOUNT = re.compile(r"[<>~]?\s*[-+]?\d[\d.,]*\s*([^\W\d].*)?")


def units_below_header(frame: Any) -> str:
    """Return the units in the first row of a frame, if columns of numbers have none
    there but words; else "".
    """
    given = frame.iloc[0].dropna()
    if len(frame) < 3 or not all(isinstance(cell, str) for cell in given):
        return ""
    known = frame.iloc[1:].notna()
    numbers = frame.iloc[1:].map(lambda cell: is_value(str(cell))) & known
    numeric = frame.columns[2 * numbers.sum() > known.sum()]
    words = [cell.strip() for name, cell in given.items() if name in numeric]
    if any(is_value(word) or _AMOUNT.fullmatch(word) for word in words):
        return ""
    return ", ".join(dict.fromkeys(words))


def write_csv(path: str | os.PathLike[str], table: DataTable) -> None:
    """Write the table as a CSV file that `read_csv` reads back equal."""
    write_file(path, table_to_frame(table).to_csv(index=False))


def observed_ranges(table: DataTable) -> dict[str, tuple[float, float]]:
    """Return the smallest and largest value of each column, by name."""
    low, high = plain_numbers(table.values.min(0)), plain_numbers(table.values.max(0))
    return {name: (float(low[i]), float(high[i])) for i, name in enumerate(table.names)}


def _numbers(column: Any, name: str) -> Float[np.ndarray, " n"]:
    pandas = import_extra("pandas", "tables")
    if isinstance(column, pandas.DataFrame):
        raise ValueError(f"column {name!r} is a duplicate: names must be unique")
    found = pandas.to_numeric(column, errors="coerce")
    numbers = found.to_numpy(np.float64, na_value=np.nan)
    with np.errstate(over="ignore"):  # the device computes in single precision
        usable = np.isfinite(numbers.astype(np.float32))
    for row in np.flatnonzero(~usable).tolist()[:1]:
        cell = column.iloc[row]
        if isinstance(cell, str):
            raise ValueError(
                f"row {row + 1}, column {name!r} is {cell!r}: it must be a number; "
                "leave out columns of text (--ignore on the command line)"
            )
        raise ValueError(
            f"row {row + 1}, column {name!r} is {cell}: fill it or drop the row"
        )
    return numbers


_SOFT = re.compile(r"^\s*soft\s*:\s*", re.I)
_LIST = re.compile(r"\s*(?:(?:frozen)?set)?\(?[\[({](.*?)[\])}]\)?\s*")
# What stands for nothing in a cell of targets.
NOTHING = (
    *("", "none", "no", "nothing", "-", "control", "baseline", "natural", "0"),
    *("obs", "observed", "observation", "observational", "false"),
)


def read_targets(cell: Any, names: Sequence[str], what: str) -> dict[str, bool]:
    """Return the columns named in a cell such as `dose`, `dose=2; soft:heat` or a list,
    and whether softly; ValueError, naming `what`, for one that is not a column.
    """
    found = {}
    for word in _split_targets(cell, names):
        if word not in names and str(word).casefold() in NOTHING:
            continue
        bare = re.sub(r"^do\s*\((.*)\)$", r"\1", str(word))
        marked = None if bare in names else _SOFT.match(bare)
        bare = bare[marked.end() :] if marked else bare
        if bare not in names:
            bare = bare.split("=")[0].strip()
        if bare.casefold() in ("1", "true", "yes") and bare not in names:
            raise ValueError(
                f"{what} is {word!r}, which says that something was set, but not what: "
                "write the names of the variables into this column"
            )
        column = find_name(bare, names, what)
        # What was set follows no cause, whatever else was done to it.
        found[column] = bool(marked) and found.get(column, True)
    return found


def _split_targets(cell: Any, names: Sequence[str]) -> list[Any]:
    """Return the words of one cell: text, a list or set, or nothing (None, NaN, "")."""
    empty = cell is None or cell is import_extra("pandas", "tables").NA
    if empty or (isinstance(cell, float) and np.isnan(cell)):
        return []
    if not isinstance(cell, str):
        # A list, or a column of bare numbers, whose names are text.
        return list(cell) if isinstance(cell, Iterable) else [f"{cell:g}"]
    if cell in names:
        return [cell]
    if listed := _LIST.fullmatch(cell):  # of Python, as pandas writes it into a file
        cell = re.sub("['\"]", "", listed[1])
    words = []
    for part in map(str.strip, re.split("[,;]", cell)):  # what we write ourselves
        pieces = re.split(r"[+&|/]|\band\b", part)
        bare = plain_name(_SOFT.sub("", part))  # one name may hold such a word too
        whole = len(pieces) > 1 and bare in map(plain_name, names)
        words += [part] if whole else pieces
    return [word.strip() for word in words if word.strip()]


def write_targets(found: Mapping[str, bool]) -> str:
    """Return the names of one row as text that is read back."""
    return "; ".join("soft:" * soft + name for name, soft in sorted(found.items()))


def target_flags(
    sets: Sequence[Mapping[str, bool]], names: Sequence[str]
) -> tuple[Bool[np.ndarray, "n d"], Bool[np.ndarray, "n d"]]:
    """Return which cells were set or changed, and which of them were only changed."""
    acted, soft = (np.zeros((len(sets), len(names)), bool) for _ in range(2))
    for row, found in enumerate(sets):  # most rows set nothing
        for name in found.keys() & set(names):
            place = row, names.index(name)
            acted[place], soft[place] = True, found[name]
    return acted, soft


def lack_measured(
    missing: Bool[np.ndarray, "n d"],
    flags: Bool[np.ndarray, "n d"],
    soft: Bool[np.ndarray, "n d"],
    target: int | None,
) -> Bool[np.ndarray, " n"]:
    """Return which rows are experiments that lack only what was measured beside the
    target; without a target, none.
    """
    if target is None:
        return np.zeros(len(flags), bool)
    needed = flags.copy()
    needed[:, target] = True
    known = flags.any(axis=1) & ~soft.any(axis=1) & ~(missing & needed).any(axis=1)
    return np.asarray(known & missing.any(axis=1))


@dataclass(frozen=True, eq=False)
class Experiments(Shown):
    """The rows seen so far, which cells were set, and which way to move the target.

    `ranges` names the variables that may be set and how far; the target is never one.
    """

    shown_by: ClassVar[str] = "acbo.pictures.charts:show_experiments"
    values: np.ndarray
    intervened: np.ndarray
    names: tuple[str, ...]
    target: str
    ranges: Mapping[str, tuple[float, float]]
    direction: str = "MINIMIZE"
    checked: InitVar[bool] = False  # a `DataTable` holds finite numbers already

    def __post_init__(self, checked: bool) -> None:
        values = np.asarray(self.values, np.float64)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "intervened", np.asarray(self.intervened, bool))
        object.__setattr__(self, "names", check_names(self.names))
        object.__setattr__(self, "direction", check_direction(self.direction))
        shape = (len(values), len(self.names))
        if values.shape != shape or self.intervened.shape != shape:
            raise ValueError(
                f"values {values.shape} and intervened {self.intervened.shape} "
                f"need one column for each of the {len(self.names)} names"
            )
        self._check_names()
        bad = np.zeros(0) if checked else ~np.isfinite(values).all(axis=1)
        if bad.any():
            raise ValueError(f"row {int(np.argmax(bad)) + 1} is not finite")

    def _check_names(self) -> None:
        check_known(self.target, self.names, "target")
        if self.target in self.ranges:
            raise ValueError(f"the target {self.target!r} must not have a range")
        if not self.ranges:
            raise ValueError("ranges is empty: name the variables that may be set")
        for name, (low, high) in self.ranges.items():
            check_known(name, self.names, "ranges: variable")
            if not (np.isfinite(low) and np.isfinite(high) and low <= high):
                raise ValueError(f"range of {name!r}: {low} to {high} is not a range")

    @property
    def column(self) -> int:
        """Return the column of the target."""
        return self.names.index(self.target)

    @property
    def sign(self) -> float:
        """Return the sign that makes lower outcomes better: 1 or -1."""
        return lower_is_better(self.direction)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return low and high by column (0 where not settable), and what may be set."""
        allowed = np.array([name in self.ranges for name in self.names])
        ends = [self.ranges.get(name, (0.0, 0.0)) for name in self.names]
        low, high = np.array(ends, np.float64).T
        return low, high, allowed

    def add(self, row: Mapping[str, float], setting: Sequence[str]) -> "Experiments":
        """Return a copy with one more row, in which `setting` names what was set."""
        missing = [name for name in self.names if name not in row]
        if missing:
            raise ValueError(f"the row has no value for: {', '.join(missing)}")
        for name in setting:
            check_known(name, self.names, "variable that was set")
        value: Any = np.array([[row[name] for name in self.names]], np.float64)
        flags = np.array([[name in setting for name in self.names]])
        return replace(
            self,
            values=np.concatenate([self.values, value]),
            intervened=np.concatenate([self.intervened, flags]),
        )
