"""Oracle: a naive replay of the rule on scripted times."""

import pytest

from jaxrig.throttle import Interval, SlowCalls


def replay(throttle, seconds):
    """Which of the calls run, when call i would take seconds[i]."""
    admitted = []
    for taken in seconds:
        admitted.append(throttle.admit())
        if admitted[-1]:
            throttle.observe(taken)
    return admitted


def test_quick_calls_all_run():
    assert all(replay(SlowCalls(max_mean_ms=10), [0.001] * 50))


def test_slow_calls_run_every_tenth():
    admitted = replay(SlowCalls(max_mean_ms=10, every=10), [0.1] * 41)
    assert [i for i, ran in enumerate(admitted) if ran] == [0, 10, 20, 30, 40]


def test_throttling_starts_and_stops_as_times_change():
    throttle = SlowCalls(max_mean_ms=10, every=4, window=2)
    assert replay(throttle, [0.001] * 3) == [True] * 3
    assert replay(throttle, [0.1] * 5) == [True, False, False, False, True]
    quick = replay(throttle, [0.0001] * 20)
    assert quick[:3] == [False] * 3
    assert all(quick[8:])


def test_interval_admits_after_the_interval():
    now = [0.0]
    interval = Interval(5.0, clock=lambda: now[0])
    admitted = []
    for now[0] in (0.0, 1.0, 4.9, 5.0, 9.0, 10.0):
        admitted.append(interval.admit())
    assert admitted == [True, False, False, True, False, True]


def test_bad_limits_are_refused():
    with pytest.raises(ValueError, match="every=0"):
        SlowCalls(every=0)
