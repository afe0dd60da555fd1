"""Profiler sessions and named regions, for JAX's own trace viewer."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import jax


@contextlib.contextmanager
def profile(folder: Path | str) -> Iterator[Path]:
    """Record a profile of a block into a folder, also when the block fails.

    Open it with `xprof FOLDER`, or in Perfetto through the `.trace.json.gz` in it.
    """
    folder = Path(folder)
    with jax.profiler.trace(str(folder), create_perfetto_trace=False):
        yield folder


@contextlib.contextmanager
def region(name: str) -> Iterator[None]:
    """Name a block: in the profile of the host, and in the compiled operations."""
    with jax.profiler.TraceAnnotation(name), jax.named_scope(name):
        yield
