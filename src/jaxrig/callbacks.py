"""Host callbacks that cannot break the computation, with statistics and throttles.

Whatever a callback raises is logged and counted; the compiled program never sees it. A
throttle decides on the host, call by call, so it starts and stops as things change.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np

from jaxrig.dtypes import is_key
from jaxrig.settings import whole, wrong


@runtime_checkable
class Throttle(Protocol):
    """Admits or skips calls, and learns how long the admitted ones took."""

    def admit(self) -> bool:
        """Return whether the next call may run."""
        ...

    def observe(self, seconds: float) -> None:
        """Note the seconds that an admitted call took."""
        ...


class SlowCalls:
    """While recent calls take longer than allowed on average, run every tenth only.

    The mean is over the last few calls that ran, so a callback that becomes quick
    again is soon called every time again.
    """

    def __init__(self, max_mean_ms: float = 10.0, every: int = 10, window: int = 5):
        if not max_mean_ms >= 0:
            raise wrong("max_mean_ms", max_mean_ms, "milliseconds from 0")
        self._limit = max_mean_ms / 1e3
        self._every = whole()(every, "every")
        self._recent: deque[float] = deque(maxlen=whole()(window, "window"))
        self._skipped = 0

    def admit(self) -> bool:
        """Admit every call while calls are quick, every tenth while they are slow."""
        slow = self._recent and sum(self._recent) / len(self._recent) > self._limit
        if slow and self._skipped < self._every - 1:
            self._skipped += 1
            return False
        self._skipped = 0
        return True

    def observe(self, seconds: float) -> None:
        """Note the seconds of a call that ran."""
        self._recent.append(seconds)


logger = logging.getLogger(__name__)

MAX_NAMES = 1000
LOGGED_ERRORS = 10  # per name, with their tracebacks; later ones are only counted
OTHER = "(other)"  # where calls are counted once MAX_NAMES names are in use


@dataclass
class _Record:
    calls: int = 0
    errors: int = 0
    skipped: int = 0
    total: float = 0.0
    longest: float = 0.0
    shortest: float = float("inf")


_records: dict[str, _Record] = {}
_lock = threading.Lock()  # callbacks run in threads of JAX


def _record(name: str) -> _Record:
    # Bounded: memory must not grow with calls, whatever names they are given.
    full = name not in _records and len(_records) >= MAX_NAMES
    return _records.setdefault(OTHER if full else name, _Record())


def host_callback(
    function: Callable[..., Any],
    *args: Any,
    name: str | None = None,
    enabled: bool = True,
    ordered: bool = False,
    throttle: Throttle | None = None,
    **kwargs: Any,
) -> None:
    """Call a Python function with the values of traced arrays, from compiled code.

    JAX arrays reach the function as NumPy arrays (typed keys as their data);
    everything else (titles, flags, NumPy arrays) is bound as it is. Under vmap the
    function runs once per row. With `enabled=False` the compiled program holds no
    callback. Calls may be pending when the computation has returned:
    `callback_statistics` waits for them. `ordered` needs a program of one device.
    """
    if not enabled:
        return
    label = name or getattr(function, "__name__", type(function).__name__)
    traced, bound = eqx.partition((args, kwargs), lambda x: isinstance(x, jax.Array))
    traced = jax.tree.map(
        lambda x: jax.random.key_data(x) if is_key(x.dtype) else x, traced
    )

    def call(values: Any) -> None:
        def run() -> None:
            given, named = eqx.combine(jax.tree.map(np.asarray, values), bound)
            function(*given, **named)

        run_guarded(run, label, throttle)

    jax.debug.callback(call, traced, ordered=ordered)


def run_guarded(
    function: Callable[[], Any], name: str, throttle: Throttle | None = None
) -> None:
    """Call a function on the host; log and count what it raises, time and throttle it.

    The one place in jaxrig that catches every exception: a picture that cannot be
    drawn must not end a training run. The first failures of a name are logged in full.
    """
    start, failed = time.perf_counter(), False
    try:
        if throttle is not None and not throttle.admit():
            with _lock:
                _record(name).skipped += 1
            return
        start = time.perf_counter()
        function()
        if throttle is not None:
            throttle.observe(time.perf_counter() - start)
    except (Exception, SystemExit):
        failed = True
        if _record(name).errors < LOGGED_ERRORS:
            logger.exception("callback %r failed; the computation goes on", name)
    seconds = time.perf_counter() - start
    with _lock:
        record = _record(name)
        record.calls += 1
        record.errors += failed
        record.total += seconds
        record.longest = max(record.longest, seconds)
        record.shortest = min(record.shortest, seconds)


def callback_statistics() -> dict[str, dict[str, float]]:
    """Return statistics of every callback by name, after waiting for pending calls."""
    jax.effects_barrier()
    with _lock:
        return {
            name: {
                "total_calls": record.calls,
                "error_count": record.errors,
                "skipped_calls": record.skipped,
                "avg_time_ms": 1e3 * record.total / max(record.calls, 1),
                "max_time_ms": 1e3 * record.longest,
                "min_time_ms": 1e3 * record.shortest if record.calls else 0.0,
                "total_time_ms": 1e3 * record.total,
            }
            for name, record in _records.items()
        }


def reset_callback_statistics() -> None:
    """Forget the statistics, after waiting for pending calls."""
    jax.effects_barrier()
    with _lock:
        _records.clear()
