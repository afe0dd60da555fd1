"""Oracle: a clock under the test's control, and known arithmetic on its readings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig import timing
from jaxrig.timing import PerformanceMonitor, Timing, compare, measure


@pytest.fixture
def clock(monkeypatch):
    """Wall time that moves only when a timed function says so."""
    now = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(timing.time, "process_time", lambda: 2 * now[0])
    return now


def test_statistics_of_known_seconds():
    assert Timing(0.0, (0.0, 0.0), (0.0, 0.0)).spread == 0.0
    known = Timing(1.0, tuple(float(s) for s in range(1, 102)), (2.0,) * 101)
    assert (known.median, known.p95) == (51.0, 96.0)
    assert known.spread == pytest.approx(50 / 51)
    assert known.per_second(102) == 2.0
    assert known.per_cpu_second(10) == 5.0


def test_compare_interleaves_and_alternates_the_order(clock):
    calls = []

    def make(name, seconds):
        def run():
            calls.append(name)
            clock[0] += seconds

        return run

    result = compare({"a": make("a", 1), "b": make("b", 3)}, repeats=4, warmup=0)
    assert "".join(calls) == "ab" + "abbaabba"
    assert result["a"].seconds == (1,) * 4
    assert result["b"].seconds == (3,) * 4
    assert result["b"].cpu_seconds == (6,) * 4


def test_compile_seconds_are_apart_from_run_seconds():
    function = jax.jit(lambda x: jnp.tanh(x) @ jnp.tanh(x).T)
    first = measure(function, jnp.ones((64, 64)), repeats=5)
    again = measure(function, jnp.ones((64, 64)), repeats=5)
    assert first.compile_seconds > 0
    assert again.compile_seconds == 0
    assert len(first.seconds) == 5


def test_bad_counts_are_refused():
    with pytest.raises(ValueError, match="repeats=0"):
        measure(lambda: 1, repeats=0)


def test_monitor_as_the_document_uses_it(capsys):
    def reset(key):
        return jnp.zeros(3) + key

    @jax.jit
    def step(state, action):
        return state + action

    monitor = PerformanceMonitor(step=step, reset=reset, batch_step=jax.vmap(step))
    monitor.monitor_reset(jnp.ones(3))
    state = monitor.monitor_reset(jnp.ones(3))
    for _ in range(5):
        state = monitor.monitor_step(state, jnp.ones(3))
    np.testing.assert_array_equal(state, np.full(3, 6.0))
    for _ in range(2):
        monitor.monitor_batch_step(jnp.zeros((4, 3)), jnp.ones((4, 3)))
    statistics = monitor.get_statistics()
    assert len(monitor.metrics["step_times"]) == 4  # the first one compiled
    assert len(monitor.metrics["memory_usage"]) == 9
    assert min(monitor.metrics["memory_usage"]) > 10
    assert statistics["step_time_min"] <= statistics["step_time_mean"]
    assert statistics["throughput_mean"] == statistics["throughput_max"] > 0
    assert monitor.metrics["jit_compilation_times"]["step"] > 0
    monitor.print_report()
    assert "step_time_mean" in capsys.readouterr().out


def test_monitor_without_a_function_says_so():
    with pytest.raises(ValueError, match=r"PerformanceMonitor\(step="):
        PerformanceMonitor().monitor_step()


def test_empty_monitor_has_no_statistics():
    assert PerformanceMonitor().get_statistics() == {}
