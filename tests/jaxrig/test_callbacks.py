"""Oracle: the computation without the callback, counts by hand, scripted times."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import compiled_text
from jaxrig import callbacks
from jaxrig.compile_guard import compile_once


@pytest.fixture(autouse=True)
def fresh_statistics():
    callbacks.reset_callback_statistics()


def broken(*_):
    raise RuntimeError("the picture cannot be drawn")


def with_callback(x):
    callbacks.host_callback(broken, x, "title", name="broken")
    return x * 2


def without_callback(x):
    return x * 2


def scanned(body):
    def run(xs):
        return jax.lax.scan(lambda carry, x: (carry + x, body(x)), xs[0], xs)

    return run


TRANSFORMS = {
    "jit": jax.jit,
    "vmap": lambda f: jax.jit(jax.vmap(f)),
    "scan": lambda f: jax.jit(scanned(f)),
    "scan of vmap": lambda f: jax.jit(lambda xs: scanned(jax.vmap(f))(xs[:, None])),
    "grad": lambda f: jax.jit(jax.grad(lambda x: f(x).sum())),
}
CALLS = {"jit": 1, "vmap": 4, "scan": 4, "scan of vmap": 4, "grad": 1}


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_failing_callback_is_counted_and_changes_nothing(transform, caplog):
    xs = jnp.arange(4.0)
    with caplog.at_level(logging.CRITICAL, logger="jaxrig.callbacks"):
        result = TRANSFORMS[transform](with_callback)(xs)
        found = callbacks.callback_statistics()["broken"]
    expected = TRANSFORMS[transform](without_callback)(xs)
    jax.tree.map(np.testing.assert_array_equal, result, expected)
    assert found["error_count"] == found["total_calls"] == CALLS[transform]


def test_the_error_is_logged_with_its_name_and_cause(caplog):
    with caplog.at_level(logging.ERROR, logger="jaxrig.callbacks"):
        jax.jit(with_callback)(jnp.ones(1))
        jax.effects_barrier()
    assert "'broken' failed" in caplog.text
    assert "the picture cannot be drawn" in caplog.text


def test_arrays_arrive_as_numpy_and_the_rest_as_given():
    seen = []

    @jax.jit
    def run(x):
        callbacks.host_callback(
            lambda *a, **k: seen.append((a, k)), {"x": x}, "t", flag=None
        )
        return x

    run(jnp.arange(3))
    jax.effects_barrier()
    (((tree, text), named),) = seen
    assert isinstance(tree["x"], np.ndarray)
    np.testing.assert_array_equal(tree["x"], [0, 1, 2])
    assert (text, named) == ("t", {"flag": None})


def test_large_arrays_do_not_block():
    total = []

    @jax.jit
    def run(x):
        callbacks.host_callback(lambda v: total.append(float(v.sum())), x)
        return (x @ x.T).sum()

    x = jnp.ones((1000, 1000))
    for _ in range(3):
        run(x)
    jax.effects_barrier()
    assert total == [1e6] * 3


def test_ordered_calls_keep_their_order():
    seen = []

    def body(carry, i):
        callbacks.host_callback(lambda i: seen.append(int(i)), i, ordered=True)
        return carry, None

    jax.jit(lambda: jax.lax.scan(body, 0, jnp.arange(50)))()
    jax.effects_barrier()
    assert seen == list(range(50))


def test_off_means_no_callback_in_the_compiled_program():
    def program(enabled):
        def run(x):
            callbacks.host_callback(broken, x, enabled=enabled)
            return x * 2

        return compiled_text(run, jnp.ones(2))

    assert "custom-call" in program(True)
    assert "custom-call" not in program(False)


def test_throttling_starts_and_stops_at_run_time_without_compiling_again():
    clock, cost = [0.0], [0.1]
    ran = []

    def draw(i):
        ran.append(int(i))
        clock[0] += cost[0]

    throttle = callbacks.SlowCalls(max_mean_ms=10.0, every=5, window=1)

    @compile_once
    def step(i):
        callbacks.host_callback(draw, i, name="draw", throttle=throttle, ordered=True)
        return i + 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(callbacks.time, "perf_counter", lambda: clock[0])
        for i in range(11):
            step(jnp.asarray(i))
        jax.effects_barrier()
        assert ran == [0, 5, 10]
        cost[0] = 0.0
        for i in range(11, 20):
            step(jnp.asarray(i))
        found = callbacks.callback_statistics()["draw"]
    assert ran == [0, 5, 10, 15, 16, 17, 18, 19]
    assert found["skipped_calls"] == 12
    assert found["total_calls"] + found["skipped_calls"] == 20
    assert step.trace_count == 1


def test_statistics_of_known_calls_and_memory_bounded_in_names(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(callbacks.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(callbacks, "MAX_NAMES", 3)

    def take(seconds):
        now[0] += seconds
        if seconds > 0.002:
            raise RuntimeError

    logging.disable()
    for seconds in (0.001, 0.003):
        callbacks.run_guarded(lambda s=seconds: take(s), "a")
    logging.disable(logging.NOTSET)
    slow = callbacks.SlowCalls(max_mean_ms=0.0)
    slow.observe(1.0)
    callbacks.run_guarded(lambda: None, "a", slow)
    assert callbacks.callback_statistics()["a"] == pytest.approx(
        {
            "total_calls": 2,
            "error_count": 1,
            "skipped_calls": 1,
            "avg_time_ms": 2.0,
            "max_time_ms": 3.0,
            "min_time_ms": 1.0,
            "total_time_ms": 4.0,
        }
    )
    for i in range(10):
        callbacks.run_guarded(lambda: None, f"name {i}")
    found = callbacks.callback_statistics()
    assert len(found) == 4
    assert found[callbacks.OTHER]["total_calls"] == 8


def test_bad_limits_are_refused():
    with pytest.raises(ValueError, match="every is 0"):
        callbacks.SlowCalls(every=0)
