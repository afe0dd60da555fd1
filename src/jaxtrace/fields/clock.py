"""Time interpolation: instants as weights of stored slices.

Which slices an instant needs, and how much of each, depends on time alone; a run works
it out once on the host in float64, and the same rules serve traced times.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxtrace.types import check_choice

INTERPOLATIONS = ("linear", "nearest", "cubic")
EXTRAPOLATIONS = ("constant", "linear", "periodic", "zero", "nan", "error")

Numbers = Array | np.ndarray | np.generic | float


class Instant(eqx.Module):
    """An instant as a field sees it: the time, the slices it needs and their weights.

    Instants may be one for all particles or one for each; the last axis of `slices`
    and `weights` counts the slices blended (one, two or four). `rates`, where a field
    asks for them, are those at which the weights change.
    """

    time: Float[Array | np.ndarray, "*when"]
    slices: Int[Array | np.ndarray, "*when blended"]
    weights: Float[Array | np.ndarray, "*when blended"]
    rates: Float[Array | np.ndarray, "*when blended"] | None = None

    def astype(self, dtype: Any) -> "Instant":
        """Return the same with time and weights in another precision."""
        rates = None if self.rates is None else self.rates.astype(dtype)
        weights = self.weights.astype(dtype)
        return Instant(self.time.astype(dtype), self.slices, weights, rates)


class Clock(eqx.Module):
    """The instants of a field's slices, and the rule between and beyond them."""

    times: Float[Array | np.ndarray, " slices"]
    interpolation: str = eqx.field(static=True, default="linear")
    extrapolation: str = eqx.field(static=True, default="constant")

    def instant(self, time: Numbers, rates: bool = False) -> Instant:
        """Return the slices and weights of an instant, or of an array of them."""
        traced = isinstance(time, jax.Array) or isinstance(self.times, jax.Array)
        xp: Any = jnp if traced else np
        when, times = xp.asarray(time), xp.asarray(self.times)
        if not (traced and jnp.issubdtype(when.dtype, jnp.floating)):
            when = when.astype(times.dtype)
        times = times.astype(when.dtype)
        found = self._weigh(xp, when, times)
        if not rates:
            return found
        change = self._weigh(xp, when, times, rate=True).weights
        return Instant(found.time, found.slices, found.weights, change)

    def slope(self, time: Numbers) -> Instant:
        """Return the slices' weights in the rate of change, on the host.

        Where two intervals meet it is the rate of the later one.
        """
        when = np.asarray(time, np.float64)
        return self._weigh(np, when, np.asarray(self.times), rate=True)

    def bounds(self) -> tuple[float, float]:
        """Return the first and the last instant; a single slice has no ends."""
        times = np.asarray(self.times)
        if len(times) == 1:
            return -np.inf, np.inf
        return float(times[0]), float(times[-1])

    def _weigh(self, xp: Any, when: Any, times: Any, rate: bool = False) -> Instant:
        """Return slices and their weights, or how fast the weights change in time."""
        first, last = times[0], times[-1]
        outside, inside = (when < first) | (when > last), when
        if times.shape[0] == 1:
            # The same at all times, or nothing at any instant but its own.
            slices = xp.zeros((*when.shape, 1), np.int32)
            weights = xp.full((*when.shape, 1), 0.0 if rate else 1.0, when.dtype)
            return Instant(when, slices, self._fill(xp, weights, outside, rate))
        if self.extrapolation == "periodic":
            wrapped = first + xp.mod(when - first, last - first)
            inside = xp.where(outside, wrapped, when)
            outside = xp.zeros_like(outside)
        elif self.extrapolation != "linear" or self.interpolation == "nearest":
            inside = xp.clip(when, first, last)
        if self.extrapolation == "error" and xp is np:
            _refuse(when, times)
        slices, weights = self._blend(xp, inside, times, rate)
        return Instant(when, slices, self._fill(xp, weights, outside, rate))

    def _blend(self, xp: Any, when: Any, times: Any, rate: bool) -> tuple[Any, Any]:
        index, s, width = _bracket(xp, when, times)
        one = xp.ones_like(s)
        if self.interpolation == "nearest":
            later = (s >= 0.5).astype(np.int32)
            return (index + later)[..., None], (0 * one if rate else one)[..., None]
        powers = (one, s, s * s, s * s * s)
        if rate:
            proper = width > 0
            pace = xp.where(proper, 1 / xp.where(proper, width, one), 0 * one)
            powers = tuple(pace * p for p in (0 * one, one, 2 * s, 3 * s * s))
        straight = powers[0] - powers[1], powers[1]
        if self.interpolation == "linear":
            return xp.stack([index, index + 1], -1), xp.stack(straight, -1)
        wraps = self.extrapolation == "periodic"
        slices, cubic = _catmull_rom(xp, index, powers, times, wraps)
        # Beyond the ends a cubic runs away: the slope of the last pair is kept.
        runaway = (s < 0) | (s > 1)
        straight = xp.stack([0 * s, *straight, 0 * s], -1)
        return slices, xp.where(runaway[..., None], straight, cubic)

    def _fill(self, xp: Any, weights: Any, outside: Any, rate: bool) -> Any:
        """Return weights that make velocities outside the record 0 or NaN."""
        fills = {"zero": 0.0, "nan": np.nan}
        # Traced times cannot raise; rounding may put a host's last one beyond the end.
        if self.extrapolation == "error" and xp is jnp:
            fills["error"] = np.nan
        if rate and self.extrapolation != "linear":
            fills.setdefault(self.extrapolation, 0.0)
        if self.extrapolation not in fills:
            return weights
        fill = xp.asarray(fills[self.extrapolation], weights.dtype)
        return xp.where(outside[..., None], fill, weights)


def _refuse(when: np.ndarray, times: np.ndarray) -> None:
    """Raise ValueError for instants beyond the record, but for rounding."""
    slack = 1e-9 * (times[-1] - times[0])
    beyond = when[(when < times[0] - slack) | (when > times[-1] + slack)]
    if beyond.size:
        raise ValueError(
            f"t = {beyond.flat[0]:g} lies beyond the record, which runs from "
            f"{times[0]:g} to {times[-1]:g}: choose a time_span within it, or "
            'extrapolation = "constant" to keep the last slice'
        )


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
        extrapolation = "periodic" if extrapolation == "wrap" else extrapolation
        check_choice("interpolation", interpolation, INTERPOLATIONS)
        check_choice("extrapolation", extrapolation, EXTRAPOLATIONS)
        clock = Clock(_check_times(times), interpolation, extrapolation)
        first, last = clock.times[0], clock.times[-1]
        if extrapolation == "periodic" and clock.times.size > 1 and first == last:
            raise ValueError("a periodic record needs a last time after its first")
    count = clock.times.shape[0]
    if slices not in (None, count):
        raise ValueError(f"{slices} slices and {count} times: give one per slice")
    return clock


def _check_times(times: Any) -> Float[np.ndarray, " slices"]:
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
    return times


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


def _bracket(xp: Any, when: Any, times: Any) -> tuple[Any, Any, Any]:
    """Return the interval that holds an instant, how far into it, and its width.

    Of slices that share an instant the later one holds from that instant on.
    """
    index = xp.searchsorted(times, when, side="right") - 1
    index = xp.clip(index, 0, times.shape[0] - 2).astype(np.int32)
    start, width = times[index], times[index + 1] - times[index]
    proper = width > 0
    share = (when - start) / xp.where(proper, width, 1)
    # Only the last interval can be met with no width: its end is the last slice.
    return index, xp.where(proper, share, xp.ones_like(share)), width


def _catmull_rom(
    xp: Any, index: Any, powers: tuple[Any, ...], times: Any, wraps: bool
) -> tuple[Any, Any]:
    """Return four slices and weights of the cubic through the middle two.

    `powers` of the share of an interval, or their rates, go in. Slopes are those of the
    parabola through each slice and its neighbors, so that uneven spacing is honored; at
    the ends of a record that does not repeat they are those of the end intervals.
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
    p0, p1, p2, p3 = powers
    high = 3 * p2 - 2 * p3
    to_start, to_end = here * (p1 - 2 * p2 + p3), here * (p3 - p2)
    start, end = _slope(xp, last, here, True), _slope(xp, here, coming, False)
    weights = [
        to_start * start[0],
        p0 - high + to_start * start[1] + to_end * end[0],
        high + to_start * start[2] + to_end * end[1],
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
