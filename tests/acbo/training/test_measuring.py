"""Oracle: functions whose cost is known, and the guide's own conversions."""

import tracemalloc
from functools import partial
from time import sleep

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acbo.training import measuring, mixed_precision


def test_the_first_call_is_compared_with_the_second():
    seconds = iter((0.2, 0.0))

    def step(x):
        sleep(next(seconds))
        return x + 1

    ratio, first, second = measuring.measure_compilation_speedup(step, 2)
    assert (first, second) == (3, 3)
    assert ratio > 1


def test_sustained_calls_are_compared_warm():
    calls = {"jax": 0, "regular": 0}

    def counted(name):
        calls[name] += 1
        sleep(0.01 if name == "regular" else 0)

    steps = partial(counted, "jax"), partial(counted, "regular")
    assert measuring.benchmark_sustained_performance(*steps, (), n_runs=3) > 1
    assert calls["jax"] == calls["regular"] > 3


def test_memory_of_heap_and_device():
    def keep(n):
        return bytearray(n), jnp.zeros(n, jnp.uint8)

    result, increase, peak = found = measuring.monitor_memory_usage(keep, 10**6)
    assert len(result[0]) == 10**6
    assert 10**6 <= increase <= peak
    assert found.device_increase >= 10**6
    assert not tracemalloc.is_tracing()


def test_tracing_that_runs_already_goes_on():
    tracemalloc.start()
    try:
        measuring.monitor_memory_usage(lambda: None)
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


NAMES = st.text("XYZW", min_size=1, max_size=3)
SETS = st.lists(st.lists(st.frozensets(NAMES)))


@settings(max_examples=30)
@given(SETS, st.lists(st.lists(NAMES)), st.lists(NAMES))
def test_round_trip_is_exact_and_hashable(sets, orders, targets):
    frozen = measuring.prepare_static_args(sets, orders, targets)
    assert isinstance(hash(frozen), int)
    assert measuring.restore_static_args(frozen) == (sets, orders, targets)


def test_sets_are_sorted_and_lists_keep_their_order():
    found = measuring.prepare_static_args(
        [[frozenset("ZX"), frozenset()]], [["Z", "X"]], ["Y"]
    )
    assert found == (((("X", "Z"), ()),), (("Z", "X"),), ("Y",))


def test_a_policy_names_the_precision_of_computation():
    policy = mixed_precision.create_policy(compute_dtype=jnp.float16)
    assert (policy.compute_dtype, policy.param_dtype) == (jnp.float16, jnp.float32)
    assert hash(policy) == hash(mixed_precision.create_policy(jnp.float16))
    with pytest.raises(ValueError, match="not a floating-point type"):
        mixed_precision.create_policy(compute_dtype=jnp.int8)
