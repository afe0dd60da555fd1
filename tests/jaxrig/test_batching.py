"""Oracle: a Python loop over the items."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxrig import batching
from jaxrig.batching import (
    axis_length,
    is_out_of_memory,
    map_chunked,
    map_workers,
    pad_axis,
)
from jaxrig.compilation import record_compilations
from jaxrig.keys import worker_keys
from jaxrig.progress import Meter
from jaxrig.testing import assert_trees_close


def walk(item, scale):
    x, key = item["x"], item["key"]
    noise = jax.random.normal(key, x.shape)
    return {"sum": jnp.cumsum(x * scale) + noise, "max": x.max()}


def make_items(count):
    keys = jax.random.split(jax.random.key(1), count)
    return {"x": jnp.arange(count * 3.0).reshape(count, 3) / 7, "key": keys}


def loop(items, scale):
    def row(i):
        return jax.jit(walk)(jax.tree.map(lambda x: x[i], items), scale)

    rows = [row(i) for i in range(axis_length(items))]
    return jax.tree.map(lambda *r: np.stack(r), *rows)


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 7, 10, 11, 64])
def test_every_chunk_size_gives_the_loop_with_one_compilation(chunk_size):
    items, scale = make_items(10), jnp.asarray(1.5)
    mapped = map_chunked(walk, chunk_size=chunk_size)
    mapped(items, scale)
    result = mapped(items, scale)
    assert mapped.trace_count == 1
    jax.tree.map(np.testing.assert_array_equal, result, loop(items, scale))


def test_another_length_of_axis_does_not_compile_again():
    mapped = map_chunked(lambda x: x + 1, chunk_size=4)
    for count in (1, 3, 4, 9):
        np.testing.assert_array_equal(mapped(np.arange(count)), np.arange(count) + 1)
    assert mapped.trace_count == 1


def test_an_empty_axis_gives_empty_results_of_the_right_shape():
    mapped = map_chunked(lambda x, mode: (x.sum(), x), chunk_size=4)
    result = mapped(jnp.zeros((0, 5)), "a static word")
    assert [r.shape for r in result] == [(0,), (0, 5)]
    mapped(jnp.zeros((7, 5)), "a static word")  # and spoils nothing
    assert mapped.trace_count == 1
    host = map_chunked(lambda x: x, chunk_size=4, to_host=True)(np.zeros((0, 5)))
    assert isinstance(host, np.ndarray)


def test_results_on_the_host():
    result = map_chunked(lambda x: x * 2, chunk_size=4, to_host=True)(np.arange(9))
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, np.arange(9) * 2)


def test_keys_may_come_out():
    keys = jax.random.split(jax.random.key(0), 5)
    fold = lambda key: jax.random.fold_in(key, 1)
    result = map_chunked(fold, chunk_size=2, to_host=True)(keys)
    assert_trees_close(result, jax.vmap(fold)(keys))


class Progress(Meter):
    def __init__(self):
        self.shown = []

    def show(self, done):
        self.shown.append(done)


def test_progress_counts_items():
    meter = Progress()
    map_chunked(lambda x: x, chunk_size=4, meter=meter)(jnp.arange(10))
    assert meter.shown == [4, 8, 10]


def exhausted(limit, error, monkeypatch):
    """Make every chunk larger than `limit` fail as an accelerator without room does."""
    real = jax.block_until_ready

    def block(tree):
        leaves = jax.tree.leaves(tree)
        if leaves and leaves[0].shape and leaves[0].shape[0] > limit:
            raise error
        return real(tree)

    monkeypatch.setattr(batching.jax, "block_until_ready", block)


OUT_OF_MEMORY = [
    jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes"),
    ValueError("RESOURCE_EXHAUSTED: Out of memory"),
    MemoryError(),
]


@pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=lambda e: type(e).__name__)
def test_out_of_memory_halves_and_completes(error, monkeypatch, caplog):
    exhausted(3, error, monkeypatch)
    meter = Progress()
    mapped = map_chunked(lambda x: x + 1, chunk_size=16, meter=meter, label="rows")
    np.testing.assert_array_equal(mapped(jnp.arange(20)), np.arange(20) + 1)
    assert mapped.chunk_size == 2
    assert mapped.trace_count == 4  # 16, 8, 4, 2
    assert meter.shown == list(range(2, 21, 2))
    assert "rows: out of memory with 16 items at once; going on with 8" in caplog.text


def test_out_of_memory_midway_keeps_what_is_done(monkeypatch):
    runs = []
    real = jax.block_until_ready

    def block(tree):
        runs.append(jax.tree.leaves(tree)[0].shape[0])
        if len(runs) == 3:
            raise OUT_OF_MEMORY[0]
        return real(tree)

    monkeypatch.setattr(batching.jax, "block_until_ready", block)
    result = map_chunked(lambda x: x * 3, chunk_size=4)(jnp.arange(14))
    np.testing.assert_array_equal(result, np.arange(14) * 3)
    assert runs == [4, 4, 4, 2, 2, 2]


def test_the_smallest_chunk_that_does_not_fit_is_an_error(monkeypatch):
    exhausted(0, OUT_OF_MEMORY[0], monkeypatch)
    with pytest.raises(MemoryError, match=r"chunk_size=2, and min_chunk_size=2"):
        map_chunked(lambda x: x, chunk_size=8, min_chunk_size=2)(jnp.arange(10))


def test_other_errors_are_not_retried(monkeypatch):
    exhausted(0, jax.errors.JaxRuntimeError("INTERNAL: broken"), monkeypatch)
    with pytest.raises(jax.errors.JaxRuntimeError, match="broken"):
        map_chunked(lambda x: x, chunk_size=8)(jnp.arange(10))
    assert not is_out_of_memory(ValueError("shape"))


def test_a_real_out_of_memory_error_is_recognized():
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError)) as caught:
        # 256 TiB: more than any address space, so no machine starts to fill it.
        jax.block_until_ready(jnp.zeros((2**24, 2**24), jnp.int8))
    assert is_out_of_memory(caught.value)


def test_workers_by_items_equal_the_loop():
    key = jax.random.key(5)
    draw = lambda key, shift: jax.random.uniform(key, (3,)) + shift
    run = map_workers(draw, workers=3, items_per_worker=4)
    run(key, jnp.asarray(0.0))
    with record_compilations() as log:
        result = run(key, jnp.asarray(1.0))
    assert not log.compilations
    keys = worker_keys(key, 3, 4)
    for w in range(3):
        for i in range(4):
            np.testing.assert_array_equal(result[w, i], draw(keys[w, i], 1.0))


@settings(max_examples=20)
@given(st.integers(1, 5), st.integers(0, 9))
def test_pad_axis_repeats_the_last_item(count, length):
    rows = np.arange(count * 2).reshape(count, 2)
    padded = pad_axis({"a": rows, "b": jnp.asarray(rows)}, length)
    expected = np.stack([rows[min(i, count - 1)] for i in range(max(count, length))])
    jax.tree.map(lambda x: np.testing.assert_array_equal(x, expected), padded)


def test_arrays_without_a_common_axis_are_refused():
    with pytest.raises(ValueError, match=r"\(2,\), \(3,\).*no common first axis"):
        axis_length([jnp.ones(2), jnp.ones(3)])
    with pytest.raises(ValueError, match="min_chunk_size"):
        map_chunked(lambda x: x, chunk_size=0)


def test_an_empty_axis_of_keys():
    keys = jax.random.split(jax.random.key(0), 3)[:0]
    found = map_chunked(lambda key: jax.random.normal(key, (2,)), chunk_size=4)(keys)
    assert found.shape == (0, 2)
