"""Oracle: a loop over the items, and programs whose memory is known by arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig import batching
from jaxrig.compile_guard import compile_once
from jaxrig.memory import compiled_memory
from jaxrig.progress import Meter
from jaxrig.testing import assert_trees_close


def walk(item, scale):
    x, key = item["x"], item["key"]
    noise = jax.random.normal(key, x.shape)
    return {"sum": jnp.cumsum(x * scale) + noise, "max": x.max()}


SCALE = np.float32(1.5)


@pytest.fixture(scope="module")
def looped():
    """Return ten items on the device, and the function of each."""
    keys = jax.random.split(jax.random.key(1), 10)
    x = np.arange(30, dtype=np.float32).reshape(10, 3) / np.float32(7)
    single = jax.jit(walk)
    rows = [single({"x": x[i], "key": keys[i]}, SCALE) for i in range(10)]
    items = {"x": jax.device_put(x), "key": keys}
    return items, jax.tree.map(lambda *r: np.stack(r), *rows)


@pytest.mark.parametrize("chunk_size", [3, 64])
def test_every_chunk_size_gives_the_loop_with_one_compilation(chunk_size, looped):
    items, expected = looped
    mapped = batching.map_chunked(walk, chunk_size=chunk_size)
    mapped(items, SCALE)
    result = mapped(items, SCALE)
    assert mapped.trace_count == 1
    jax.tree.map(np.testing.assert_array_equal, result, expected)


def test_chunks_that_run_together_come_in_order():
    for together in (2, 9):
        squares = batching.map_chunked(lambda x: x**2, chunk_size=3, together=together)
        np.testing.assert_array_equal(squares(np.arange(20)), np.arange(20) ** 2)
    with pytest.raises(ValueError, match="together is 0"):
        batching.map_chunked(lambda x: x, chunk_size=3, together=0)


def test_parts_that_run_together_are_the_whole():
    parts = batching.split_axis({"x": jnp.arange(6), "y": jnp.ones((6, 2))}, 3)
    doubled = batching.call_together(jax.jit(lambda p: p["x"] * 2), parts)
    assert batching.join_axis(doubled).tolist() == [0, 2, 4, 6, 8, 10]
    with pytest.raises(ValueError, match="7 items are no 2 equal parts"):
        batching.split_axis(jnp.arange(7), 2)


def test_an_empty_axis_gives_empty_results_of_the_right_shape():
    mapped = batching.map_chunked(lambda x, mode: (x.sum(), x), chunk_size=4)
    result = mapped(np.zeros((0, 5), np.float32), "a static word")
    assert [r.shape for r in result] == [(0,), (0, 5)]
    mapped(np.zeros((7, 5), np.float32), "a static word")  # and spoils nothing
    assert mapped.trace_count == 1
    host = batching.map_chunked(lambda x: x, chunk_size=4, to_host=True)(
        np.zeros((0, 5))
    )
    assert isinstance(host, np.ndarray)
    keys = jax.random.split(jax.random.key(0), 3)[:0]
    mapped = batching.map_chunked(lambda k: (k, 1.0), chunk_size=4, to_host=True)
    same, ones = mapped(keys)  # NumPy has no keys
    assert same.dtype == keys.dtype
    assert same.shape == ones.shape == (0,)
    assert isinstance(ones, np.ndarray)


def test_results_on_the_host_are_numpy_and_keys():
    keys = jax.random.split(jax.random.key(0), 5)
    fold = lambda key: (jax.random.fold_in(key, 1), jax.random.normal(key, (2,)))
    found, noise = batching.map_chunked(fold, chunk_size=2, to_host=True)(keys)
    assert isinstance(noise, np.ndarray)
    assert_trees_close((found, jnp.asarray(noise)), jax.jit(jax.vmap(fold))(keys))


class Progress(Meter):
    def __init__(self):
        self.shown = []

    def show(self, done):
        self.shown.append(done)


def test_any_length_of_axis_is_counted_by_one_program():
    meter = Progress()
    mapped = batching.map_chunked(lambda x: x + 1, chunk_size=4, meter=meter)
    for count in (1, 4, 10):
        np.testing.assert_array_equal(mapped(np.arange(count)), np.arange(count) + 1)
    assert mapped.trace_count == 1
    assert meter.shown == [1, 4, 4, 8, 10]


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


def test_out_of_memory_halves_and_completes(monkeypatch, caplog):
    assert all(map(batching.is_out_of_memory, OUT_OF_MEMORY))
    exhausted(3, OUT_OF_MEMORY[-1], monkeypatch)
    meter = Progress()
    mapped = batching.map_chunked(
        lambda x: x + 1, chunk_size=16, meter=meter, label="rows"
    )
    np.testing.assert_array_equal(mapped(np.arange(20)), np.arange(20) + 1)
    assert mapped.chunk_size == 2
    assert mapped.trace_count == 4  # 16, 8, 4, 2
    assert meter.shown == list(range(2, 21, 2))
    assert "with 16 items per chunk; continuing with 8" in caplog.text


def test_out_of_memory_midway_keeps_what_is_done(monkeypatch):
    runs = []
    real = jax.block_until_ready

    def block(tree):
        runs.append(jax.tree.leaves(tree)[0].shape[0])
        if len(runs) == 3:
            raise OUT_OF_MEMORY[0]
        return real(tree)

    monkeypatch.setattr(batching.jax, "block_until_ready", block)
    result = batching.map_chunked(lambda x: x * 3, chunk_size=4)(np.arange(14))
    np.testing.assert_array_equal(result, np.arange(14) * 3)
    assert runs == [4, 4, 4, 2, 2, 2]


def test_the_smallest_chunk_that_does_not_fit_is_an_error(monkeypatch):
    exhausted(0, OUT_OF_MEMORY[0], monkeypatch)
    with pytest.raises(MemoryError, match="items: one item needs too much"):
        batching.map_chunked(lambda x: x, chunk_size=8)(np.arange(10))


def test_other_errors_are_not_retried(monkeypatch):
    exhausted(0, jax.errors.JaxRuntimeError("INTERNAL: broken"), monkeypatch)
    with pytest.raises(jax.errors.JaxRuntimeError, match="broken"):
        batching.map_chunked(lambda x: x, chunk_size=8)(np.arange(10))
    assert not batching.is_out_of_memory(ValueError("shape"))


def test_a_real_out_of_memory_error_is_recognized():
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError)) as caught:
        # 256 TiB: more than any address space, so no machine starts to fill it.
        jax.block_until_ready(jnp.zeros((2**24, 2**24), jnp.int8))
    assert batching.is_out_of_memory(caught.value)


@pytest.mark.parametrize(("count", "length"), [(1, 9), (5, 6), (4, 4), (3, 0)])
def test_pad_axis_repeats_the_last_item(count, length):
    rows = np.arange(count * 2).reshape(count, 2)
    padded = batching.pad_axis({"a": rows, "b": jax.device_put(rows)}, length)
    expected = np.stack([rows[min(i, count - 1)] for i in range(max(count, length))])
    jax.tree.map(lambda x: np.testing.assert_array_equal(x, expected), padded)


def test_arrays_without_a_common_axis_are_refused():
    with pytest.raises(ValueError, match=r"\(2,\), \(3,\).*no common first axis"):
        batching.axis_length([np.ones(2), np.ones(3)])
    with pytest.raises(ValueError, match="no items: there is none to repeat"):
        batching.pad_axis(np.ones((0, 3)), 4)
    with pytest.raises(ValueError, match=r"chunk_size is 2\.5: give a whole number"):
        batching.map_chunked(lambda x: x, chunk_size=2.5)  # pyright: ignore
    with pytest.raises(ValueError, match="chunk_size is 0"):
        batching.map_chunked(lambda x: x, chunk_size=0)
    with pytest.raises(ValueError, match="max_batch_size is 0"):
        batching.largest_batch(double, ITEM, budget_bytes=1, max_batch_size=0)


ITEM = jax.ShapeDtypeStruct((250,), jnp.float32)


def double(batch):
    return batch * 2  # 1000 bytes in, 1000 bytes out for each item


@pytest.mark.parametrize("budget", [2_000, 77_777])
def test_the_batch_that_exactly_fits_is_found(budget):
    plan = batching.largest_batch(double, ITEM, budget_bytes=budget)
    assert plan.batch_size == budget // 2_000
    assert plan.memory.total == 2_000 * plan.batch_size <= budget
    assert len(plan.confirmed) <= 6


def test_a_program_with_a_constant_part_and_temporaries():
    table = np.ones((250, 64), np.float32)

    def run(batch, table):
        return jnp.tanh(batch @ table).sum(axis=1)

    budget = 3_000_000
    plan = batching.largest_batch(run, ITEM, table, budget_bytes=budget)

    def need(size):
        return compiled_memory(run, batching.batched_shapes(ITEM, size), table).total

    assert need(plan.batch_size) <= budget
    assert need(plan.batch_size + max(1, plan.batch_size // 16)) > budget


def test_the_maximum_caps_the_batch_and_one_item_may_not_fit():
    plan = batching.largest_batch(double, ITEM, budget_bytes=10**9, max_batch_size=100)
    assert plan.batch_size == 100
    with pytest.raises(MemoryError, match="one item needs 2,000 bytes"):
        batching.largest_batch(double, ITEM, budget_bytes=1_999)


def test_functions_of_the_house_can_be_planned():
    config = ("static", 2)
    run = lambda batch, config: batch * config[1]
    for function in (run, compile_once(run)):
        plan = batching.largest_batch(function, ITEM, config, budget_bytes=77_777)
        assert plan.batch_size == 77_777 // 2_000


GROWTH = {
    "line": lambda n: 1_000 + 40 * n,
    "square": lambda n: 10 * n * n + 5,
    "slightly more than a line": lambda n: int(40 * n**1.1),
    "root": lambda n: int(1e5 * n**0.5),
    "padded to powers of two": lambda n: 64 * 2 ** (n - 1).bit_length(),
    "cliff": lambda n: 10 * n if n < 1_000 else 10**12,
    "flat": lambda n: 500,
}


@pytest.mark.parametrize("growth", GROWTH)
@pytest.mark.parametrize("budget", [2_000_000, 123_456_789])
def test_few_compilations_whatever_way_memory_grows(growth, budget, monkeypatch):
    need, most = GROWTH[growth], 1_048_576

    def compiled(function, shapes):
        return batching.CompiledMemory(need(shapes.shape[0]), 0, 0, 0)

    monkeypatch.setattr(batching, "compiled_memory", compiled)
    plan = batching.largest_batch(double, ITEM, budget_bytes=budget)
    assert need(plan.batch_size) <= budget
    more = plan.batch_size + max(1, plan.batch_size // 64)
    assert more > most or need(more) > budget
    assert len(plan.confirmed) <= 24
