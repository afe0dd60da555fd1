"""Results of an evaluation: numbers of every problem, means, intervals and tests.

Systems are compared in pairs on the same problems.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

SCHEMA = "acbo.evaluation/1"
PARENTS, EPISODES, PROBLEMS = "parents", "episodes", "problems"
TITLES = {
    PARENTS: "Causes of the target",
    EPISODES: "Optimization of the target",
    PROBLEMS: "Optimization of named problems",
}
MAIN = ("f1", "auprc", "log_loss", "calibration_error", "simple_regret", "parent_rate")
RESAMPLES = 1000


class Interval(NamedTuple):
    """An estimate, and the middle 95 % of its bootstrap distribution."""

    mean: float
    low: float
    high: float


def resampling_counts(items: int, seed: int = 0) -> np.ndarray:
    """Return how often each item is drawn with replacement [resamples, items]."""
    random = np.random.default_rng(seed)
    return random.multinomial(items, np.full(items, 1 / items), size=RESAMPLES)


def bootstrap_interval(values: np.ndarray, seed: int = 0) -> Interval:
    """Return the mean and the percentile interval of its bootstrap distribution
    (Efron and Tibshirani, 1993, chapter 13).
    """
    numbers = np.asarray(values, np.float64)
    resampled = resampling_counts(numbers.size, seed) @ numbers / numbers.size
    return Interval(float(numbers.mean()), *_middle(resampled))


def _middle(resampled: np.ndarray) -> list[float]:
    return np.quantile(resampled, [0.025, 0.975]).tolist()


def paired_tests(first: np.ndarray, second: np.ndarray) -> dict[str, Any]:
    """Return the mean of first minus second, its Cohen's d, and the two-sided p-values
    of Student's t-test and Wilcoxon's signed-rank test.
    """
    from scipy import stats  # slow to import

    difference = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    mean, spread = float(difference.mean()), float(difference.std(ddof=1))
    # Equal differences leave no spread to measure them by: certain, or nothing at all.
    p_value, effect = (0.0, math.copysign(math.inf, mean)) if mean else (1.0, 0.0)
    if spread > 0:
        student: Any = stats.ttest_1samp(difference, 0.0)
        p_value, effect = student.pvalue, mean / spread
    ranked: Any = stats.wilcoxon(difference) if difference.any() else None
    return {
        "difference": mean,
        "p_value": float(p_value),
        "p_wilcoxon": 1.0 if ranked is None else float(ranked.pvalue),
        "cohens_d": _finite(effect),
        "pairs": difference.size,
    }


@dataclass(frozen=True)
class Cell:
    """One kind of problem: family of graphs, number of variables, rows given."""

    family: str
    size: int
    observational: int
    interventional: int

    def __post_init__(self) -> None:
        if self.size < 2 or min(self.observational, self.interventional) < 0:
            raise ValueError(f"{self}: need 2 variables or more and no negative rows")

    @property
    def name(self) -> str:
        """Return a short name for tables."""
        rows = f"{self.observational}+{self.interventional}"
        return f"{self.family} d={self.size} rows={rows}"

    @property
    def rows(self) -> int:
        """Return the total number of rows given."""
        return self.observational + self.interventional


@dataclass(frozen=True)
class Result:
    """One system in one cell: arrays with one entry for each problem, in one order.

    `bins` holds counts, sums of probabilities and true labels [problems, 3, bins].
    """

    cell: Cell
    system: str
    kind: str
    scores: Mapping[str, np.ndarray]
    curves: Mapping[str, np.ndarray]
    bins: np.ndarray | None = None

    def intervals(self, seed: int) -> Iterator[tuple[str, Interval | None, int]]:
        """Yield each measure, its mean and the number of problems that have it."""
        for metric, values in self.scores.items():
            known = values[np.isfinite(values)]
            found = bootstrap_interval(known, seed) if len(known) else None
            yield metric, found, len(known)
        if self.bins is not None:
            yield "calibration_error", self.calibration_error(seed), len(self.bins)

    def calibration_error(self, seed: int) -> Interval:
        """Return the expected calibration error of all variables, problems resampled
        whole.
        """
        if self.bins is None:
            raise ValueError(f"{self.system} has no probabilities to calibrate")
        count, predicted, happened = np.moveaxis(np.asarray(self.bins, float), 1, 0)

        def error(weights: np.ndarray) -> np.ndarray:
            gap = np.abs(weights @ (predicted - happened)).sum(1)
            return gap / np.maximum((weights @ count).sum(1), 1)

        once = float(error(np.ones((1, len(count))))[0])
        return Interval(once, *_middle(error(resampling_counts(len(count), seed))))


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
        nothing = dict.fromkeys(Interval._fields)
        return [
            asdict(result.cell)
            | {"kind": result.kind, "system": result.system, "metric": metric}
            | (nothing if found is None else found._asdict())
            | {"problems": problems, "tests": self._tests(result, metric)}
            for result in self.results
            for metric, found, problems in result.intervals(self.seed)
        ]

    def _tests(self, result: Result, metric: str) -> dict[str, Any]:
        """Return comparisons with each reference on the problems both have."""
        tests = {}
        for other in self.results:
            known = metric in other.scores and other.system in self.references
            same = (other.cell, other.kind) == (result.cell, result.kind)
            if not (known and same) or other.system == result.system:
                continue
            a, b = result.scores[metric], other.scores[metric]
            both = np.isfinite(a) & np.isfinite(b)
            if both.sum() >= 2:
                tests[other.system] = paired_tests(a[both], b[both])
        return tests

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

    def table(self, metrics: Sequence[str] = ()) -> str:
        """Return a text table for each kind of result: a line for each cell and system
        with means, 95 % intervals, and p-values of the first measure.

        `metrics` are the measures shown, by default the main ones or, where a kind has
        none of them, all.
        """
        rows = [r for r in self.rows() if not metrics or r["metric"] in metrics]
        kinds = dict.fromkeys(row["kind"] for row in rows)
        parts = [[row for row in rows if row["kind"] == kind] for kind in kinds]
        return "\n\n".join(self._table(part, metrics) for part in parts)

    def _table(self, rows: list[dict[str, Any]], metrics: Sequence[str]) -> str:
        there = list(dict.fromkeys(row["metric"] for row in rows))
        columns = [name for name in metrics or MAIN if name in there] or there
        systems = {row["system"] for row in rows}
        tested = [name for name in self.references if name in systems]
        lines: dict[tuple[str, str], dict[str, str]] = {}
        for row in rows:
            cell = Cell(*(row[name] for name in Cell.__dataclass_fields__)).name
            line = lines.setdefault((cell, row["system"]), {})
            line[row["metric"]] = "-"
            if row["mean"] is not None:
                ends = f"({row['low']:.2f} to {row['high']:.2f})"
                line[row["metric"]] = f"{row['mean']:.3f} {ends}"
            if row["metric"] in columns[:1]:
                for name, test in row["tests"].items():
                    line[f"p vs {name}"] = f"{test['p_value']:.2g}"
        columns = [*columns, *(f"p vs {name}" for name in tested)]
        header = ["cell", "system", *(name.replace("_", " ") for name in columns)]
        body = [[*k, *(line.get(c, "") for c in columns)] for k, line in lines.items()]
        widths = [max(map(len, cells)) for cells in zip(header, *body, strict=True)]
        aligned = lambda line: "  ".join(map(str.ljust, line, widths)).rstrip()
        kind = str(rows[0]["kind"])
        return "\n".join([TITLES.get(kind, kind), *map(aligned, [header, *body])])


def _finite(value: float) -> float | None:
    """Return the value, or None if it is infinite or NaN, which JSON cannot express."""
    return value if math.isfinite(value) else None
