"""Values at nodes: checked on the host, blended in time and over nodes when asked."""

from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxtrace.fields.clock import Clock, Moment, make_clock, steady_clock
from jaxtrace.fields.search import rows

BLEND_UP_TO = 8  # nodes per particle up to which slices are blended beforehand

T = TypeVar("T")


def blend(
    values: Float[Array | np.ndarray, "slices points c"],
    nodes: Int[Array, "n nodes"],
    later: list[Array],
    moment: Moment,
) -> Float[Array, "n c"]:
    """Values by the weights of nodes (of all but the first) and of slices."""
    total = None
    for k in range(moment.weights.shape[-1]):
        weight = jnp.asarray(moment.weights)[..., k].astype(values.dtype)
        part = _slice(values, nodes, later, jnp.asarray(moment.slices)[..., k])
        part = part * (weight[:, None] if weight.ndim else weight)
        total = part if total is None else total + part
    assert total is not None
    return total


def _slice(values: Any, nodes: Array, later: list[Array], index: Array) -> Array:
    """Values of one slice, or of each particle's own."""
    slices, points, components = values.shape
    flat = jnp.asarray(values).reshape(-1, components)
    if slices > 1:
        first = index * points
        nodes = nodes + (first[:, None] if first.ndim else first)
    corners = rows(flat, nodes)
    origin = corners[:, 0]
    total = origin
    for i, share in enumerate(later):
        # Differences from the first node keep a constant field exactly constant.
        total = total + share[:, None] * (corners[:, i + 1] - origin)
    return total


def whole_slice(dtype: Any) -> Moment:
    """The moment of a record that is a single slice."""
    one = jnp.ones(1, dtype)
    return Moment(one[0], jnp.zeros(1, np.int32), one)


def pays(values: Any, moment: Moment, particles: int) -> bool:
    """Whether to blend whole slices before asking for so many particles."""
    slices, points = values.shape[-3:-1]
    return moment.time.ndim == 0 and slices > 1 and points <= BLEND_UP_TO * particles


def blend_slices(
    values: Float[Array | np.ndarray, "slices points c"], moment: Moment
) -> tuple[Float[Array, "1 points c"], Clock, Moment]:
    """One slice for one instant, with a clock and a moment to suit."""
    weights = jnp.asarray(moment.weights).astype(values.dtype)
    table = jnp.asarray(values)
    parts = [
        weights[k] * jnp.take(table, moment.slices[k], axis=0)
        for k in range(weights.shape[0])
    ]
    instant = Moment(
        moment.time, jnp.zeros(1, np.int32), jnp.ones(1, moment.weights.dtype)
    )
    return sum(parts[1:], start=parts[0])[None], steady_clock(), instant


def blend_field(field: T, moment: Moment, particles: int) -> tuple[T, Moment]:
    """A field of `values` by a `clock` with its slices blended, if that pays."""
    whole: Any = field
    if not pays(whole.values, moment, particles):
        return field, moment
    values, clock, instant = blend_slices(whole.values, moment)
    return eqx.tree_at(lambda f: (f.values, f.clock), whole, (values, clock)), instant


def check_values(values: Any, points: int, dtype: Any) -> Float[np.ndarray, "t n 3"]:
    """Values as (T, N, 3) in the dtype asked for, or in the one JAX would give them."""
    values = np.asarray(values)
    if values.ndim == 2:
        values = values[None]
    if values.ndim != 3 or values.shape[2] not in (2, 3):
        raise ValueError(
            f"values of shape {values.shape}: give (N, 3), or (T, N, 3) with times"
        )
    if values.shape[1] != points:
        raise ValueError(f"values of {values.shape[1]} nodes for {points} points")
    kept = np.dtype(values.dtype if dtype is None else dtype)
    if not np.issubdtype(kept, np.floating):
        kept = np.dtype(np.float32)
    known = np.dtype(jax.dtypes.canonicalize_dtype(kept))
    if dtype is not None and known != kept:
        raise ValueError(f"dtype {kept}: set jax_enable_x64 for numbers this wide")
    if values.shape[0] * points >= 2**31:
        raise ValueError(
            f"{values.shape[0]} slices of {points} nodes are more than can be "
            "numbered: load fewer slices"
        )
    missing = ((0, 0), (0, 0), (0, 3 - values.shape[2]))
    return np.pad(values.astype(known), missing)


def check_clock(
    times: Any, slices: int, interpolation: str, extrapolation: str
) -> Clock:
    """A clock of as many times as there are slices; a single slice needs none."""
    if times is None and slices == 1:
        return steady_clock()
    if times is None or np.size(times) != slices:
        count = "no" if times is None else np.size(times)
        raise ValueError(f"{slices} slices and {count} times: give one per slice")
    return make_clock(times, interpolation, extrapolation)
