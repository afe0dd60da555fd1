"""Map a function over a long axis in chunks of one compiled shape.

The result does not depend on the chunk size, and a chunk that does not fit in
memory is halved and tried again.
"""

import logging
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree

from jaxrig.keys import worker_keys
from jaxrig.progress import Meter
from jaxrig.tracing import compile_once

logger = logging.getLogger(__name__)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the host or an accelerator ran out of memory."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, jax.errors.JaxRuntimeError | ValueError) and (
        "RESOURCE_EXHAUSTED" in str(error)
    )


def axis_length(tree: PyTree) -> int:
    """The common length of the first axis of every array in a tree."""
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
    missing = length - axis_length(tree)
    if missing <= 0:
        return tree

    def pad(leaf: Any) -> Any:
        array = np if isinstance(leaf, np.ndarray) else jnp
        return array.concatenate([leaf, array.repeat(leaf[-1:], missing, axis=0)])

    return jax.tree.map(pad, tree)


class ChunkedMap:
    """A function of one item, mapped over many in chunks; made by `map_chunked`."""

    def __init__(
        self,
        function: Callable[..., Any],
        chunk_size: int,
        min_chunk_size: int,
        to_host: bool,
        meter: Meter,
        label: str,
    ):
        if not 1 <= min_chunk_size <= chunk_size:
            raise ValueError(
                f"chunk_size={chunk_size}, min_chunk_size={min_chunk_size}: need "
                "1 <= min_chunk_size <= chunk_size"
            )
        self.chunk_size = chunk_size
        self._min_chunk_size = min_chunk_size
        self._to_host = to_host
        self._meter = meter
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
            one = jax.tree.map(
                lambda x: jnp.zeros((1, *np.shape(x)[1:]), x.dtype), items
            )
            shape = jax.eval_shape(self._run_chunk, one, shared)
            return jax.tree.map(lambda s: jnp.zeros((0, *s.shape[1:]), s.dtype), shape)
        chunks, done = [], 0
        self._meter.start(self._label, total)
        try:
            while done < total:
                stop = min(done + self.chunk_size, total)
                result = self._attempt(items, done, stop, shared)
                if result is not None:
                    chunks.append(result)
                    done = stop
                    self._meter.show(done)
        finally:
            self._meter.stop()
        join = np.concatenate if self._to_host else jnp.concatenate
        return jax.tree.map(lambda *parts: join(parts), *chunks)

    def _attempt(self, items: PyTree, start: int, stop: int, shared: tuple[Any, ...]):
        """One chunk's result, or None when it was too large and is now halved."""
        chunk = jax.tree.map(lambda x: x[start:stop], items)
        try:
            result = self._run_chunk(pad_axis(chunk, self.chunk_size), shared)
            jax.block_until_ready(result)
        except (jax.errors.JaxRuntimeError, ValueError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            self._halve(error)
            return None
        result = jax.tree.map(lambda x: x[: stop - start], result)
        return jax.device_get(result) if self._to_host else result

    def _halve(self, error: BaseException) -> None:
        half = self.chunk_size // 2
        if half < self._min_chunk_size:
            raise MemoryError(
                f"{self._label}: out of memory at chunk_size={self.chunk_size}, and "
                f"min_chunk_size={self._min_chunk_size} allows no smaller one"
            ) from error
        logger.warning(
            "%s: out of memory with %d items at once; going on with %d",
            self._label,
            self.chunk_size,
            half,
        )
        self.chunk_size = half
        self._run_chunk.max_traces = (self._run_chunk.max_traces or 0) + 1


def map_chunked(
    function: Callable[..., Any],
    *,
    chunk_size: int,
    min_chunk_size: int = 1,
    to_host: bool = False,
    meter: Meter | None = None,
    label: str = "items",
) -> ChunkedMap:
    """Map `function(item, *shared)` over a long axis, `chunk_size` items at a time.

    One compilation serves every chunk and every later call: the last chunk is padded
    and its padding dropped. With `to_host` results are NumPy arrays and only one chunk
    is on the device at a time. When a chunk does not fit in memory its size is halved,
    down to `min_chunk_size`, and the work goes on where it was.

    >>> squares = map_chunked(lambda x: x**2, chunk_size=4)
    >>> squares(jnp.arange(6)).tolist(), squares.trace_count
    ([0, 1, 4, 9, 16, 25], 1)
    """
    return ChunkedMap(
        function, chunk_size, min_chunk_size, to_host, meter or Meter(), label
    )


def map_workers(
    function: Callable[..., Any],
    key: PRNGKeyArray,
    workers: int,
    items_per_worker: int,
    *shared: Any,
    meter: Meter | None = None,
) -> PyTree:
    """Run `function(key, *shared)` for workers x items, one worker at a time.

    Every item has a key of its own; results have two leading axes.
    """
    keys = worker_keys(key, workers, items_per_worker)
    flat = keys.reshape(workers * items_per_worker, *keys.shape[2:])
    mapped = map_chunked(
        function, chunk_size=items_per_worker, meter=meter, label="workers"
    )
    result = mapped(flat, *shared)
    return jax.tree.map(
        lambda x: x.reshape(workers, items_per_worker, *x.shape[1:]), result
    )
