"""How large a batch may be: what fits a memory budget, what runs fastest, and a
controller that follows memory use while work goes on.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
from jaxtyping import PyTree

from jaxrig.batching import is_out_of_memory
from jaxrig.memory import CompiledMemory, compiled_memory, host_memory
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
        lambda x: jax.ShapeDtypeStruct((batch_size, *x.shape), x.dtype), item
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

    fits, too_large = 0, max_batch_size + 1
    candidate = 1
    while too_large - fits > 1:
        if need(candidate) <= budget_bytes:
            fits = candidate
        else:
            too_large = candidate
        if too_large <= 1:
            raise MemoryError(
                f"one item needs {need(1):,} bytes, the budget is {budget_bytes:,}"
            )
        candidate = _next_candidate(tried, fits, too_large, budget_bytes)
        if candidate - fits <= fits // 64:  # no more to gain worth a compilation
            break
    confirmed = tuple((size, memory.total) for size, memory in sorted(tried.items()))
    return BatchPlan(fits, tried[fits], budget_bytes, confirmed)


def _next_candidate(
    tried: dict[int, CompiledMemory], fits: int, too_large: int, budget: int
) -> int:
    """Where a line through the two nearest measured sizes meets the budget."""
    if len(tried) == 1:
        return min(8, too_large - 1)
    below = max(size for size in tried if size <= fits)
    other = min((s for s in tried if s != below), key=lambda s: abs(s - below))
    per_item = (tried[other].total - tried[below].total) / (other - below)
    room = budget - tried[below].total
    guess = below + int(room / per_item) if per_item > 0 else too_large - 1
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
    while size <= max_batch_size and stopped is None:
        try:
            before = host_memory().resident
            timing = measure(run(size), repeats=repeats)
            used = host_memory().resident - before
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


def next_batch_size(
    batch_size: int, used: float, limit: float, minimum: int = 1, maximum: int = 512
) -> int:
    """Half the batch above 80 % of the limit, double below 40 %, within bounds."""
    if used > 0.8 * limit:
        return max(minimum, batch_size // 2)
    if used < 0.4 * limit:
        return min(maximum, batch_size * 2)
    return batch_size


@dataclass
class BatchSizeController:
    """A batch size that follows memory use: call `update` before each batch."""

    batch_size: int = 64
    limit_bytes: int = 4 * 1024**3
    minimum: int = 1
    maximum: int = 512
    used: Callable[[], int] = lambda: host_memory().resident
    history: list[tuple[int, int]] = field(default_factory=list)  # (bytes, batch size)

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
