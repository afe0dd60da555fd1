"""Traced checks whose failure raises, poisons, stops in a debugger or costs nothing.

The mode is read while a function is traced. Changing it makes compiled functions
trace again; going back to an earlier mode finds the earlier compilation.
"""

import contextlib
import threading
from collections.abc import Generator
from typing import Any, Literal, TypeVar, cast, get_args

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from jaxrig.dtypes import is_key

ErrorMode = Literal["raise", "nan", "breakpoint", "off"]
T = TypeVar("T")

_SCOPE = "jaxrig_check"  # marks the operations of a check in a traced program
_RECORD = "record"  # raise mode inside compile_once: note the failure, raise after
_RAISED_BY = "_EquinoxRuntimeError: "


class CheckError(RuntimeError):
    """A traced check failed while a compiled function ran."""


def _make_jit_key() -> Any:
    """Return a value in JAX's own compilation key; None where JAX has none to offer."""
    make = getattr(jax, "make_user_context", None)
    key = None if make is None else make("raise")
    return key if hasattr(key, "set_global") else None


_jit_key = _make_jit_key()
_mode: ErrorMode = "raise"
_failures: list[str] = []
_lock = threading.Lock()


def get_error_mode() -> ErrorMode:
    """Return the mode in which checks are traced from now on."""
    return _mode


def set_error_mode(mode: str) -> None:
    """Trace checks in this mode from now on, in already compiled functions too.

    - `raise`: the compiled call raises an error with the check's message.
    - `nan`: where the check fails the value becomes NaN (integers: their largest
      value; booleans: True), row by row under vmap, and the computation goes on.
    - `breakpoint`: opens a debugger in the compiled call.
    - `off`: no trace of the check is left in the compiled program.
    """
    global _mode
    if mode not in get_args(ErrorMode):
        allowed = ", ".join(get_args(ErrorMode))
        raise ValueError(f"error mode {mode!r} is not one of: {allowed}")
    if mode == _mode:
        return
    _mode = cast(ErrorMode, mode)
    if _jit_key is None:
        jax.clear_caches()
    else:
        _jit_key.set_global(mode)


@contextlib.contextmanager
def error_mode(mode: str) -> Generator[None, None, None]:
    """Use another error mode inside a block."""
    before = _mode
    set_error_mode(mode)
    try:
        yield
    finally:
        set_error_mode(before)


def check(value: T, ok: Bool[Array, "..."] | bool, message: str) -> T:
    """Return `value`; where any of `ok` is False, fail in the current error mode.

    Use the returned value: outside `compile_once` the check happens where it is used.
    There a failure in a program over several devices ends the process, because JAX
    leaves the other devices waiting; inside `compile_once` it raises `CheckError`.

    >>> check(jnp.float32(2.0), jnp.asarray(True), "must be positive")
    Array(2., dtype=float32)
    """
    if _mode == "off":
        return value
    failed = jnp.logical_not(jnp.all(jnp.asarray(ok)))
    if _mode == "nan":
        return jax.tree.map(lambda leaf: _poison(leaf, failed), value)
    if _mode == "raise" and getattr(_jit_key, "value", None) == _RECORD:
        with jax.named_scope(_SCOPE):
            # One condition for the whole batch: under vmap a condition per row becomes
            # a select, which runs both branches and so the callback for every row.
            note = lambda: jax.debug.callback(lambda: _record(message))
            jax.lax.cond(eqxi.unvmap_any(failed), note, lambda: None)
        return value
    arrays, rest = eqx.partition(
        value, lambda x: eqx.is_array(x) and not is_key(x.dtype)
    )
    if not jax.tree.leaves(arrays):
        raise TypeError(f"check({message!r}) needs a value that contains an array")
    return eqx.combine(eqx.error_if(arrays, failed, message, on_error=_mode), rest)


def _poison(leaf: Any, failed: Array) -> Any:
    if not eqx.is_array(leaf) or is_key(leaf.dtype):
        return leaf
    inexact = jnp.issubdtype(leaf.dtype, jnp.inexact)
    whole = jnp.issubdtype(leaf.dtype, jnp.integer)
    bad = jnp.nan if inexact else jnp.iinfo(leaf.dtype).max if whole else True
    return jnp.where(failed, jnp.asarray(bad, leaf.dtype), leaf)


def recording() -> contextlib.AbstractContextManager[Any]:
    """Note failed checks of a block for `take_failure` instead of raising.

    A raise out of a callback would leave the other devices of a sharded program
    waiting for ever. Without a key of our own in JAX's caches this is not possible:
    a function traced here could be called outside, where nobody asks for failures.
    """
    if _jit_key is None or _mode != "raise":
        return contextlib.nullcontext()
    return _jit_key(_RECORD)


def _record(message: str) -> None:
    with _lock:
        _failures.append(message)


def take_failure() -> str | None:
    """Return the message of the first check that failed since the last call."""
    jax.effects_barrier()
    with _lock:
        first = _failures[0] if _failures else None
        _failures.clear()
    return first


def holds_check(program: Any) -> bool:
    """Return whether a traced program holds a check, however deep inside."""
    program = getattr(program, "jaxpr", program)  # a closed one holds an open one
    for equation in program.eqns:
        if _SCOPE in str(equation.source_info.name_stack):
            return True
        inner = jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")
        )
        if any(holds_check(x) for x in inner if hasattr(x, "eqns")):
            return True
    return False


def message_of(error: BaseException) -> str | None:
    """Return the message of the check behind an error; None for other errors."""
    if isinstance(error, CheckError | eqx.EquinoxRuntimeError):
        return str(error)
    _, found, rest = str(error).partition(_RAISED_BY)
    return rest.split("\n\n\n")[0].strip() if found else None
