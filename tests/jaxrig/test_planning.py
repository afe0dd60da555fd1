"""Oracle: programs whose memory is known by arithmetic, exhaustive search, a script."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxrig import planning
from jaxrig.memory import compiled_memory, tree_bytes
from jaxrig.planning import (
    BatchSizeController,
    batched_shapes,
    best_throughput,
    largest_batch,
    next_batch_size,
)
from jaxrig.tracing import compile_once

ITEM = jax.ShapeDtypeStruct((250,), jnp.float32)


def double(batch):
    return batch * 2  # 1000 bytes in, 1000 bytes out for each item


@pytest.mark.parametrize("budget", [2_000, 2_001, 77_777, 2_000_000, 123_456_789])
def test_the_batch_that_exactly_fits_is_found(budget):
    plan = largest_batch(double, ITEM, budget_bytes=budget)
    assert plan.batch_size == budget // 2_000
    assert plan.memory.total == 2_000 * plan.batch_size <= budget
    assert len(plan.confirmed) <= 6


def test_a_program_with_a_constant_part_and_temporaries():
    table = jnp.ones((250, 64))

    def run(batch, table):
        return jnp.tanh(batch @ table).sum(axis=1)

    budget = 3_000_000
    plan = largest_batch(run, ITEM, table, budget_bytes=budget)

    def need(size):
        return compiled_memory(run, batched_shapes(ITEM, size), table).total

    assert need(plan.batch_size) <= budget
    assert need(plan.batch_size + max(1, plan.batch_size // 16)) > budget


def test_the_maximum_caps_the_batch_and_one_item_may_not_fit():
    plan = largest_batch(double, ITEM, budget_bytes=10**9, max_batch_size=100)
    assert plan.batch_size == 100
    with pytest.raises(MemoryError, match="one item needs 2,000 bytes"):
        largest_batch(double, ITEM, budget_bytes=1_999)


def test_functions_of_the_house_can_be_planned():
    config = ("static", 2)
    run = lambda batch, config: batch * config[1]
    for function in (run, compile_once(run)):
        plan = largest_batch(function, ITEM, config, budget_bytes=77_777)
        assert plan.batch_size == 77_777 // 2_000


def test_batched_shapes_are_shapes_only():
    shapes = batched_shapes({"x": jnp.ones((2, 3))}, 10)
    assert tree_bytes(shapes) == 10 * 2 * 3 * 4


def test_best_throughput_picks_the_highest_rate(monkeypatch):
    seconds = {1: 1.0, 2: 1.0, 4: 1.5, 8: 4.0}
    monkeypatch.setattr(
        planning,
        "measure",
        lambda run, repeats: planning.Timing(0.0, (seconds[run()],), (1.0,)),
    )
    found = best_throughput(lambda size: lambda: size, max_batch_size=8)
    assert found.batch_size == 4
    assert found.rates == {1: 1.0, 2: 2.0, 4: 4 / 1.5, 8: 2.0}
    assert found.stopped is None


def test_best_throughput_stops_where_memory_does():
    def run(size):
        if size > 4:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: no room")
        return lambda: jnp.ones(size)

    found = best_throughput(run, repeats=1)
    assert sorted(found.rates) == [1, 2, 4]
    assert found.stopped == "out of memory at batch size 8"
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"):
        best_throughput(lambda _: _fail())


def _fail():
    raise jax.errors.JaxRuntimeError("INTERNAL")


def test_best_throughput_honors_a_budget():
    def run(size):
        batch = np.ones(size * 30 * 2**20, np.uint8)
        return lambda: batch[:10].sum()

    found = best_throughput(run, max_batch_size=16, budget_bytes=150 * 2**20, repeats=1)
    assert sorted(found.rates) == [1, 2, 4]
    assert "batch size 8 took" in str(found.stopped)


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
        return planning.CompiledMemory(need(shapes.shape[0]), 0, 0, 0)

    monkeypatch.setattr(planning, "compiled_memory", compiled)
    plan = largest_batch(double, ITEM, budget_bytes=budget)
    assert need(plan.batch_size) <= budget
    more = plan.batch_size + max(1, plan.batch_size // 64)
    assert more > most or need(more) > budget
    assert len(plan.confirmed) <= 24


def test_controller_as_the_document_says():
    used = iter([10, 10, 10, 50, 90, 90, 81, 80, 39])
    controller = BatchSizeController(64, 100, 1, 256, used=lambda: next(used))
    sizes = [controller.update() for _ in range(9)]
    assert sizes == [128, 256, 256, 256, 128, 64, 32, 32, 64]
    assert controller.history[0] == (10, 128)


@given(st.integers(1, 900), st.floats(0, 2), st.integers(1, 8), st.integers(8, 512))
def test_next_batch_size_stays_within_bounds(size, used, minimum, maximum):
    assert minimum <= next_batch_size(size, used, 1.0, minimum, maximum) <= maximum


def test_bad_bounds_are_refused():
    with pytest.raises(ValueError, match=r"maximum \(8\)"):
        BatchSizeController(batch_size=64, maximum=8)
    with pytest.raises(ValueError, match="max_batch_size=0"):
        largest_batch(double, ITEM, budget_bytes=1, max_batch_size=0)
