"""Oracle: functions whose cost is known.

Oracle: the guide's own two functions, which these replace.

Oracle: dtypes.
"""

import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acbo.training import mixed_precision
from acbo.training.measuring import (
    benchmark_sustained_performance,
    measure_compilation_speedup,
    monitor_memory_usage,
    prepare_static_args,
    restore_static_args,
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


NAMES = st.text("XYZW", min_size=1, max_size=3)
SETS = st.lists(st.lists(st.frozensets(NAMES)))


@given(SETS, st.lists(st.lists(NAMES)), st.lists(NAMES))
def test_round_trip_is_exact_and_hashable(sets, orders, targets):
    frozen = prepare_static_args(sets, orders, targets)
    assert isinstance(hash(frozen), int)
    assert restore_static_args(frozen) == (sets, orders, targets)


def test_sets_are_sorted_and_lists_keep_their_order():
    found = prepare_static_args([[frozenset("ZX"), frozenset()]], [["Z", "X"]], ["Y"])
    assert found == (((("X", "Z"), ()),), (("Z", "X"),), ("Y",))


def test_the_policy_casts_by_role():
    policy = mixed_precision.create_policy(compute_dtype=jnp.float16)
    tree = {"weight": jnp.ones(2), "count": jnp.arange(2), "name": "x"}
    cast = policy.cast_to_compute(tree)
    assert cast["weight"].dtype == jnp.float16
    assert cast["count"].dtype == jnp.int32
    assert cast["name"] == "x"
    assert policy.cast_to_output(cast)["weight"].dtype == jnp.float32
    assert policy.cast_to_param(cast)["weight"].dtype == jnp.float32
    assert hash(policy) == hash(mixed_precision.create_policy(jnp.float16))
    jax.jit(policy.cast_to_compute)({"weight": jnp.ones(2)})


def test_integers_are_refused():
    with pytest.raises(ValueError, match="not a floating-point type"):
        mixed_precision.create_policy(compute_dtype=jnp.int8)
