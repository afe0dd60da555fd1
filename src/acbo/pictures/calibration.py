"""Reliability curves: how often what is given a probability turns out to be true."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from jaxrig.report import line_chart

Z = 1.96  # deviations of a 95 % interval
FEWEST = 10  # predictions in a bin that is drawn


def draw_calibration(
    sums: Mapping[str, Float[np.ndarray, "3 bins"]], title: str = "Calibration"
) -> str:
    """Observed share over predicted probability, with 95 % intervals.

    `sums` holds, by name and for each bin, the number of predictions, the sum of their
    probabilities and the number that came true; bins of fewer than ten are left out.
    """
    series: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    bands: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name, given in sums.items():
        count, predicted, happened = np.asarray(given, np.float64)
        used = count >= FEWEST
        if not used.any():
            raise ValueError(
                f"{name!r} has no bin of {FEWEST} predictions: give more problems"
            )
        n, share = count[used], happened[used] / count[used]
        series[name] = (predicted[used] / n, share)
        bands[name] = wilson(share, n)
    ends = np.array([0.0, 1.0])
    return line_chart(
        {**series, "ideal": (ends, ends)},
        title=title,
        x_label="predicted probability",
        y_label="share that is true",
        bands=bands,
    )


def wilson(
    share: Float[np.ndarray, " bins"], count: Float[np.ndarray, " bins"]
) -> tuple[Float[np.ndarray, " bins"], Float[np.ndarray, " bins"]]:
    """Wilson's 95 % interval of a share of `count` cases."""
    scale = 1 + Z**2 / count
    middle = (share + Z**2 / (2 * count)) / scale
    half = Z * np.sqrt(share * (1 - share) / count + (Z / (2 * count)) ** 2) / scale
    return np.minimum(middle - half, share), np.maximum(middle + half, share)
