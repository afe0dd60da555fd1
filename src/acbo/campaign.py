"""A campaign of experiments by ask and tell, kept in a folder.

`campaign.toml` holds the problem, `rows.csv` every row told, which a person can open
and edit, and `asked.jsonl` what was asked for and why. All are written whole, under a
lock: a process that is killed loses nothing that was told, and two may tell at once.
"""

import json
import os
import tomllib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from acbo.named.reading import find_name, read_cells, read_table
from acbo.named.tables import TARGETS_COLUMN, DataTable, observed_ranges, read_frame
from acbo.policy.problem import Problem, as_list, make_problem
from acbo.policy.suggest import Ask, Suggestion, Trial, suggest_for
from acbo.types import Range, as_float, import_extra, in_full, signed
from jaxrig.atomic import locked, write_file
from jaxrig.settings import known_only

PROBLEM, ROWS, ASKED, LOCK = "campaign.toml", "rows.csv", "asked.jsonl", ".lock"
NUMBER, TOLD = "experiment_number", "told_at"
OWN = (NUMBER, TOLD, TARGETS_COLUMN)  # columns of rows.csv beside the data
FAR = 3.0  # widths of the values seen so far: farther away may be a slip of the pen
SAME = 0.01  # of a range: values told so near to those asked for are the same


@dataclass(frozen=True)
class Campaign:
    """A campaign in a folder; `Campaign.create` starts one.

    `ask` returns the same experiments until they are told or `again` is given.
    """

    folder: Path

    def __init__(self, folder: str | os.PathLike[str]):
        object.__setattr__(self, "folder", Path(folder))
        if not (self.folder / PROBLEM).is_file():
            raise ValueError(
                f"{self.folder} holds no campaign ({PROBLEM} is missing): start one "
                "with `jaxrig causal campaign` or acbo.Campaign.create"
            )

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        data: Any,
        target: str,
        maximize: bool | None = None,
        **options: Any,
    ) -> "Campaign":
        """Start a campaign from a first table; the options are those of `suggest`.

        Ranges that are not given are those of the first table, and stay so.
        """
        folder = Path(folder)
        if (folder / PROBLEM).exists():
            raise ValueError(
                f"{folder} holds a campaign already: choose another folder"
            )
        problem = make_problem(target, maximize, **options)
        cells, left_out = read_cells(data, target, problem.ignore)
        for name in (NUMBER, TOLD):
            if name in cells.columns:
                raise ValueError(f"rename the column {name!r}: the campaign writes one")
        table = read_table(cells, find_name(target, list(cells.columns), "target"))
        try:
            problem = problem.for_columns(table.names)
        except ValueError as error:  # maybe about a column that was left out
            why = (str(error), *left_out, *table.notes)
            raise ValueError("; ".join(why)) from error
        problem.regions(table.names)  # every name of a region is a column
        names = problem.settable or [n for n in table.names if n != problem.target]
        seen = observed_ranges(table)
        ranges = {name: problem.ranges.get(name, seen[name]) for name in names}
        problem = replace(problem, ranges=ranges, settable=names, ignore=())
        cells[NUMBER], cells[TOLD] = "", ""
        write_file(folder / ROWS, cells.to_csv(index=False))
        write_file(folder / ASKED, "")
        notes = "".join(f"# {note}\n" for note in left_out)
        write_file(folder / PROBLEM, notes + _as_toml(problem))
        return cls(folder)

    @property
    def problem(self) -> Problem:
        """Return the problem, as `campaign.toml` states it now."""
        path = self.folder / PROBLEM
        try:
            given = tomllib.loads(path.read_text(encoding="utf-8"))
            known_only(given, [each.name for each in fields(Problem)], "key")
            for name in {"target", "direction"} - given.keys():
                raise ValueError(f"the key {name!r} is missing: add it")
            return Problem(**given)
        except (tomllib.TOMLDecodeError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from error

    def read(self) -> DataTable:
        """Return every row that can be used."""
        cells = self._cells().drop(columns=[NUMBER, TOLD], errors="ignore")
        return read_table(cells, self.problem.target, keep=self.problem.settable)

    def suggest(self, **changes: Any) -> Suggestion:
        """Return what to do next with the rows as they are, without asking for it."""
        known_only(changes, [each.name for each in fields(Problem)], "option")
        return suggest_for(replace(self.problem, **changes), self.read())

    def asked(self) -> list[Ask]:
        """Return everything that was asked for, in order."""
        path, found = self.folder / ASKED, []
        try:
            for line in path.read_text(encoding="utf-8").splitlines():
                each = json.loads(line)
                trials = tuple(Trial(**trial) for trial in each["trials"])
                notes = tuple(each["notes"])
                found.append(Ask(**each | {"trials": trials, "notes": notes}))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path}, line {len(found) + 1}: {error}: restore the file, or leave "
                "an empty one, which forgets what was asked for"
            ) from error
        return found

    def told(self) -> list[dict[str, Any]]:
        """Return the rows told since the start, by column, without missing cells."""
        cells = self._cells()
        return list(map(_known, cells[cells[TOLD].notna()].to_dict("records")))

    def open_trials(self) -> tuple[Trial, ...]:
        """Return the experiments asked for last that were not told."""
        asked = self.asked()
        answered = {row.get(NUMBER) for row in self.told()}
        last = asked[-1].trials if asked else ()
        return tuple(trial for trial in last if trial.number not in answered)

    def ask(self, again: bool = False, **changes: Any) -> Ask:
        """Return the next experiments; those asked for before, unless all are told.

        With `again`, think again about all rows, and forget what is open. Changes are
        of the problem's fields, for this time: `batch=3`.
        """
        with locked(self.folder / LOCK):
            asked, still = self.asked(), self.open_trials()
            if still and not again:
                return replace(asked[-1], trials=still)
            found = self.suggest(**changes)
            number = sum(len(each.trials) for each in asked)
            ask = found.as_ask(number, _now())
            plain = [json.dumps(asdict(x), ensure_ascii=False) for x in (*asked, ask)]
            write_file(self.folder / ASKED, "\n".join((*plain, "")))
            return ask

    def tell(
        self,
        values: Mapping[str, Any],
        settings: Iterable[str] | None = None,
        number: int | None = None,
    ) -> int:
        """Add a row: what was measured, and the names of what was set.

        Without `settings` the row answers an open experiment, that of this `number` if
        given; what it sets need not be repeated. With `settings=()` nothing was set.
        What looks wrong is kept, with a warning. Returns how many rows were told.
        """
        with locked(self.folder / LOCK):
            frame = self._cells()
            columns = [name for name in frame.columns if name not in OWN]
            row = {find_name(name, columns): cell for name, cell in values.items()}
            settings = None if settings is None else as_list(settings)
            trial = self._answered(row, settings, number, columns)
            table = self.read()
            if trial is not None:
                row = self._as_asked(trial, row, table)
                settings = list(trial.settings)
            names = [find_name(name, columns) for name in settings or ()]
            row = _check_row(row, names, table, self.problem)
            row[TARGETS_COLUMN] = "; ".join(names)
            row[NUMBER] = "" if trial is None else trial.number
            row[TOLD] = _now()
            self._write([*frame.to_dict("records"), row], list(frame.columns))
            return int(frame[TOLD].notna().sum()) + 1

    def undo(self) -> dict[str, Any]:
        """Take back the row told last, and return it."""
        with locked(self.folder / LOCK):
            frame = self._cells()
            told = np.flatnonzero(frame[TOLD].notna())
            if not len(told):
                raise ValueError("no row was told yet: there is nothing to take back")
            rows = frame.to_dict("records")
            gone = rows.pop(int(told[-1]))
            self._write(rows, list(frame.columns))
            return _known(gone)

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write a page of how the campaign stands; by default into its folder."""
        from acbo.pictures.campaign import campaign_page

        page = campaign_page(
            self.suggest(), self.asked(), self.told(), self.open_trials()
        )
        return page.write(path or self.folder / "report.html")

    def _cells(self) -> Any:
        frame = read_frame(self.folder / ROWS)
        # Whoever edits the file may have no use for these.
        missing = [name for name in OWN if name not in frame.columns]
        return frame.reindex(columns=[*frame.columns, *missing])

    def _write(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
        pandas = import_extra("pandas", "tables")
        frame = pandas.DataFrame(rows, columns=list(columns))
        numbers = pandas.to_numeric(frame[NUMBER], errors="coerce")
        frame[NUMBER] = numbers.astype("Int64")
        write_file(self.folder / ROWS, frame.to_csv(index=False))

    def _answered(
        self,
        row: Mapping[str, Any],
        settings: Iterable[str] | None,
        number: int | None,
        columns: Sequence[str],
    ) -> Trial | None:
        """Return the open experiment that a row answers, if it answers one."""
        still = self.open_trials()
        near = lambda trial: _distance(trial, row, self.problem.ranges)
        if number is not None:
            asked = [trial for each in self.asked() for trial in each.trials]
            match = [trial for trial in asked if trial.number == number]
            if not match:
                raise ValueError(
                    f"experiment {number} was not asked for; open are: "
                    f"{', '.join(str(trial.number) for trial in still) or 'none'}"
                )
            asked_to = sorted(match[0].settings)
            given = asked_to if settings is None else settings
            if sorted(find_name(name, columns) for name in given) != asked_to:
                raise ValueError(
                    f"experiment {number} sets {', '.join(asked_to)}, and told is that "
                    f"{', '.join(given) or 'nothing'} was set: drop one of the two"
                )
            if any(row.get(NUMBER) == number for row in self.told()):
                warnings.warn(
                    f"experiment {number} was told before: kept as another run",
                    stacklevel=3,
                )
            return match[0]
        if settings is None:
            if not still:
                raise ValueError(
                    "no experiment is open: ask first, or say what was set (--set "
                    "NAMES, or --observed if nothing was; settings=[...] in Python)"
                )
            return min(still, key=near)
        names = {find_name(name, columns) for name in settings}
        match = [trial for trial in still if set(trial.settings) == names]
        if names and still and not match:
            warnings.warn(
                f"{', '.join(sorted(names))} was not what was asked for "
                f"(experiment {still[0].number} is still open): kept",
                stacklevel=3,
            )
        return min(match, key=near, default=None)

    def _as_asked(
        self, trial: Trial, row: Mapping[str, Any], table: DataTable
    ) -> dict[str, Any]:
        """Return the row with what the trial set, where the row does not say it."""
        found = dict(row)
        for name, value in trial.settings.items():
            labels = table.labels.get(name)
            text = labels[round(value)] if labels else value
            given = found.setdefault(name, text)
            if labels or given == text:
                continue
            low, high = self.problem.ranges[name]
            away = abs(as_float(given, f"value of {name!r}") - value)
            if away > SAME * (high - low):
                warnings.warn(
                    f"experiment {trial.number} asked for {name} = {in_full(value)}, "
                    f"told is {given}: kept as told",
                    stacklevel=3,
                )
        return found


def _known(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells of a row that are not missing, which are NaN."""
    return {name: cell for name, cell in row.items() if cell == cell}


def show_row(row: Mapping[str, Any]) -> str:
    """Return what a row set and what was measured, in words."""
    names = str(row.get(TARGETS_COLUMN, "")).split("; ")
    cells = {name: cell for name, cell in row.items() if name not in OWN}
    shown = {n: c if isinstance(c, str) else in_full(c) for n, c in cells.items()}
    done = [f"{name} = {shown[name]}" for name in names if name in shown]
    seen = [f"{name} = {cell}" for name, cell in shown.items() if name not in names]
    return f"set {', '.join(done) or 'nothing'}; measured {', '.join(seen)}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _distance(
    trial: Trial, row: Mapping[str, Any], ranges: Mapping[str, Range]
) -> tuple[float, int]:
    """Return how far a row is from what a trial sets, in widths; the first trial wins
    where the row does not say.
    """
    away = 0.0
    for name, value in trial.settings.items():
        low, high = ranges[name]
        if isinstance(row.get(name), int | float):
            away += abs(row[name] - value) / (high - low)
    return away, trial.number


def _check_row(
    row: Mapping[str, Any],
    settings: Sequence[str],
    table: DataTable,
    problem: Problem,
) -> dict[str, Any]:
    """Return the cells of a row as numbers or labels; warn of what looks wrong."""
    target = problem.target
    if target in settings:
        raise ValueError(f"the target {target!r} is never set")
    for name in (target, *settings):
        if name not in row:
            raise ValueError(f"the row has no value of {name!r}")
    found: dict[str, Any] = {}
    for name, cell in row.items():
        labels = table.labels.get(name)
        if labels:
            texts = {"0": labels[0], "1": labels[1]}
            texts |= {text.casefold(): text for text in labels}
            known = cell.casefold() if isinstance(cell, str) else f"{cell:g}"
            if known not in texts:
                raise ValueError(f"{name!r} is {cell!r}: give {' or '.join(labels)}")
            found[name] = texts[known]
            continue
        found[name] = as_float(cell, f"value of {name!r}")
        if name in table.names:
            _warn_if_odd(name, found[name], name in settings, table, problem)
    missing = [name for name in table.names if name not in row]
    if missing:
        warnings.warn(
            f"no value of {', '.join(missing)}: the row is kept, but "
            + ("tells nothing about causes" if settings else "not used")
            + f" until the file {ROWS} has all values",
            stacklevel=4,
        )
    return found


def _warn_if_odd(
    name: str, value: float, was_set: bool, table: DataTable, problem: Problem
) -> None:
    low, high = observed_ranges(table)[name]
    first, last = problem.ranges.get(name, (low, high))
    low, high = min(low, first), max(high, last)
    if not low - FAR * (high - low) <= value <= high + FAR * (high - low):
        warnings.warn(
            f"{name} = {in_full(value)} is far from the {signed(low)} to "
            f"{signed(high)} so far: is the unit or the decimal point right? Kept; "
            "--undo (undo() in Python) takes the row back",
            stacklevel=5,
        )
    elif was_set and not first <= value <= last:
        warnings.warn(
            f"{name} = {in_full(value)} is outside its range {signed(first)} to "
            f"{signed(last)}: kept",
            stacklevel=5,
        )
    elif was_set and value not in problem.levels.get(name, (value,)):
        warnings.warn(
            f"{name} = {in_full(value)} is none of its levels "
            f"({', '.join(map(signed, problem.levels[name]))}): kept",
            stacklevel=5,
        )


def _as_toml(problem: Problem) -> str:
    """Return the problem as TOML: JSON's texts, numbers and lists are TOML as well."""
    lines, tables = [], []
    plain = lambda value: json.dumps(value, ensure_ascii=False)
    for each in fields(problem):
        value = getattr(problem, each.name)
        if isinstance(value, Mapping):
            cells = [f"{plain(name)} = {plain(cell)}" for name, cell in value.items()]
            tables += ["", f"[{each.name}]", *cells] if cells else []
        elif value not in ((), None):
            lines.append(f"{each.name} = {plain(value)}")
    return "\n".join([*lines, *tables]) + "\n"
