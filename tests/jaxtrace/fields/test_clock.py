"""Times as weights, against rules written naively and SciPy's cubic."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicHermiteSpline

from jaxtrace.fields.clock import (
    EXTRAPOLATIONS,
    INTERPOLATIONS,
    make_clock,
    steady_clock,
)

UNEVEN = np.array([-1.0, 0.5, 0.75, 2.0, 5.0, 5.5])
VALUES = np.array([3.0, -1.0, 4.0, 1.0, -5.0, 9.0])


def blend(instant, values):
    return np.sum(np.asarray(instant.weights) * values[np.asarray(instant.slices)], -1)


def inside(times, values, t, interpolation, wraps=False):
    if interpolation == "linear":
        return np.interp(t, times, values)
    if interpolation == "nearest":
        i = np.searchsorted(times, t, side="right") - 1
        i = min(i, len(times) - 2)
        closer = t - times[i] >= times[i + 1] - t
        return values[i + 1 if closer else i]
    slopes = np.gradient(values, times)
    if wraps:  # one period before and one after
        period = times[-1] - times[0]
        times = np.concatenate([times[:-1] - period, times, times[1:] + period])
        values = np.concatenate([values[:-1], values, values[1:]])
        slopes = np.gradient(values, times)
    return CubicHermiteSpline(times, values, slopes)(t)


def naive(times, values, t, interpolation, extrapolation):
    first, last = times[0], times[-1]
    if first <= t <= last:
        return inside(times, values, t, interpolation, extrapolation == "periodic")
    if extrapolation == "periodic":
        wrapped = first + (t - first) % (last - first)
        return inside(times, values, wrapped, interpolation, True)
    if extrapolation in ("zero", "nan"):
        return 0.0 if extrapolation == "zero" else np.nan
    if extrapolation == "constant" or interpolation == "nearest":
        return values[0] if t < first else values[-1]
    i, j = (0, 1) if t < first else (-2, -1)
    return values[i] + (t - times[i]) * (values[j] - values[i]) / (times[j] - times[i])


def values_for(extrapolation):
    closed = VALUES.copy()
    if extrapolation == "periodic":
        closed[-1] = closed[0]
    return closed


ANSWERS = [rule for rule in EXTRAPOLATIONS if rule != "error"]


@pytest.mark.parametrize("extrapolation", ANSWERS)
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_every_rule_inside_and_beyond_the_record(interpolation, extrapolation):
    clock = make_clock(UNEVEN, interpolation, extrapolation)
    values = values_for(extrapolation)
    instants = np.concatenate([np.linspace(-9, 14, 173), UNEVEN])
    expected = [
        naive(UNEVEN, values, t, interpolation, extrapolation) for t in instants
    ]
    found = blend(clock.instant(instants), values)
    assert np.allclose(found, expected, atol=1e-12, equal_nan=True)


def test_traced_times_follow_the_same_rules():
    rules = itertools.product(INTERPOLATIONS, ANSWERS)
    clocks = [make_clock(UNEVEN, *pair) for pair in rules]
    instants = np.linspace(-4, 9, 40)
    with jax.enable_x64(True):  # one program for all
        ask = jax.jit(lambda clocks, t: [clock.instant(t) for clock in clocks])
        found = ask(clocks, jnp.asarray(instants))
    for clock, traced in zip(clocks, found, strict=True):
        host, values = clock.instant(instants), values_for(clock.extrapolation)
        expected = blend(host, values)
        assert np.allclose(blend(traced, values), expected, 0, 1e-12, equal_nan=True)
        assert traced.slices.dtype == host.slices.dtype == np.int32


def test_one_instant_and_many_agree():
    clock = make_clock(UNEVEN, "cubic", "linear")
    instants = np.linspace(-3, 7, 11).reshape(11, 1)
    many = clock.instant(instants)
    assert many.slices.shape == (11, 1, 4)
    for row, t in enumerate(instants[:, 0]):
        one = clock.instant(float(t))
        assert np.array_equal(one.slices, many.slices[row, 0])
        assert np.allclose(one.weights, many.weights[row, 0], atol=1e-15)


def test_a_cubic_reproduces_quadratics_between_inner_slices():
    clock = make_clock(UNEVEN, "cubic", "constant")
    instants = np.linspace(UNEVEN[1], UNEVEN[-2], 50)
    found = blend(clock.instant(instants), 2 * UNEVEN**2 - 3 * UNEVEN + 1)
    assert np.allclose(found, 2 * instants**2 - 3 * instants + 1, atol=1e-12)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_slices_that_share_an_instant_are_a_jump(interpolation):
    times = np.array([0.0, 1.0, 1.0, 1.0, 2.0, 2.0])
    values = np.array([0.0, 0.0, 50.0, 7.0, 7.0, 9.0])
    clock = make_clock(times, interpolation, "constant")
    before, after = np.nextafter(1, 0), np.nextafter(1, 2)
    found = blend(clock.instant(np.array([0.5, before, 1.0, after, 1.5, 2.0])), values)
    assert np.allclose(found, [0, 0, 7, 7, 7, 9], atol=1e-6)


def test_a_single_slice_holds_at_all_times_or_at_its_own_alone():
    instants = np.array([-1.0, 3.0, 8.0])
    for rule in ("constant", "linear", "periodic"):
        clock = make_clock([3.0], "linear", rule)
        assert np.array_equal(clock.instant(instants).weights, np.ones((3, 1)))
    only = make_clock([3.0], "linear", "zero").instant(instants).weights
    assert only[:, 0].tolist() == [0, 1, 0]


@pytest.mark.parametrize("extrapolation", ANSWERS)
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_slopes_are_those_of_the_interpolant(interpolation, extrapolation):
    clock = make_clock(UNEVEN, interpolation, extrapolation)
    values = values_for(extrapolation)
    instants = np.linspace(-3.03, 7.07, 60)
    slope = blend(clock.slope(instants), values)
    ahead, back = (blend(clock.instant(instants + h), values) for h in (1e-6, -1e-6))
    assert np.allclose(slope, (ahead - back) / 2e-6, atol=1e-6, equal_nan=True)


def test_the_slope_at_a_slice_is_that_of_what_follows_and_at_the_last_before():
    clock = make_clock(UNEVEN, "linear", "constant")
    expected = np.append(np.diff(VALUES) / np.diff(UNEVEN), 14 / 0.5)
    assert np.allclose(blend(clock.slope(UNEVEN), VALUES), expected)
    assert blend(clock.slope(99.0), VALUES) == 0
    assert make_clock([1.0], "cubic", "constant").slope(4.0).weights.tolist() == [0.0]


@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=8),
    st.sampled_from(INTERPOLATIONS),
    st.sampled_from(("constant", "linear")),
    st.floats(-5, 50),
)
@settings(max_examples=150)
@pytest.mark.slow  # compiles a program of its own
def test_weights_sum_to_one_for_any_record(steps, interpolation, extrapolation, t):
    clock = make_clock(np.sort(steps), interpolation, extrapolation)
    assert np.isclose(clock.instant(t).weights.sum(), 1)
    assert np.isclose(clock.slope(t).weights.sum(), 0, atol=1e-9)


@pytest.mark.parametrize(
    ("times", "rules", "message"),
    [
        ([0, 2, 1], {}, r"times\[2\] = 1.0 follows times\[1\] = 2.0"),
        ([], {}, "one number per slice"),
        ([[0, 1]], {}, "one number per slice"),
        ([0, np.nan], {}, "not finite"),
        ([0, 0], {"extrapolation": "periodic"}, "a last time after its first"),
        ([0, 1], {"interpolation": "quintic"}, "choose one of linear, nearest, cubic"),
        ([0, 1], {"extrapolation": "mirror"}, "choose one of constant"),
    ],
)
def test_wrong_records_are_refused(times, rules, message):
    given = {"interpolation": "linear", "extrapolation": "constant", **rules}
    with pytest.raises(ValueError, match=message):
        make_clock(times, **given)


def test_a_record_has_ends_and_a_single_slice_none():
    assert make_clock([0, 1], "linear", "wrap").extrapolation == "periodic"
    assert make_clock([1.0, 2.0, 4.0], "linear", "constant").bounds() == (1.0, 4.0)
    assert steady_clock().bounds() == (-np.inf, np.inf)


def test_times_beyond_the_record_may_be_refused():
    clock = make_clock([0.0, 10.0], "linear", "error")
    assert clock.instant(np.array([0.0, 10.0])).weights.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match=r"t = 11 lies beyond the record, .* 0 to 10"):
        clock.instant(np.array([5.0, 11.0]))
