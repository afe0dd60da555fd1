"""Time interpolation: instants as weights of stored slices.

Which slices an instant needs, and how much of each, depends on time alone; a run works
it out once on the host in float64, and the same rules serve traced times.
"""

from typing import Any, Literal, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxtrace.types import check_choice

TimeInterpolation = Literal["linear", "nearest", "cubic"]
TimeExtrapolation = Literal["constant", "linear", "periodic", "zero", "nan", "error"]
INTERPOLATIONS = get_args(TimeInterpolation)
EXTRAPOLATIONS = get_args(TimeExtrapolation)
ALIASES = {"wrap": "periodic"}

Numbers = Array | np.ndarray | np.generic | float


class Instant(eqx.Module):
    """An instant as a field sees it: the time, the slices it needs and their weights.

    Instants may be one for all particles or one for each; the last axis of `slices`
    and `weights` counts the slices blended (one, two or four).
    """

    time: Float[Array | np.ndarray, "*when"]
    slices: Int[Array | np.ndarray, "*when blended"]
    weights: Float[Array | np.ndarray, "*when blended"]

    def astype(self, dtype: Any) -> "Instant":
        """Return the same with time and weights in another precision."""
        return Instant(self.time.astype(dtype), self.slices, self.weights.astype(dtype))


class Clock(eqx.Module):
    """The instants of a field's slices, and the rule between and beyond them."""

    times: Float[Array | np.ndarray, " slices"]
    interpolation: TimeInterpolation = eqx.field(static=True, default="linear")
    extrapolation: TimeExtrapolation = eqx.field(static=True, default="constant")

    def instant(self, time: Numbers) -> Instant:
        """Return the slices and weights of an instant, or of an array of them."""
        traced = isinstance(time, jax.Array) or isinstance(self.times, jax.Array)
        xp: Any = jnp if traced else np
        when = xp.asarray(time, None if traced else np.float64)
        times = xp.asarray(self.times)
        if traced and not jnp.issubdtype(when.dtype, jnp.floating):
            when = when.astype(times.dtype)
        count = times.shape[0]
        if count == 1:
            return self._single(xp, when, times)
        inside, outside = self._inside(xp, when, times.astype(when.dtype))
        if self.extrapolation == "error" and not traced:
            self._refuse(when, times)
        index, weight = _bracket(xp, inside, times.astype(when.dtype))
        slices, weights = self._blend(xp, index, weight, times.astype(when.dtype))
        return Instant(when, *self._beyond(xp, slices, weights, outside))

    def _refuse(self, when: np.ndarray, times: np.ndarray) -> None:
        """Raise ValueError for instants beyond the record, but for rounding."""
        slack = 1e-9 * (times[-1] - times[0])
        beyond = when[(when < times[0] - slack) | (when > times[-1] + slack)]
        if beyond.size:
            raise ValueError(
                f"t = {beyond.flat[0]:g} lies beyond the record, which runs from "
                f"{times[0]:g} to {times[-1]:g}: choose a time_span within it, or "
                'extrapolation = "constant" to keep the last slice'
            )

    def bounds(self) -> tuple[float, float]:
        """Return the first and the last instant; a single slice has no ends."""
        times = np.asarray(self.times)
        if len(times) == 1:
            return -np.inf, np.inf
        return float(times[0]), float(times[-1])

    def _single(self, xp: Any, when: Any, times: Any) -> Instant:
        """Return one slice: the same at all times, or nothing at any other instant."""
        slices = xp.zeros((*when.shape, 1), np.int32)
        weights = xp.ones((*when.shape, 1), when.dtype)
        outside = when != times.astype(when.dtype)[0]
        return Instant(when, *self._beyond(xp, slices, weights, outside))

    def _inside(self, xp: Any, when: Any, times: Any) -> tuple[Any, Any]:
        """Return times moved to where there are slices, and which ones lay beyond."""
        first, last = times[0], times[-1]
        outside = (when < first) | (when > last)
        if self.extrapolation == "periodic":
            wrapped = first + xp.mod(when - first, last - first)
            return xp.where(outside, wrapped, when), xp.zeros_like(outside)
        if self.extrapolation == "linear" and self.interpolation != "nearest":
            return when, outside
        return xp.clip(when, first, last), outside

    def _blend(self, xp: Any, index: Any, weight: Any, times: Any) -> tuple[Any, Any]:
        if self.interpolation == "nearest":
            later = (weight >= 0.5).astype(np.int32)
            return (index + later)[..., None], xp.ones_like(weight)[..., None]
        linear = xp.stack([1 - weight, weight], -1)
        pair = xp.stack([index, index + 1], -1)
        if self.interpolation == "linear":
            return pair, linear
        width = times[index + 1] - times[index]
        basis = _hermite(weight, width)
        slices, cubic = _catmull_rom(xp, index, basis, times, self._wraps)
        # Beyond the ends a cubic runs away: the slope of the last pair is kept.
        none = xp.zeros_like(weight)
        straight = xp.stack([none, 1 - weight, weight, none], -1)
        runaway = (weight < 0) | (weight > 1)
        return slices, xp.where(runaway[..., None], straight, cubic)

    def slope(self, time: Numbers) -> Instant:
        """Return the slices' weights in the rate of change, on the host.

        Where two intervals meet it is the rate of the later one.
        """
        when, times = np.asarray(time, np.float64), np.asarray(self.times)
        if times.shape[0] == 1:
            steady = self._single(np, when, times)
            return Instant(when, steady.slices, 0 * steady.weights)
        inside, outside = self._inside(np, when, times)
        index, weight = _bracket(np, inside, times)
        slices, weights = self._rate(index, weight, times, outside)
        if self.extrapolation != "linear":
            weights = np.where(outside[..., None], 0.0, weights)
        if self.extrapolation == "nan":
            weights = np.where(outside[..., None], np.nan, weights)
        return Instant(when, slices, weights)

    def _rate(self, index: Any, weight: Any, times: Any, outside: Any):
        width = times[index + 1] - times[index]
        proper = width > 0
        pace = np.where(proper, 1 / np.where(proper, width, 1.0), 0.0)
        none = np.zeros_like(pace)
        if self.interpolation == "nearest":
            later = (weight >= 0.5).astype(np.int32)
            return (index + later)[..., None], none[..., None]
        if self.interpolation == "linear":
            return np.stack([index, index + 1], -1), np.stack([-pace, pace], -1)
        basis = _hermite_rates(weight, pace)
        slices, cubic = _catmull_rom(np, index, basis, times, self._wraps)
        straight = np.stack([none, -pace, pace, none], -1)
        return slices, np.where(outside[..., None], straight, cubic)

    @property
    def _wraps(self) -> bool:
        return self.extrapolation == "periodic"

    def _beyond(self, xp: Any, slices: Any, weights: Any, outside: Any):
        """Return weights that make velocities outside the record 0 or NaN."""
        fills = {"zero": 0.0, "nan": float("nan")}
        # Traced times cannot raise; rounding may put a host's last one beyond the end.
        if self.extrapolation == "error" and xp is jnp:
            fills["error"] = float("nan")
        fill = fills.get(self.extrapolation)
        if fill is None:
            return slices, weights
        filled = xp.asarray(fill, weights.dtype)
        return slices, xp.where(outside[..., None], filled, weights)


def make_clock(
    times: Any,
    interpolation: str = "linear",
    extrapolation: str = "constant",
    slices: int | None = None,
) -> Clock:
    """Return a clock of checked times and rules, or the clock that is given.

    With the number of `slices` there must be one time for each; a single slice that is
    given none holds at all times.
    """
    if times is None:
        if slices != 1:
            raise ValueError(f"{slices} slices and no times: give one per slice")
        return steady_clock()
    clock = times
    if not isinstance(clock, Clock):
        clock = Clock(*_check_times(times, interpolation, extrapolation))
    count = clock.times.shape[0]
    if slices not in (None, count):
        raise ValueError(f"{slices} slices and {count} times: give one per slice")
    return clock


def _check_times(
    times: Any, interpolation: str, extrapolation: str
) -> tuple[np.ndarray, TimeInterpolation, TimeExtrapolation]:
    extrapolation = ALIASES.get(extrapolation, extrapolation)
    check_choice("interpolation", interpolation, INTERPOLATIONS)
    check_choice("extrapolation", extrapolation, EXTRAPOLATIONS)
    times = np.asarray(times, np.float64)
    if times.ndim != 1 or times.size == 0:
        raise ValueError(f"times of shape {times.shape}: give one number per slice")
    if not np.all(np.isfinite(times)):
        raise ValueError("times hold values that are not finite: give every slice one")
    backwards = np.flatnonzero(np.diff(times) < 0)
    if backwards.size:
        i = int(backwards[0])
        raise ValueError(
            f"times[{i + 1}] = {times[i + 1]} follows times[{i}] = {times[i]}: "
            "sort the slices by time"
        )
    if extrapolation == "periodic" and times.size > 1 and times[-1] == times[0]:
        raise ValueError("a periodic record needs a last time after its first")
    rules = (
        cast(TimeInterpolation, interpolation),
        cast(TimeExtrapolation, extrapolation),
    )
    return times, *rules


def steady_clock() -> Clock:
    """Return the clock of a field that does not change."""
    return Clock(np.zeros(1))


def blend_slices(
    values: Float[Array | np.ndarray, "slices ..."], instant: Instant
) -> tuple[Float[Array, "1 ..."], Clock, Instant]:
    """Return one slice for one instant, with a clock and an instant to suit."""
    weights = jnp.asarray(instant.weights).astype(values.dtype)
    slices, table = jnp.asarray(instant.slices), jnp.asarray(values)
    parts = [weights[k] * table[slices[k]] for k in range(weights.shape[0])]
    one = jnp.ones(1, instant.weights.dtype)
    instant = Instant(instant.time, jnp.zeros(1, np.int32), one)
    return sum(parts[1:], start=parts[0])[None], steady_clock(), instant


def _bracket(xp: Any, when: Any, times: Any) -> tuple[Any, Any]:
    """Return the interval that holds an instant, and how far into it the instant lies.

    Of slices that share an instant the later one holds from that instant on.
    """
    index = xp.searchsorted(times, when, side="right") - 1
    index = xp.clip(index, 0, times.shape[0] - 2).astype(np.int32)
    start, width = times[index], times[index + 1] - times[index]
    proper = width > 0
    weight = (when - start) / xp.where(proper, width, 1)
    # Only the last interval can be met with no width: its end is the last slice.
    return index, xp.where(proper, weight, xp.ones_like(weight))


def _hermite(s: Any, width: Any) -> tuple[Any, Any, Any, Any]:
    """Return the weights of values and slopes at both ends, `s` into an interval."""
    high = s * s * (3 - 2 * s)
    return 1 - high, high, s * (1 - s) * (1 - s) * width, s * s * (s - 1) * width


def _hermite_rates(s: Any, pace: Any) -> tuple[Any, Any, Any, Any]:
    """Return how fast those weights change in time; `pace` is one over the width."""
    high = 6 * s * (1 - s) * pace
    return -high, high, (1 - s) * (1 - 3 * s), s * (3 * s - 2)


def _catmull_rom(
    xp: Any, index: Any, basis: tuple[Any, ...], times: Any, wraps: bool
) -> tuple[Any, Any]:
    """Return four slices and weights of the cubic through the middle two.

    Slopes are those of the parabola through each slice and its neighbors, so that
    uneven spacing is honored; at the ends of a record that does not repeat they are
    those of the end intervals.
    """
    # Catmull and Rom (1974) on uneven knots: Hermite's basis with finite differences.
    count, widths = times.shape[0], times[1:] - times[:-1]
    slices, none = np.arange(-1, count + 1), xp.zeros_like(widths[:1])
    if wraps:  # the last slice is the first again
        slices[0], slices[-1] = count - 2, 1
        widths = xp.concatenate([widths[-1:], widths, widths[:1]])
    else:
        slices = slices.clip(0, count - 1)
        widths = xp.concatenate([none, widths, none])
    last, here, coming = (widths[index + k] for k in range(3))
    value_start, value_end, to_start, to_end = basis
    start, end = _slope(xp, last, here, True), _slope(xp, here, coming, False)
    weights = [
        to_start * start[0],
        value_start + to_start * start[1] + to_end * end[0],
        value_end + to_start * start[2] + to_end * end[1],
        to_end * end[2],
    ]
    order = xp.asarray(slices, np.int32)
    chosen = [order[index + k] for k in range(4)]
    return xp.stack(chosen, -1), xp.stack(weights, -1)


def _slope(xp: Any, left: Any, right: Any, first: bool) -> tuple[Any, ...]:
    """Return weights of three values in the middle slope; one-sided at edges.

    The end of a record is an edge, and a jump, where two slices share an instant.
    """
    at_edge = (left if first else right) <= 0
    one = xp.ones_like(left)
    left = xp.where(left > 0, left, xp.where(right > 0, right, one))
    right = xp.where(right > 0, right, left)
    both = left + right
    low = -right / (left * both)
    high = left / (right * both)
    middle = -(low + high)
    zero = xp.zeros_like(middle)
    ahead, behind = (zero, -1 / right, 1 / right), (-1 / left, 1 / left, zero)
    pairs = zip(ahead if first else behind, (low, middle, high), strict=True)
    return tuple(xp.where(at_edge, a, b) for a, b in pairs)
