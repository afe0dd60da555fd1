"""Map a function over a long axis in chunks of one compiled shape, and plan the chunks.

The result does not depend on the chunk size, and a chunk that does not fit in memory is
halved and tried again.
"""

import functools
import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from jaxrig.compile_guard import compile_once
from jaxrig.dtypes import is_key
from jaxrig.memory import CompiledMemory, compiled_memory
from jaxrig.progress import Meter
from jaxrig.settings import whole

try:
    from jaxlib.xla_client import execution_stream_id
except ImportError:  # before JAX 0.7: calls run one after the other
    from contextlib import nullcontext as execution_stream_id

R = TypeVar("R")
logger = logging.getLogger(__name__)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that host or device ran out of memory."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, jax.errors.JaxRuntimeError | ValueError) and (
        "RESOURCE_EXHAUSTED" in str(error)
    )


def axis_length(tree: PyTree) -> int:
    """Return the common length of the first axis of every array in a tree."""
    lengths = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(tree)}
    if len(lengths) != 1 or () in lengths:
        shapes = [np.shape(leaf) for leaf in jax.tree.leaves(tree)]
        raise ValueError(f"arrays of shapes {shapes} have no common first axis")
    return lengths.pop()[0]


def pad_axis(tree: PyTree, length: int) -> PyTree:
    """Lengthen the first axis to `length` by repeating the last item.

    A copy of a valid item is valid too: padding with zeros would run a function on
    values it was never meant to see.
    """
    present = axis_length(tree)
    missing = length - present
    if missing <= 0:
        return tree
    if present == 0:
        raise ValueError("no items: there is none to repeat")

    def pad(leaf: Any) -> Any:
        array = np if isinstance(leaf, np.ndarray) else jnp
        return array.concatenate([leaf, array.repeat(leaf[-1:], missing, axis=0)])

    return jax.tree.map(pad, tree)


def split_axis(tree: PyTree, parts: int) -> tuple[PyTree, ...]:
    """Cut the first axis, whose length is a multiple, into so many equal parts.

    >>> [part.tolist() for part in split_axis(jnp.arange(6), 2)]
    [[0, 1, 2], [3, 4, 5]]
    """
    return (tree,) if parts == 1 else _split(tree, parts)


@functools.partial(jax.jit, static_argnums=1)
def _split(tree: PyTree, parts: int) -> tuple[PyTree, ...]:
    size, left = divmod(axis_length(tree), parts)
    if left:
        raise ValueError(f"{size * parts + left} items are no {parts} equal parts")
    cut = lambda i: jax.tree.map(lambda x: x[i * size : (i + 1) * size], tree)
    return tuple(cut(i) for i in range(parts))


def call_together(function: Callable[..., R], items: Iterable[Any]) -> list[R]:
    """Call a compiled function for each item, so that a CPU runs all calls at once."""
    found = []
    for stream, item in enumerate(items):
        with own_stream(stream):
            found.append(function(item))
    return found


def own_stream(number: int) -> AbstractContextManager[Any]:
    """Let programs started in here run beside those of other streams, on a CPU.

    Elsewhere JAX runs what one Python thread starts in order; what depends on a result
    waits for it here too.
    """
    # Python threads would do as well, but lose JAX's settings, which belong to one.
    return execution_stream_id(number + 1)  # 0 is "no stream"


def join_axis(parts: Sequence[PyTree]) -> PyTree:
    """Put parts of the first axis together again."""
    return parts[0] if len(parts) == 1 else _join(tuple(parts))


@jax.jit
def _join(parts: tuple[PyTree, ...]) -> PyTree:
    return jax.tree.map(lambda *x: jnp.concatenate(x), *parts)


@functools.partial(jax.jit, static_argnums=2)
def _slice_device(items: PyTree, start: int | Int[Array, ""], size: int) -> PyTree:
    """Compile one program for all arrays and every start."""
    return jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, start, size), items)


def to_host(tree: PyTree) -> PyTree:
    """Return NumPy copies; typed keys stay keys, which NumPy cannot hold."""
    return jax.tree.map(lambda x: x if is_key(x.dtype) else jax.device_get(x), tree)


class _Chunk(NamedTuple):
    start: int
    stop: int
    result: PyTree


class ChunkedMap:
    """Map `function(item, *shared)` over a long axis, `chunk_size` items at a time.

    One compilation serves every chunk and every later call: the last chunk is filled
    up and what is not its own dropped. On a CPU so many chunks run `together`, each on
    a core of its own. With `to_host` results are NumPy arrays and at most one more is
    on the device. When a chunk does not fit in memory its size is halved and the work
    goes on where it was.
    Callbacks inside the function run again for rows that fill up the last chunk.

    >>> squares = map_chunked(lambda x: x**2, chunk_size=4)
    >>> squares(jnp.arange(6)).tolist(), squares.trace_count
    ([0, 1, 4, 9, 16, 25], 1)
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        chunk_size: int,
        to_host: bool = False,
        meter: Meter | None = None,
        label: str = "items",
        together: int = 1,
    ):
        self.chunk_size = whole()(chunk_size, "chunk_size")
        self._together = whole()(together, "together")
        self._to_host = to_host
        self._meter = meter or Meter()
        self._label = label

        def run_chunk(items: PyTree, shared: tuple[Any, ...]) -> PyTree:
            return jax.vmap(lambda item: function(item, *shared))(items)

        run_chunk.__qualname__ = f"map_chunked({label})"
        self._run_chunk = compile_once(run_chunk)

    @property
    def trace_count(self) -> int:
        """How often the function was traced: once, and once more per halving."""
        return self._run_chunk.trace_count

    def __call__(self, items: PyTree, *shared: Any) -> PyTree:
        """Map over the first axis of `items`; `shared` goes whole to every call."""
        total = axis_length(items)
        if total == 0:
            return self._empty(items, shared)
        self._meter.start(self._label, total)
        try:
            finished = self._run(items, total, shared)
        finally:
            self._meter.stop()

        def join(*parts: Any) -> Any:  # keys stay on the device, see `to_host`
            array = np if isinstance(parts[0], np.ndarray) else jnp
            return array.concatenate(parts)

        return jax.tree.map(join, *finished)

    def _empty(self, items: PyTree, shared: tuple[Any, ...]) -> PyTree:
        """Return what a real call would, with no rows; traced like one."""

        def rows_like(x: Any) -> jax.ShapeDtypeStruct:
            known = is_key(x.dtype)
            dtype = x.dtype if known else jax.dtypes.canonicalize_dtype(x.dtype)
            return jax.ShapeDtypeStruct((self.chunk_size, *x.shape[1:]), dtype)

        rows = jax.tree.map(rows_like, items)
        shape = jax.eval_shape(lambda rows: self._run_chunk(rows, shared), rows)
        none = jax.tree.map(lambda s: jnp.zeros((0, *s.shape[1:]), s.dtype), shape)
        return to_host(none) if self._to_host else none

    def _run(self, items: PyTree, total: int, shared: tuple[Any, ...]) -> list[PyTree]:
        """Return results in order; while one is waited for, the next run."""
        finished: list[PyTree] = []
        under_way: deque[_Chunk] = deque()
        start = 0
        while start < total or under_way:
            try:
                # One chunk more than run together: the device computes while the host
                # copies the first. Another would only take memory.
                if start < total:
                    with own_stream(start // self.chunk_size % self._together):
                        under_way.append(self._launch(items, start, total, shared))
                    start = under_way[-1].stop
                if len(under_way) > self._together or start == total:
                    finished.append(self._finish(under_way[0]))
                    self._meter.show(under_way.popleft().stop)
            except (jax.errors.JaxRuntimeError, ValueError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                # Dispatch is asynchronous: the error may belong to any chunk under way.
                start = under_way[0].start if under_way else start
                under_way.clear()
                self._halve(error)
        return finished

    def _launch(
        self, items: PyTree, start: int, total: int, shared: tuple[Any, ...]
    ) -> _Chunk:
        """Start one chunk. The last one reaches back over rows already done."""
        # Reaching back keeps one shape, hence one program; computing some rows twice
        # is cheaper than compiling for the remainder.
        size = self.chunk_size
        if total < size:
            items = pad_axis(items, size)
        first = max(0, min(start, total - size))
        on_host, on_device = eqx.partition(items, lambda x: isinstance(x, np.ndarray))
        rows = jax.tree.map(lambda x: x[first : first + size], on_host)
        rows = eqx.combine(rows, _slice_device(on_device, first, size))
        result = self._run_chunk(rows, shared)
        return _Chunk(start, min(start + size, total), result)

    def _finish(self, chunk: _Chunk) -> PyTree:
        """Wait for a chunk and drop the rows that are not its own."""
        result = jax.block_until_ready(chunk.result)
        count, size = chunk.stop - chunk.start, self.chunk_size
        if count < size:
            own = slice(None, count) if chunk.start == 0 else slice(size - count, None)
            result = jax.tree.map(lambda x: x[own], result)
        return to_host(result) if self._to_host else result

    def _halve(self, error: BaseException) -> None:
        half = self.chunk_size // 2
        if half == 0:
            raise MemoryError(f"{self._label}: one item needs too much") from error
        logger.warning(
            "%s: out of memory with %d items per chunk; continuing with %d",
            self._label,
            self.chunk_size,
            half,
        )
        self.chunk_size = half
        # Another size is another program, which this function is then allowed.
        self._run_chunk.max_traces = (self._run_chunk.max_traces or 0) + 1


map_chunked = ChunkedMap


@dataclass(frozen=True)
class BatchPlan:
    """The largest batch found to fit, what it takes, and every size compiled."""

    batch_size: int
    memory: CompiledMemory
    budget_bytes: int
    confirmed: tuple[tuple[int, int], ...]  # (batch size, bytes) of each compilation


def batched_shapes(item: PyTree, batch_size: int) -> PyTree:
    """Return shapes of a batch of items like this one, without making it."""
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
    """Return the largest batch whose `function(batch, *shared)` fits a budget.

    Two small compilations give bytes per item, which give an estimate; XLA's analysis
    of the function compiled at that size confirms or corrects it. Nothing is run.
    """
    whole()(max_batch_size, "max_batch_size")
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
    """Return a size between what fits and what does not: where a line meets it.

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
