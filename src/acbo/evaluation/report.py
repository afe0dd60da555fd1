"""Results of an evaluation: numbers of every problem, means, intervals and tests."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from acbo.evaluation.scoring import Cell
from acbo.evaluation.statistics import (
    Interval,
    bootstrap_interval,
    cohens_d,
    paired_t_test,
    percentile_interval,
    resampling_counts,
    wilcoxon_test,
)

SCHEMA = "acbo.evaluation/1"
PARENTS, EPISODES = "parents", "episodes"


@dataclass(frozen=True)
class Result:
    """One system in one cell: arrays with one entry for each problem, in one order.

    `bins` holds counts, sums of probabilities and true labels [3, problems, bins].
    """

    cell: Cell
    system: str
    kind: str
    scores: Mapping[str, np.ndarray]
    curves: Mapping[str, np.ndarray]
    bins: np.ndarray | None = None

    def calibration_error(self, seed: int) -> Interval:
        """Expected calibration error of all variables, problems resampled whole."""
        if self.bins is None:
            raise ValueError(f"{self.system} has no probabilities to calibrate")
        count, predicted, happened = np.asarray(self.bins, np.float64)

        def error(weights: np.ndarray) -> np.ndarray:
            gap = np.abs(weights @ (predicted - happened)).sum(1)
            return gap / np.maximum((weights @ count).sum(1), 1)

        once = np.ones((1, len(count)))
        resampled = error(resampling_counts(len(count), seed))
        return percentile_interval(float(error(once)[0]), resampled)


@dataclass(frozen=True)
class Report:
    """All results of an evaluation, and the systems the others are tested against."""

    results: tuple[Result, ...]
    references: tuple[str, ...]
    seed: int
    settings: Mapping[str, Any]

    def result(self, system: str, kind: str, **cell: Any) -> Result:
        """Return the one result of a system and kind whose cell has these fields."""
        found = [
            each
            for each in self.results
            if (each.system, each.kind) == (system, kind)
            and all(getattr(each.cell, k) == v for k, v in cell.items())
        ]
        if len(found) != 1:
            raise ValueError(f"{len(found)} results of {system!r} ({kind}) in {cell}")
        return found[0]

    def rows(self) -> list[dict[str, Any]]:
        """Return a record per cell, system and measure, with interval and tests."""
        return [row for result in self.results for row in self._rows_of(result)]

    def _rows_of(self, result: Result) -> Iterator[dict[str, Any]]:
        cell = result.cell
        head = {
            "family": cell.family,
            "size": cell.size,
            "observational": cell.observational,
            "interventional": cell.interventional,
            "kind": result.kind,
            "system": result.system,
        }
        for metric, values in result.scores.items():
            known = values[np.isfinite(values)]
            found = bootstrap_interval(known, seed=self.seed) if len(known) else None
            tests = self._tests(result, metric)
            yield {**head, "metric": metric, **_spell(found, len(known)), **tests}
        if result.bins is not None:
            found = result.calibration_error(self.seed)
            row = _spell(found, result.bins.shape[1])
            yield {**head, "metric": "calibration_error", **row, "tests": {}}

    def _tests(self, result: Result, metric: str) -> dict[str, Any]:
        """Paired comparisons with each reference on the problems both have."""
        tests = {}
        for other in self.results:
            known = metric in other.scores and other.system in self.references
            same = (other.cell, other.kind) == (result.cell, result.kind)
            if not (known and same) or other.system == result.system:
                continue
            a, b = result.scores[metric], other.scores[metric]
            both = np.isfinite(a) & np.isfinite(b)
            if both.sum() < 2:
                continue
            t, w = paired_t_test(a[both], b[both]), wilcoxon_test(a[both], b[both])
            tests[other.system] = {
                "difference": t.difference,
                "p_value": t.p_value,
                "p_wilcoxon": w.p_value,
                "cohens_d": _finite(cohens_d(a[both], b[both])),
                "pairs": t.pairs,
            }
        return {"tests": tests}

    def to_json(self) -> str:
        """Return rows and mean curves as JSON text; `results` has every problem."""
        curves = [
            {
                "cell": result.cell.name,
                "system": result.system,
                "metric": name,
                "mean": [_finite(float(x)) for x in curve.astype(np.float64).mean(0)],
            }
            for result in self.results
            for name, curve in result.curves.items()
        ]
        content = {
            "schema": SCHEMA,
            "seed": self.seed,
            "settings": dict(self.settings),
            "references": list(self.references),
            "rows": self.rows(),
            "curves": curves,
        }
        return json.dumps(content, indent=1, allow_nan=False)

    def table(self, metrics: Sequence[str] | None = None) -> str:
        """Return a plain text table of all measures, or of those named."""
        header = ["cell", "system", "metric", "mean", "95 % interval", "problems"]
        header += [f"p vs {name}" for name in self.references]
        lines = []
        for row in self.rows():
            if metrics is not None and row["metric"] not in metrics:
                continue
            cell = Cell(*(row[k] for k in Cell.__dataclass_fields__))
            tests = [row["tests"].get(name) for name in self.references]
            lines.append(
                [
                    cell.name,
                    row["system"],
                    row["metric"],
                    _number(row["mean"]),
                    f"{_number(row['low'])} to {_number(row['high'])}",
                    str(row["problems"]),
                    *("" if t is None else f"{t['p_value']:.2g}" for t in tests),
                ]
            )
        every = [header, *lines]
        widths = [max(len(line[i]) for line in every) for i in range(len(header))]
        pad = lambda line: "  ".join(map(str.ljust, line, widths)).rstrip()
        return "\n".join(map(pad, every))


def _spell(found: Interval | None, problems: int) -> dict[str, Any]:
    known: dict[str, Any] = dict.fromkeys(("mean", "low", "high"))
    if found is not None:
        known = asdict(found)
    return {**known, "problems": problems}


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _finite(value: float) -> float | None:
    """Return the value, or None if it is infinite or NaN, which JSON cannot express."""
    return value if math.isfinite(value) else None
