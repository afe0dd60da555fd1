"""How much a gradient of the flow map stretches."""

import numpy as np
from jaxtyping import Float


def log_stretch(
    gradient: Float[np.ndarray, "n 3 directions"],
) -> Float[np.ndarray, " n"]:
    """The logarithm of the largest singular value of each gradient; NaN stays NaN.

    It is the root of the largest eigenvalue of the Cauchy-Green tensor F^T F.
    """
    found = np.full(len(gradient), np.nan)
    known = np.isfinite(gradient).all(axis=(1, 2))
    whole = gradient[known].astype(np.float64)
    # The tensor is a square: without a scale it leaves the range of numbers too soon.
    size = np.abs(whole).max(axis=(1, 2), initial=0.0)
    scaled = whole / np.where(size > 0, size, 1.0)[:, None, None]
    tensor = np.swapaxes(scaled, 1, 2) @ scaled
    with np.errstate(divide="ignore"):
        top = np.log(np.linalg.eigvalsh(tensor)[:, -1].clip(0)) / 2
        found[known] = np.log(size) + np.where(size > 0, top, 0.0)
    return found
