"""How far proposers are from the optimum after each intervention."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from acbo.evaluation.statistics import bootstrap_interval
from jaxrig.report import line_chart


def draw_regret(
    curves: Mapping[str, np.ndarray],
    title: str = "Simple regret",
    y_label: str = "regret",
) -> str:
    """Means after 1, 2, ... interventions, with intervals of the mean.

    `curves` are arrays [problems, steps] by name.
    """
    series: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    bands: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name, given in curves.items():
        values = np.asarray(given, np.float64)
        if values.ndim != 2 or 0 in values.shape:
            raise ValueError(
                f"{name!r} has shape {values.shape}: give numbers by problem and step"
            )
        found = [bootstrap_interval(column) for column in values.T]
        steps = np.arange(1, values.shape[1] + 1)
        low = np.array([each.low for each in found])
        high = np.array([each.high for each in found])
        mean = np.array([each.mean for each in found])
        series[name] = (steps, mean)
        # Rounding may put the mean of equal numbers just outside.
        bands[name] = (np.minimum(low, mean), np.maximum(high, mean))
    return line_chart(
        series, title=title, x_label="interventions", y_label=y_label, bands=bands
    )


def draw_shares(shares: Mapping[str, Float[np.ndarray, " steps"]]) -> str:
    """The best so far in single runs, as a share of the way to the true optimum."""
    series = {
        name: (np.arange(1, len(each) + 1), np.asarray(each, np.float64))
        for name, each in shares.items()
    }
    length = max(len(each) for each in shares.values())
    steps = np.arange(1, length + 1)
    return line_chart(
        {
            **series,
            "optimum": (steps, np.ones(length)),
            "nothing set": (steps, np.zeros(length)),
        },
        title="Share of the way to the optimum",
        x_label="interventions",
        y_label="best so far",
    )
