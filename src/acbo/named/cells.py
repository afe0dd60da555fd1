"""What one column of a laboratory's table holds: numbers as people write them, levels,
dates, or names of the rows.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from acbo.named.names import plain_name
from acbo.named.tables import MISSING
from acbo.types import import_extra

# Whole numbers under the first names are identifiers if all differ; under the others,
# which may be quantities too, if they count the rows.
CERTAIN_IDENTIFIERS = ("id", "uid", "uuid", "subject", "patient", "participant")
IDENTIFIERS = (
    *CERTAIN_IDENTIFIERS,
    *("index", "idx", "row", "run", "no", "nr", "number", "sample", "#", "record"),
    *("experiment", "exp", "batch", "name", "label", "key"),
)
NUMBERED = ("_id", "_no", "_nr")  # endings of certain identifiers
REPEATS = ("replicate", "replica", "rep", "repeat", "repetition")
# Two levels of text in their natural order, which becomes 0 and 1.
LEVELS = (
    *(("no", "yes"), ("n", "y"), ("false", "true"), ("off", "on"), ("low", "high")),
    *(("control", "treated"), ("absent", "present"), ("without", "with"), ("-", "+")),
    *(("fail", "pass"), ("bad", "good"), ("old", "new"), ("small", "large")),
)
DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}( .*)?"
    r"|\d{1,2}:\d{2}(:\d{2})?|\d{4}/\d{1,2}/\d{1,2}( .*)?"
    r"|\d{1,2}\.?[ -][A-Za-z]{3,9}\.?[ -]\d{2,4}( .*)?"
    r"|[A-Za-z]{3,9}\.? \d{1,2},? \d{4}( .*)?"
)
DATES = ("date", "datum", "timestamp")  # numbers under these count days or seconds
# A number, with a currency before it or its spread and unit behind it.
QUANTITY = re.compile(
    r"([$€£¥]?)\s*([-+]?(?=[.,]?\d)[\d.,]+(?:[eE][-+]?\d+)?)"
    r"\s*((?:±|\+/?-)\s*[\d.,]+)?\s*([^\d\s][^\d]*)?"
)
# Numbers as people write them, and how: thousands by commas; decimal commas, with or
# without thousands by points.
POWER = r"([eE][-+]?\d+)?"
NUMERALS = (
    (
        re.compile(r"[-+]?([1-9]\d{0,2}(,\d{3})+|\d+)(\.\d*)?" + POWER),
        ",",
        "separate thousands",
    ),
    (
        re.compile(r"(?=.*\d)[-+]?(\d{1,3}(\.\d{3})+|\d*)(,\d+)?" + POWER),
        ".",
        "are decimal",
    ),
)
GROUPED = re.compile(r"[-+]?\d{1,3}(\.\d{3})*")
MOST_UNITS = 3  # more kinds of endings are not units, but text
LISTED = 4  # of the levels of a category, in a sentence


# Spaces, also those that do not break, separate thousands.
SPACED = re.compile(r"[-+]?\d{1,3}(\s\d{3})+([.,]\d*)?")


def plain_cell(cell: Any) -> Any:
    """Return text without spaces around it or between thousands, and with the minus
    sign of computers; anything else as it is.
    """
    if not isinstance(cell, str):
        return cell
    plain = cell.strip().replace("\N{MINUS SIGN}", "-")
    return re.sub(r"\s", "", plain) if SPACED.fullmatch(plain) else plain


class Column(NamedTuple):
    """Numbers of one column (NaN: missing), or why it has none."""

    numbers: np.ndarray | None
    note: str = ""
    labels: tuple[str, str] | None = None  # of 0 and 1


def read_column(column: Any, name: str, decimal: bool) -> Column:
    """Return the numbers of a column, or why there are none; `decimal` says what commas
    are that may be either.
    """
    pandas = import_extra("pandas", "tables")
    if odd := _odd_type(pandas.api.types, column):
        return Column(None, odd)
    if decimal and _is_thousands(column):
        column = column.str.replace(".", "")
        found = read_column(column, name, decimal)
        note = "points in its numbers separate thousands"
        return found._replace(note="; ".join(filter(None, (note, found.note))))
    numbers = _usable(pandas.to_numeric(column, errors="coerce").to_numpy(np.float64))
    given, plain = column.notna().to_numpy(), plain_name(name)
    if all(isinstance(cell, bool | np.bool_) for cell in column[given]):
        return Column(numbers, "", ("False", "True"))
    if plain in REPEATS and not (numbers % 1 > 0).any():
        return Column(None, "it numbers runs of one experiment")
    words = [str(cell) for cell in column[given & np.isnan(numbers)]]
    if not words:
        return _read_numbers(plain, numbers)
    cells = [str(cell) for cell in column[given]]
    if all(map(DATE.fullmatch, cells)):
        return Column(None, "it holds dates or times")
    # Samples 1a, 1b and 2a are no quantities.
    most = 1 if _is_usual(plain) else MOST_UNITS
    if found := _read_quantities(cells, given, decimal, most):
        return found
    if _names_rows(plain, words, cells):
        return Column(None, "it numbers or names the rows")
    return _read_text(cells, given)


def _is_thousands(column: Any) -> bool:
    """Return whether all points of a column of text may separate thousands, and do if
    commas are decimal.
    """
    words = column.dropna()
    grouped = [isinstance(cell, str) and GROUPED.fullmatch(cell) for cell in words]
    return all(grouped) and any("." in word for word in words)


def _odd_type(types: Any, column: Any) -> str:
    """Return why a column of a frame's own types cannot be used, if so."""
    if types.is_datetime64_any_dtype(column) or str(column.dtype)[:6] == "period":
        return "it holds dates"
    if types.is_complex_dtype(column):
        return "it holds complex numbers"
    if types.is_timedelta64_dtype(column):
        return "it holds durations; to use it, write numbers"
    return ""


def _read_numbers(plain: str, numbers: np.ndarray) -> Column:
    """Return a column of nothing but numbers, unless its name says what it numbers."""
    if plain in DATES:
        return Column(None, "it holds dates")
    if _numbers_rows(plain, numbers):
        return Column(None, "it numbers or names the rows")
    counts = len(numbers) > LISTED and (np.diff(numbers) == 1).all()
    note = "it counts the rows; if that is all it does, leave it out (ignore)"
    return Column(numbers, note if counts else "")


def _usable(numbers: np.ndarray) -> np.ndarray:
    """Return NaN for what the single precision of the device has no number for."""
    with np.errstate(over="ignore"):
        return np.where(np.isfinite(numbers.astype(np.float32)), numbers, np.nan)


def _is_usual(plain: str) -> bool:
    """Return whether a name is one that identifiers have."""
    return plain in IDENTIFIERS or plain.endswith(NUMBERED) or plain[:7] == "unnamed"


def _numbers_rows(plain: str, numbers: np.ndarray) -> bool:
    if not _is_usual(plain) or len(numbers) < 2:
        return False
    if plain in CERTAIN_IDENTIFIERS or plain.endswith(NUMBERED):
        known = numbers[~np.isnan(numbers)]
        return len(np.unique(known)) == len(known) and not (known % 1).any()
    return bool((np.diff(numbers) == 1).all())


def _names_rows(plain: str, words: Sequence[str], cells: Sequence[str]) -> bool:
    return (
        (_is_usual(plain) or len(words) > 2)
        and len(set(map(str.casefold, cells))) == len(cells)
        and not any(map(QUANTITY.fullmatch, words))
        and not any(map(DATE.fullmatch, words))
    )


def commas_are_decimal(columns: Iterable[Any]) -> bool:
    """Return whether the commas of any of these columns can only be decimal: one hand
    wrote the table, so those of others are not thousands.
    """
    return any(
        _ways_to_read(map(QUANTITY.fullmatch, column.dropna().map(str))) == NUMERALS[1:]
        for column in columns
    )


def _ways_to_read(parts: Iterable[re.Match[str] | None]) -> tuple[Any, ...]:
    """Return the ways to read numbers of which some have commas."""
    told = [part[2] for part in parts if part]
    if not any("," in word for word in told):
        return ()
    # 1.125 beside 2,5 may be either; beside 1.200,5 its point separates thousands.
    points = any("." in w for w in told) and not any(
        "." in w and "," in w for w in told
    )
    return tuple(
        way
        for way in NUMERALS
        if all(map(way[0].fullmatch, told)) and not (points and way[1] == ".")
    )


def _read_quantities(
    cells: Sequence[str], given: np.ndarray, decimal: bool, most_units: int
) -> Column | None:
    """Return numbers without their units and spreads, if half of the cells or more are
    numbers; other cells count as missing, and the note tells.
    """
    known = [cell.lower() not in ("", *MISSING) for cell in cells]
    parts = [QUANTITY.fullmatch(cell) for cell in cells]
    ways, notes = _ways_to_read(parts), list[str]()
    drop = (ways[-1] if decimal else ways[0])[1] if ways else ""
    read = _usable(np.array([_number(part, drop, bool(ways)) for part in parts]))
    endings = [(part[1] or part[4] or "").strip() if part else "" for part in parts]
    there = np.isfinite(read)
    units = Counter(e for e, ok in zip(endings, there, strict=True) if ok and e)
    if units and 2 * units.total() < there.sum():  # numbers, and remarks on a few
        read[[bool(ending) for ending in endings]] = np.nan
        units.clear()
    there = np.isfinite(read)
    if not there.any() or 2 * there.sum() < sum(known) or len(units) > most_units:
        return None
    if len(units) > 1:
        if there.sum() < sum(known):
            return None
        raise ValueError(
            f"its values are in different units ({', '.join(sorted(units))}): convert "
            "them to one, or leave the column out (ignore, or --ignore)"
        )
    told = [part for part, ok in zip(parts, there, strict=True) if ok and part]
    if ways:
        what = next(way[2] for way in ways if way[1] == drop)
        example = next(part[2] for part in told if "," in part[2])
        shown = f"{example} is {_number(QUANTITY.fullmatch(example), drop, True):g}"
        notes.append(f"commas in its numbers {what}: {shown}")
    if units:
        notes.append(f"the unit {next(iter(units))} was taken off its values")
    if spreads := [part[3] for part in told if part[3]]:
        notes.append(f"spreads such as {spreads[0]} were taken off its values")
    odd = [c for c, k, ok in zip(cells, known, there, strict=True) if k and not ok]
    numbers = np.full(len(given), np.nan)
    numbers[given] = read
    return Column(numbers, "; ".join([*notes, *_not_numbers(odd)]))


def _number(part: re.Match[str] | None, drop: str, commas: bool) -> float:
    text = part[2] if part else ""
    try:
        return float(text.replace(drop, "").replace(",", ".") if commas else text)
    except ValueError:
        return np.nan


def _not_numbers(odd: Sequence[str]) -> list[str]:
    """Return what is told of cells that are no numbers, among others that are."""
    if not odd:
        return []
    kinds = list(dict.fromkeys(odd))
    shown = ", ".join(map(repr, kinds[:LISTED])) + (", ..." if kinds[LISTED:] else "")
    part = QUANTITY.fullmatch(kinds[0])
    what = "too large a number" if part and not part[4] else "not a number"
    verb = f"is {what} and counts" if len(kinds) == 1 else "are not numbers and count"
    note = f"{shown} {verb} as missing"
    if any(word[0] in "<>\u2264\u2265" for word in kinds):
        note += "; to keep rows beyond a limit of detection, write a number for it"
    return [note]


def _read_text(words: Sequence[str], given: np.ndarray) -> Column:
    """Return text of two levels as 0 and 1, or why it cannot be used."""
    parts = [QUANTITY.fullmatch(word) for word in words]
    if all(part and not part[4] for part in parts):
        return Column(None, f"{words[0]} is too large a number")
    # "Yes" and "yes" are one level, written as it is first.
    levels = sorted({word.casefold(): word for word in reversed(words)}.values())
    if len(levels) == 2:
        return _read_levels(words, (levels[0], levels[1]), given)
    if len(levels) == 1:
        return Column(None, f"it is {levels[0]!r} wherever there is something")
    shown = ", ".join(levels[:LISTED]) + (", ..." if len(levels) > LISTED else "")
    return Column(
        None,
        f"it is text of {len(levels)} levels ({shown}); to use it, write numbers, or "
        "one column of 0 and 1 for each level",
    )


def _read_levels(
    words: Sequence[str], levels: tuple[str, str], given: np.ndarray
) -> Column:
    low, high = levels
    if any((high.casefold(), low.casefold()) == pair for pair in LEVELS):
        low, high = high, low
    numbers = np.full(len(given), np.nan)
    numbers[given] = [float(word.casefold() == high.casefold()) for word in words]
    return Column(numbers, f"{low!r} was read as 0, {high!r} as 1", (low, high))
