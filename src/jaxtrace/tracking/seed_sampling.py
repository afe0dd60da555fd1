"""Seeds drawn from strata, from a given density, or from what a field does."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64

from jaxtrace.bounds import Box, box_bounds
from jaxtrace.config import working_dtype
from jaxtrace.tracking.seed_shapes import Seeds, as_seeds, axis_counts, uniform_rows

PROBES = 1000  # points at which the highest density is looked for first
HEADROOM = 1.1  # over the highest density seen
METRICS = ("divergence", "magnitude", "vorticity")


def stratified_seeds(
    bounds: Any,
    n: int,
    n_strata: int | Sequence[int] = 4,
    rng_seed: int = 0,
    dtype: Any = None,
) -> Seeds:
    """Seeds at random in each of equal cells, `n_strata` along every axis.

    The cells get the same count each; what is left over goes to the first ones.
    """
    box = box_bounds(bounds)
    counts = np.array(axis_counts(n_strata, box))
    if (counts < 1).any():
        raise ValueError(f"n_strata={n_strata} must be at least 1 along every axis")
    cells = int(np.prod(counts))
    shares = np.full(cells, max(n, 0) // cells) + (np.arange(cells) < max(n, 0) % cells)
    which = np.repeat(np.arange(cells), shares)
    generator = np.random.default_rng(rng_seed)
    return as_seeds(_within_cells(generator, which, counts, box), dtype)


def custom_distribution_seeds(
    bounds: Any,
    n: int,
    pdf_func: Callable[[Any], Any],
    max_iterations: int = 1000,
    rng_seed: int = 0,
    dtype: Any = None,
) -> Seeds:
    """Seeds with a density proportional to `pdf_func(positions) -> (rows,)`.

    Rejection sampling: the highest density is estimated from probes, and where a
    higher one turns up later, the seeds taken so far are thinned to match.
    """
    box, generator = box_bounds(bounds), np.random.default_rng(rng_seed)
    kept = np.zeros((0, 3))
    if n <= 0:
        return as_seeds(kept, dtype)
    ceiling = HEADROOM * _density(pdf_func, uniform_rows(generator, PROBES, box)).max()
    for _ in range(max_iterations):
        proposed = uniform_rows(generator, max(n, PROBES), box)
        density = _density(pdf_func, proposed)
        if density.max() > ceiling:
            higher = HEADROOM * density.max()
            kept = kept[generator.random(len(kept)) * higher < ceiling]
            ceiling = higher
        accepted = generator.random(len(proposed)) * ceiling < density
        kept = np.concatenate([kept, proposed[accepted]])
        if len(kept) >= n:
            return as_seeds(kept[:n], dtype)
    raise ValueError(
        f"only {len(kept)} of {n} seeds were accepted in {max_iterations} rounds: "
        "narrow the bounds to where the density is, or raise max_iterations"
    )


def _density(pdf_func: Callable[[Any], Any], positions: np.ndarray) -> np.ndarray:
    density = np.asarray(pdf_func(positions), np.float64)
    if density.shape != (len(positions),):
        raise ValueError(
            f"pdf_func gave shape {density.shape} for {len(positions)} positions: it "
            "gives one density per row"
        )
    if not (np.isfinite(density) & (density >= 0)).all():
        raise ValueError("pdf_func must give finite densities that are not negative")
    return density


def field_informed_seeds(
    field: Any,
    bounds: Any,
    n: int,
    metric: str = "divergence",
    sample_resolution: int | Sequence[int] = (50, 50, 50),
    rng_seed: int = 0,
    *,
    t: float = 0.0,
    dtype: Any = None,
) -> Seeds:
    """Seeds where a field at time `t` diverges, turns ("vorticity") or is fast.

    The box is cut into cells; a cell is drawn with probability proportional to the
    size of the metric at its center, by central differences, and the seed lies
    anywhere in it. Cells where the field is not finite get none.
    """
    if metric not in METRICS:
        raise ValueError(f"metric={metric!r} is not one of: {', '.join(METRICS)}")
    box = box_bounds(bounds)
    counts = np.where(box.active, axis_counts(sample_resolution, box), 1)
    if (counts < 1).any():
        raise ValueError(f"sample_resolution={sample_resolution} must be at least 1")
    if n <= 0:
        return as_seeds(np.zeros((0, 3)), dtype)
    cells = np.arange(np.prod(counts))
    centers = _within_cells(None, cells, counts, box)
    velocity = _sample(field, centers, t).reshape(*counts, 3)
    weights = _metric(velocity, box.size / counts, metric).ravel()
    if not weights.any():
        raise ValueError(
            f"the {metric} of the field is zero to rounding everywhere in the box: "
            "choose another metric, or random_seeds"
        )
    generator = np.random.default_rng(rng_seed)
    which = generator.choice(len(cells), n, p=weights / weights.sum())
    return as_seeds(_within_cells(generator, which, counts, box), dtype)


def _within_cells(
    generator: np.random.Generator | None, which: np.ndarray, counts: Any, box: Box
) -> Float64[np.ndarray, "rows 3"]:
    """A random point of each of the cells, or its center; z counts fastest."""
    corner = np.stack(np.unravel_index(which, tuple(counts)), axis=1)
    inside = 0.5 if generator is None else generator.random(corner.shape)
    return box.lo + (corner + inside) / counts * box.size


def _sample(field: Any, positions: np.ndarray, t: float) -> Float[np.ndarray, "rows 3"]:
    """Velocities of a field, a steady field or a function, in their own dtype."""
    where = jnp.asarray(positions, working_dtype())
    if hasattr(field, "sample_at_positions"):
        velocity = field.sample_at_positions(where, t)
    elif hasattr(field, "sample"):
        velocity = field.sample(where)
    elif callable(field):
        velocity = field(where, t)
    else:
        raise TypeError(
            f"{type(field).__name__} is no field: it has neither "
            "sample_at_positions(positions, t) nor sample(positions), nor is it a "
            "function of (positions, t)"
        )
    rows = np.asarray(velocity)
    kind = rows.dtype if np.issubdtype(rows.dtype, np.floating) else working_dtype()
    return as_seeds(np.where(np.isfinite(rows), rows, np.nan), kind)


def _metric(
    velocity: Float[np.ndarray, "nx ny nz 3"],
    spacing: Float64[np.ndarray, "3"],
    metric: str,
) -> Float64[np.ndarray, "nx ny nz"]:
    """Size of the metric in each cell: 0 where unknown or no more than rounding."""
    if metric == "magnitude":
        return np.nan_to_num(np.linalg.norm(velocity.astype(np.float64), axis=-1))
    slopes = _gradients(velocity.astype(np.float64), spacing)
    if metric == "divergence":
        size = np.abs(slopes[0, ..., 0] + slopes[1, ..., 1] + slopes[2, ..., 2])
    else:
        curl = (
            slopes[1, ..., 2] - slopes[2, ..., 1],
            slopes[2, ..., 0] - slopes[0, ..., 2],
            slopes[0, ..., 1] - slopes[1, ..., 0],
        )
        size = np.sqrt(sum(part**2 for part in curl))
    steps = spacing[np.array(velocity.shape[:3]) > 1]
    if steps.size == 0:
        return np.zeros_like(size)
    # A difference of two rounded speeds is known to about their last digit.
    fastest = np.nan_to_num(np.abs(velocity)).max()
    noise = 4 * np.finfo(velocity.dtype).eps * fastest / steps.min()
    return np.where(size > noise, size, 0.0)  # NaN is not more than anything


def _gradients(
    velocity: Float64[np.ndarray, "nx ny nz 3"], spacing: Float64[np.ndarray, "3"]
) -> Float64[np.ndarray, "3 nx ny nz 3"]:
    """Derivatives along x, y and z; 0 along an axis with a single cell."""
    slopes = np.zeros((3, *velocity.shape))
    for axis, step in enumerate(spacing):
        count = velocity.shape[axis]
        if count > 1:
            order = 2 if count > 2 else 1
            slopes[axis] = np.gradient(velocity, step, axis=axis, edge_order=order)
    return slopes
