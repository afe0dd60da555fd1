"""Assertions for compiled code: one trace, vmap equals loop, trees close.

These are what jaxrig's own tests use; they raise AssertionError naming the leaf.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree

from jaxrig.batching import axis_length
from jaxrig.compile_guard import RetraceError, compile_once
from jaxrig.dtypes import is_key
from jaxrig.static_arguments import path_of


def assert_trees_close(
    actual: PyTree, expected: PyTree, *, rtol: float = 0.0, atol: float = 0.0
) -> None:
    """Assert equal structure, shapes, dtypes and values; by default exactly.

    NaN equals NaN. Leaves that are not arrays are compared with ==.
    """
    found, found_tree = jax.tree_util.tree_flatten_with_path(actual)
    wanted, wanted_tree = jax.tree_util.tree_flatten_with_path(expected)
    if found_tree != wanted_tree:
        raise AssertionError(f"structures differ: {found_tree} and {wanted_tree}")
    for (path, a), (_, b) in zip(found, wanted, strict=True):
        where = path_of("tree", path)
        if not (hasattr(a, "dtype") and hasattr(b, "dtype")):
            plain = not (hasattr(a, "dtype") or hasattr(b, "dtype"))
            same = plain and (a == b or (a != a and b != b))
            _require(same, f"{where}: {a!r} is not {b!r}")
            continue
        kinds = f"{a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
        _require((a.dtype, a.shape) == (b.dtype, b.shape), f"{where}: {kinds}")
        np.testing.assert_allclose(
            _numbers(a), _numbers(b), rtol=rtol, atol=atol, err_msg=where
        )


def _require(holds: bool, message: str) -> None:
    if not holds:  # not an assert statement, which python -O would drop
        raise AssertionError(message)


def _numbers(leaf: Any) -> np.ndarray:
    if is_key(leaf.dtype):
        leaf = jax.random.key_data(leaf)
    array = np.asarray(leaf)
    narrow = array.dtype.kind == "V" or array.dtype.name.startswith(
        ("bfloat", "float8")
    )
    return array.astype(np.float32) if narrow else array


def assert_one_trace(
    function: Callable[..., Any], *calls: Sequence[Any]
) -> list[PyTree]:
    """Compile a function and run it on every tuple of arguments with one trace."""
    compiled = compile_once(function)
    try:
        results = [compiled(*arguments) for arguments in calls]
    except RetraceError as error:
        raise AssertionError(str(error)) from error
    _require(compiled.trace_count == 1, f"traced {compiled.trace_count} times")
    return results


def assert_vmap_equals_loop(
    function: Callable[..., PyTree],
    *batches: PyTree,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> None:
    """Assert that row i of the vmapped function is the function of row i.

    What is not an array, such as a configuration, goes to every row as it is.
    """
    arrays, rest = eqx.partition(batches, eqx.is_array)
    single = jax.jit(lambda rows: function(*eqx.combine(rows, rest)))
    whole = jax.jit(jax.vmap(lambda rows: function(*eqx.combine(rows, rest))))(arrays)
    count = axis_length(arrays)
    _require(count > 0, "no rows to compare")
    for i in range(count):
        row = lambda x, i=i: x[i]
        expected = single(jax.tree.map(row, arrays))
        assert_trees_close(jax.tree.map(row, whole), expected, rtol=rtol, atol=atol)
