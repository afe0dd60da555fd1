"""Physical times of a series: where they come from, and that they increase."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Integer

#: Where times are looked for, best first, in the words of the message.
TIME_SOURCES = {
    "field": "field data (TimeValue or TIME)",
    "collection": "the timestep of the collection",
    "array": "the array Time",
    "name": "the number in the file name",
    "index": "the index of the file",
}
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, eq=False)
class Clock:
    """Increasing times, the order of the files that gives them, and their origin."""

    times: Float[np.ndarray, " steps"]
    order: Integer[np.ndarray, " steps"]
    source: str


def name_number(path: str | Path) -> float | None:
    """The last number in a file name: `run3_0.25.vtu` gives 0.25."""
    numbers = _NUMBER.findall(Path(path).stem)
    return float(numbers[-1]) if numbers else None


def choose_clock(
    labels: Sequence[str],
    stated: Mapping[str, Sequence[float | None]],
    source: str | None = None,
) -> Clock:
    """The first of `TIME_SOURCES` that every file has, or `source` if it is given.

    Numbers in names count only if no two files share one.
    """
    if source is not None and source not in TIME_SOURCES:
        raise ValueError(
            f"time_source must be one of {', '.join(TIME_SOURCES)}, got {source!r}"
        )
    candidates = {**stated, "index": [float(i) for i in range(len(labels))]}
    for name in TIME_SOURCES if source is None else (source,):
        values = candidates.get(name, [None])
        known = [value for value in values if value is not None]
        if len(known) == len(labels) and (
            source or name != "name" or len(set(known)) == len(known)
        ):
            return _ordered(np.asarray(known, np.float64), labels, name)
    raise ValueError(
        f"time_source={source!r}: not every file has {TIME_SOURCES[str(source)]}"
    )


def _ordered(times: np.ndarray, labels: Sequence[str], source: str) -> Clock:
    """Sort by time; two files of one instant are an error that names them."""
    bad = np.flatnonzero(~np.isfinite(times))
    if bad.size:
        raise ValueError(
            f"{labels[int(bad[0])]}: its time is {times[bad[0]]}, from "
            f"{TIME_SOURCES[source]}; give time_source= another of {_others(source)}"
        )
    order = np.argsort(times, kind="stable")
    times = times[order]
    same = np.flatnonzero(np.diff(times) <= 0)
    if same.size:
        first, second = (labels[int(order[same[0] + i])] for i in (0, 1))
        raise ValueError(
            f"times must increase, but {first} and {second} both have t = "
            f"{times[same[0]]:g} from {TIME_SOURCES[source]}; leave one out or give "
            f"time_source= another of {_others(source)}"
        )
    return Clock(times, order, source)


def _others(source: str) -> str:
    return ", ".join(name for name in TIME_SOURCES if name != source)
