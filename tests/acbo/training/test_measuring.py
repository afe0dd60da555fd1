"""Oracle: functions whose cost is known."""

import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np

from acbo.training.measuring import (
    benchmark_sustained_performance,
    measure_compilation_speedup,
    monitor_memory_usage,
)


def test_both_results_come_back_with_the_seconds():
    calls = []
    function = jax.jit(lambda x: jnp.cumsum(x) * 3)

    def step(x):
        calls.append(x)
        return function(x)

    found = measure_compilation_speedup(step, jnp.ones(4))
    ratio, first, second = found
    assert len(calls) == 2
    np.testing.assert_array_equal(first, second)
    assert ratio > 0
    assert found.run_seconds > 0
    assert found.compile_seconds >= 0


def test_more_work_takes_longer():
    little = lambda n: sum(range(n))
    much = lambda n: [sum(range(n)) for _ in range(200)]
    assert benchmark_sustained_performance(little, much, (3000,), n_runs=5) > 5


def test_memory_of_heap_and_device():
    def keep(n):
        return bytearray(n), jnp.zeros(n, jnp.uint8)

    result, increase, peak = found = monitor_memory_usage(keep, 10**6)
    assert len(result[0]) == 10**6
    assert 10**6 <= increase <= peak
    assert found.device_increase >= 10**6
    assert not tracemalloc.is_tracing()


def test_tracing_that_runs_already_goes_on():
    tracemalloc.start()
    try:
        monitor_memory_usage(lambda: None)
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()
