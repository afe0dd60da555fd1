"""A linear model from data and a graph, by least squares."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from acbo.named.digraph import parents_of
from acbo.named.linear import create_linear_scm
from acbo.named.model import NamedSCM, Ranges
from acbo.named.networks import read_graph
from acbo.named.tables import DataTable, frame_to_table


def fit_scm(
    data: Any,
    graph: Any,
    target: str | None = None,
    ranges: Ranges | None = None,
) -> NamedSCM:
    """Each variable regressed on its causes, over the rows where it was not set.

    `data` is a `DataTable` or a pandas frame, `graph` a networkx digraph or pairs
    (cause, effect). The noise scale is the residual standard deviation, with one
    degree of freedom taken off for each estimated number.
    """
    table = data if isinstance(data, DataTable) else frame_to_table(data)
    names, edges = read_graph(graph, table.names)
    values = np.asarray(table.values, dtype=np.float64)
    free = ~np.asarray(table.intervened)
    weights, bases, scales = {}, {}, {}
    for place, name in enumerate(names):
        causes = parents_of(name, edges)
        rows = values[free[:, place]]
        columns = rows[:, [names.index(cause) for cause in causes]]
        numbers, scales[name] = _regress(columns, rows[:, place], name, causes)
        bases[name] = numbers[0]
        weights |= {
            (c, name): weight for c, weight in zip(causes, numbers[1:], strict=True)
        }
    return create_linear_scm(names, weights, target, ranges, bases, scales)


def _regress(
    causes: np.ndarray, effect: np.ndarray, name: str, names: Sequence[str]
) -> tuple[list[float], float]:
    """Intercept and coefficients, and the residual standard deviation."""
    count, needed = len(effect), len(names) + 2
    if count < needed:
        raise ValueError(
            f"{name!r} was left alone in {count} row(s): with {len(names)} cause(s) at "
            f"least {needed} are needed"
        )
    # Centered and scaled, so that units do not decide what counts as dependent.
    middle, spread = causes.mean(0), causes.std(0)
    spread = np.where(spread == 0, 1.0, spread)
    scaled = np.column_stack([np.ones(count), (causes - middle) / spread])
    if np.linalg.matrix_rank(scaled) < scaled.shape[1]:
        raise ValueError(
            f"the causes of {name!r} ({', '.join(names)}) depend linearly on each "
            "other in the rows where it was left alone: drop one, or add data"
        )
    found = np.linalg.lstsq(scaled, effect, rcond=None)[0]
    residual = effect - scaled @ found
    slopes = found[1:] / spread
    intercept = found[0] - slopes @ middle
    scale = np.sqrt(residual @ residual / (count - len(names) - 1))
    return [float(intercept), *slopes.tolist()], float(scale)
