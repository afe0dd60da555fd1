"""Progress of a loop as lines of text."""

import io
import sys
import time
from collections.abc import Callable

from jaxrig.memory import MIB, host_memory


def create_progress_callback(
    name: str = "Progress",
    update_every: int = 100,
    show_memory: bool = False,
    show_rate: bool = True,
    *,
    stream: io.TextIOBase | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Callable[[int, int], None]:
    """A function of (step, total) that writes a line every so many steps.

    The last step is always written. Lines go to standard error by default; the rate
    counts from the first call.
    """
    if update_every < 1:
        raise ValueError(f"update_every={update_every} must be at least 1")
    begin: list[tuple[int, float]] = []

    def report(step: int, total: int) -> None:
        now = clock()
        if not begin or step < begin[0][0]:  # a second run starts afresh
            begin[:] = [(step, now)]
        if step % update_every and step != total:
            return
        parts = [f"{name}: {step}/{total} ({100 * step / max(total, 1):.0f} %)"]
        first, then = begin[0]
        if show_rate and now > then:
            parts.append(f"{(step - first) / (now - then):,.0f} steps/s")
        if show_memory:
            parts.append(f"{host_memory().resident / MIB:,.0f} MiB")
        out = sys.stderr if stream is None else stream
        out.write(", ".join(parts) + "\n")
        out.flush()

    return report
