"""Timers count a block, waiting for what it started."""

import jax.numpy as jnp

from jaxtrace.utils.timing import Timer, timeit


def test_a_block_is_timed():
    timer = Timer("work")
    assert timer.elapsed == 0
    with timer as inside:
        first = inside.elapsed
        jnp.dot(jnp.ones((200, 200)), jnp.ones((200, 200)))
        assert inside.elapsed >= first
    assert timer.elapsed >= first
    assert timer.elapsed == timer.elapsed
    assert "work" in repr(timer)


def test_a_function_is_timed_apart_from_compiling():
    calls = []
    timing = timeit(lambda x: calls.append(x), 3, repeats=4, warmup=2)
    assert calls == [3] * 7
    assert len(timing.seconds) == 4
    assert timing.median >= 0
