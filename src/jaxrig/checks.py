"""Traced checks whose failure raises, poisons, stops in a debugger or costs nothing.

The mode is read while a function is traced. Changing it makes compiled functions
trace again; going back to an earlier mode finds the earlier compilation.
"""

import contextlib
import enum
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, TypeVar, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PyTree

ErrorMode = Literal["raise", "nan", "breakpoint", "off"]
T = TypeVar("T")

_RAISED_BY = "_EquinoxRuntimeError: "


class CheckError(RuntimeError):
    """A traced check failed while a compiled function ran."""


def _make_jit_key() -> Any:
    """A process-wide value in JAX's own compilation key; None where JAX has none."""
    make = getattr(jax, "make_user_context", None)
    key = None if make is None else make("raise")
    return key if hasattr(key, "set_global") else None


_jit_key = _make_jit_key()
_mode: ErrorMode = "raise"
raising_checks_traced = 0  # compile_once compares it to learn whether to wait


def get_error_mode() -> ErrorMode:
    """The mode in which checks are traced from now on."""
    return _mode


def set_error_mode(mode: str) -> None:
    """Trace checks in this mode from now on, in already compiled functions too.

    - `raise`: the compiled call raises an error with the check's message.
    - `nan`: the checked value becomes NaN (integers: their largest value) and the
      computation goes on.
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
def error_mode(mode: str) -> Iterator[None]:
    """Use another error mode inside a block."""
    before = _mode
    set_error_mode(mode)
    try:
        yield
    finally:
        set_error_mode(before)


def check(value: T, ok: Bool[Array, "..."] | bool, message: str) -> T:
    """Return `value`; where any of `ok` is False, fail in the current error mode.

    The check happens where `value` is used: use the returned value, or the check
    may be optimised away.

    >>> import jax.numpy as jnp
    >>> check(jnp.float32(2.0), jnp.asarray(True), "must be positive")
    Array(2., dtype=float32)
    """
    if _mode == "off":
        return value
    if _mode == "raise":
        note_raising_check()
    return eqx.error_if(value, jnp.logical_not(ok), message, on_error=_mode)


def note_raising_check() -> None:
    """Tell the functions being traced that their program can raise."""
    global raising_checks_traced
    raising_checks_traced += 1


def message_of(error: BaseException) -> str | None:
    """The message of the check behind a failed call; None for any other error."""
    if isinstance(error, CheckError | eqx.EquinoxRuntimeError):
        return str(error)
    _, found, rest = str(error).partition(_RAISED_BY)
    return rest.split("\n\n\n")[0].strip() if found else None


def tally(codes: PyTree, outcomes: type[enum.IntEnum]) -> dict[str, int]:
    """How often each outcome occurs in an array of outcome codes, by name."""
    counts = Counter(np.asarray(codes).ravel().tolist())
    unknown = set(counts) - {int(outcome) for outcome in outcomes}
    if unknown:
        raise ValueError(f"codes {sorted(unknown)} are not in {outcomes.__name__}")
    return {outcome.name: counts[int(outcome)] for outcome in outcomes}
