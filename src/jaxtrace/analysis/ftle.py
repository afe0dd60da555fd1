"""Finite-time Lyapunov exponents: the rate at which neighboring particles part."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace.analysis.advection import Advection
from jaxtrace.analysis.flow_maps import carry
from jaxtrace.analysis.stretching import log_stretch


def ftle(
    field: Any,
    grid: Sequence[Any],
    t0: float,
    T: float,
    *,
    level: float = 0.0,
    integrator: str = "rk4",
    n_steps: int | None = None,
    dt: float | None = None,
    tolerance: float | None = None,
    boundary: Any = None,
    batch_size: int | None = None,
    dtype: Any = None,
) -> Float[np.ndarray, "*grid"]:
    """The exponent ln(sigma) / |T| at every node of a grid, shaped like the grid.

    sigma, the root of the largest eigenvalue of the Cauchy-Green tensor F^T F, is the
    largest stretching by the flow map from t0 to t0 + T; T < 0 goes back in time. The
    grid is (x, y) axes at z = `level`, whose particles are told apart in the plane
    only, or (x, y, z). The rest says how particles move: see `Advection`. NaN marks
    particles that left.

    >>> from jaxtrace.fields.analytic import Saddle
    >>> rates = ftle(Saddle(rate=0.5), ([0.1, 0.2], [0.3]), 0.0, 2.0, n_steps=20)
    >>> rates.shape, bool(abs(rates - 0.5).max() < 1e-4)
    ((2, 1), True)
    """
    axes = _axes(grid)
    how = Advection(integrator, n_steps, dt, tolerance, boundary, batch_size, dtype)
    seeds = _nodes(axes, level)
    rates = np.empty(len(seeds), how.kind)
    for part in carry(field, seeds, t0, T, len(axes), how):
        rates[part.start : part.stop] = log_stretch(part.gradient) / abs(T)
    return rates.reshape([axis.size for axis in axes])


def _axes(grid: Sequence[Any]) -> list[Float[np.ndarray, " nodes"]]:
    axes = [np.atleast_1d(np.asarray(axis, np.float64)) for axis in grid]
    if len(axes) not in (2, 3) or any(axis.ndim != 1 for axis in axes):
        shapes = ", ".join(str(axis.shape) for axis in axes)
        raise ValueError(f"a grid of {shapes}: give the axes (x, y) or (x, y, z)")
    return axes


def _nodes(axes: list[np.ndarray], level: float) -> Float[np.ndarray, "nodes 3"]:
    whole = axes if len(axes) == 3 else [*axes, np.array([level])]
    mesh = np.meshgrid(*whole, indexing="ij")
    return np.stack([part.ravel() for part in mesh], axis=1)
