"""When to skip a call: because it is slow, or because the last was just now.

The decision is taken on the host each time, so it starts and stops as things change.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Protocol, runtime_checkable


@runtime_checkable
class Throttle(Protocol):
    """Admits or skips calls, and learns how long the admitted ones took."""

    def admit(self) -> bool:
        """Whether the next call shall run."""
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
        if not (max_mean_ms >= 0 and every >= 1 and window >= 1):
            raise ValueError(
                f"max_mean_ms={max_mean_ms}, every={every}, window={window}: "
                "need >= 0, >= 1 and >= 1"
            )
        self._limit = max_mean_ms / 1e3
        self._every = every
        self._recent: deque[float] = deque(maxlen=window)
        self._skipped = 0

    def admit(self) -> bool:
        """Every call while calls are quick, every tenth while they are slow."""
        slow = self._recent and sum(self._recent) / len(self._recent) > self._limit
        if slow and self._skipped < self._every - 1:
            self._skipped += 1
            return False
        self._skipped = 0
        return True

    def observe(self, seconds: float) -> None:
        """Note the seconds of a call that ran."""
        self._recent.append(seconds)


class Interval:
    """Run a call only when the last one is at least some seconds ago."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic):
        self._seconds = seconds
        self._clock = clock
        self._last = -float("inf")

    def admit(self) -> bool:
        """The first call, and later ones when the interval has passed."""
        now = self._clock()
        if now - self._last < self._seconds:
            return False
        self._last = now
        return True

    def observe(self, seconds: float) -> None:
        """The length of a call does not matter to an interval."""
