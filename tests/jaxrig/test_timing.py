"""Oracle: a clock under the test's control, and programs known to compile or not."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig import timing
from jaxrig.compile_cache import cache_folder, keep_compilations, record_compilations
from jaxrig.timing import Timing, compare, measure, time_call


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


def test_one_call_gives_its_result_and_the_seconds_apart():
    function = jax.jit(lambda x, y: jnp.cosh(x) - y)
    result, _, compiling = time_call(function, jnp.ones(3), y=1.0)
    np.testing.assert_allclose(result, np.cosh(1.0) - 1.0, rtol=1e-6)
    assert compiling > 0
    again, seconds, compiling = time_call(function, jnp.ones(3), y=1.0)
    np.testing.assert_array_equal(again, result)
    assert compiling == 0
    assert seconds > 0


def test_bad_counts_are_refused():
    with pytest.raises(ValueError, match="repeats is 0"):
        measure(lambda: 1, repeats=0)


def test_records_each_compilation_by_name_with_seconds():
    def a_rare_name(x):
        return jnp.cos(x) * 3 + x

    x = jnp.arange(5.0)
    function = jax.jit(a_rare_name)
    with record_compilations() as first:
        function(x)
    with record_compilations() as second:
        function(x)
    (compilation,) = first.compilations
    known = jax.__version_info__ >= (0, 8)  # earlier ones do not say what they compile
    assert compilation.name.removeprefix("jit(").rstrip(")") == (
        "a_rare_name" if known else "?"
    )
    assert first.seconds > compilation.seconds > 0
    assert second.compilations == []
    assert second.seconds == 0


def test_blocks_nest():
    x = jnp.arange(3.0)
    with record_compilations() as outer:
        jax.jit(lambda x: x * 5 + 1)(x)
        with record_compilations() as inner:
            jax.jit(lambda x: x * 7 + 1)(x)
    with record_compilations() as first:  # equal logs are still two
        with record_compilations() as empty:
            pass
        jax.jit(lambda x: x * 11 + 1)(x)
    found = [len(log.compilations) for log in (outer, inner, first, empty)]
    assert found == [2, 1, 1, 0]


def test_cache_folder_follows_the_environment(monkeypatch):
    monkeypatch.setenv("JAXRIG_CACHE", "/somewhere")
    assert cache_folder() == Path("/somewhere")
    monkeypatch.delenv("JAXRIG_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert cache_folder() == Path("/cache/jaxrig")


def test_a_cache_chosen_before_is_left_alone(tmp_path):
    chosen = jax.config.values["jax_compilation_cache_dir"]  # set in conftest
    assert keep_compilations(tmp_path) == Path(chosen)
    assert jax.config.values["jax_compilation_cache_dir"] == chosen
