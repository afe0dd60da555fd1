"""How large a batch may be: what fits a memory budget, what runs fastest, and a
controller that follows memory use while work goes on.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from jaxrig.batching import is_out_of_memory
from jaxrig.memory import (
    CompiledMemory,
    compiled_memory,
    device_memory,
    host_memory,
)
from jaxrig.timing import Timing, measure


@dataclass(frozen=True)
class BatchPlan:
    """The largest batch found to fit, what it takes, and every size compiled."""

    batch_size: int
    memory: CompiledMemory
    budget_bytes: int
    confirmed: tuple[tuple[int, int], ...]  # (batch size, bytes) of each compilation


def batched_shapes(item: PyTree, batch_size: int) -> PyTree:
    """Shapes of a batch of items like this one, without making it."""
    return jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((batch_size, *jnp.shape(x)), jnp.result_type(x)),
        item,
    )


def largest_batch(
    function: Callable[..., Any],
    item: PyTree,
    *shared: Any,
    budget_bytes: int,
    max_batch_size: int = 1_048_576,
) -> BatchPlan:
    """The largest batch for which `function(batch, *shared)` fits a memory budget.

    Two small compilations give bytes per item, which give an estimate; XLA's analysis
    of the function compiled at that size confirms or corrects it. Nothing is run.
    """
    if max_batch_size < 1:
        raise ValueError(f"max_batch_size={max_batch_size} must be at least 1")
    tried: dict[int, CompiledMemory] = {}

    def need(size: int) -> int:
        if size not in tried:
            tried[size] = compiled_memory(function, batched_shapes(item, size), *shared)
        return tried[size].total

    if need(1) > budget_bytes:
        raise MemoryError(
            f"one item needs {need(1):,} bytes, the budget is {budget_bytes:,}"
        )
    fits, too_large = 1, max_batch_size + 1
    candidate = min(8, max_batch_size)
    # Stop where a further compilation could gain less than one part in 64.
    while too_large - fits > max(1, fits // 64):
        if need(candidate) <= budget_bytes:
            fits = candidate
        else:
            too_large = candidate
        candidate = _next_candidate(tried, fits, too_large, budget_bytes)
    confirmed = tuple((size, memory.total) for size, memory in sorted(tried.items()))
    return BatchPlan(fits, tried[fits], budget_bytes, confirmed)


def _next_candidate(
    tried: dict[int, CompiledMemory], fits: int, too_large: int, budget: int
) -> int:
    """Between what fits and what does not, where a straight line meets the budget.

    Memory need not grow along a line, so every second time the middle is tried, and
    the interval shrinks whatever the function does.
    """
    bounded = too_large in tried
    if bounded and len(tried) % 2 == 0:
        guess = math.isqrt(fits * too_large)
    else:
        other = too_large if bounded else max(size for size in tried if size < fits)
        per_item = (tried[other].total - tried[fits].total) / (other - fits)
        room = budget - tried[fits].total
        guess = fits + int(room / per_item) if per_item > 0 else too_large - 1
    return max(fits + 1, min(guess, too_large - 1))


@dataclass(frozen=True)
class Throughput:
    """Rates measured over batch sizes, and the size with the highest one."""

    batch_size: int
    rates: dict[int, float]  # items per second
    timings: dict[int, Timing]
    stopped: str | None  # why larger sizes were not tried


def best_throughput(
    run: Callable[[int], Callable[[], Any]],
    *,
    max_batch_size: int = 1024,
    budget_bytes: int | None = None,
    repeats: int = 5,
) -> Throughput:
    """Time powers of two up to `max_batch_size`; stop where memory does.

    `run(batch_size)` prepares a batch and returns a function that processes it.
    """
    timings: dict[int, Timing] = {}
    stopped, size = None, 1
    before = _memory_in_use()
    while size <= max_batch_size:
        try:
            prepared = run(size)
            timing = measure(prepared, repeats=repeats)
            result = prepared()  # the batch and its result are alive when measured
            used = _memory_in_use() - before
            del prepared, result
        except (jax.errors.JaxRuntimeError, ValueError, MemoryError) as error:
            if not is_out_of_memory(error) or not timings:
                raise
            stopped = f"out of memory at batch size {size}"
            break
        if budget_bytes is not None and used > budget_bytes:
            stopped = f"batch size {size} took {used:,} of {budget_bytes:,} bytes"
            break
        timings[size] = timing
        size *= 2
    if not timings:
        raise MemoryError(f"no batch size fits: {stopped}")
    rates = {size: timing.per_second(size) for size, timing in timings.items()}
    return Throughput(max(rates, key=rates.__getitem__), rates, timings, stopped)


def _memory_in_use() -> int:
    """Of the accelerator where its allocator counts, else of this process."""
    device = device_memory()
    return device.in_use if device.limit is not None else host_memory().resident


def next_batch_size(
    batch_size: int, used: float, limit: float, minimum: int = 1, maximum: int = 512
) -> int:
    """Half the batch above 80 % of the limit, double below 40 %, within bounds."""
    if used > 0.8 * limit:
        batch_size //= 2
    elif used < 0.4 * limit:
        batch_size *= 2
    return min(max(batch_size, minimum), maximum)


@dataclass
class BatchSizeController:
    """A batch size that follows memory use: call `update` before each batch."""

    batch_size: int = 64
    limit_bytes: int = 4 * 1024**3
    minimum: int = 1
    maximum: int = 512
    used: Callable[[], int] = lambda: host_memory().resident
    history: deque[tuple[int, int]] = field(  # the last (bytes, batch size)
        default_factory=lambda: deque(maxlen=1_000)
    )

    def __post_init__(self) -> None:
        if not 1 <= self.minimum <= self.batch_size <= self.maximum:
            raise ValueError(
                f"need 1 <= minimum ({self.minimum}) <= batch_size "
                f"({self.batch_size}) <= maximum ({self.maximum})"
            )

    def update(self) -> int:
        """Read memory in use and return the batch size to use now."""
        used = self.used()
        self.batch_size = next_batch_size(
            self.batch_size, used, self.limit_bytes, self.minimum, self.maximum
        )
        self.history.append((used, self.batch_size))
        return self.batch_size
