"""Long work of a studio: threads with progress that every tab sees and can stop."""

import asyncio
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_RUNNING = 2
MOST_KEPT = 20
# What a request, a file or a machine can cause; anything else is a bug and is shown
# with its traceback in the terminal.
FAILURES = (
    *(ValueError, TypeError, OSError, ImportError),
    *(RuntimeError, ArithmeticError, MemoryError),
)


class Stopped(Exception):
    """Raised inside a job that someone asked to stop."""


class Hub:
    """Events for all open tabs; may be told from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queues: set[asyncio.Queue[dict[str, Any]]] = set()

    def open(self) -> asyncio.Queue[dict[str, Any]]:
        """Return a queue that gets every event from now on."""
        self._loop = asyncio.get_running_loop()
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._queues.add(queue)
        return queue

    def close(self, queue: asyncio.Queue[dict[str, Any]]) -> None:
        """Stop filling a queue."""
        self._queues.discard(queue)

    def publish(self, event: dict[str, Any]) -> None:
        """Tell every tab; without one, nobody."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._put, event)

    def _put(self, event: dict[str, Any]) -> None:
        for queue in self._queues:
            queue.put_nowait(event)


@dataclass(eq=False)
class Job:
    """One piece of work: how far it is, its frames so far, and what came of it."""

    room: str
    title: str
    publish: Callable[[dict[str, Any]], None]
    id: str = field(default_factory=lambda: secrets.token_hex(6))
    state: str = "running"  # then done, stopped or failed
    label: str = "starting"
    done: int = 0
    total: int = 0
    message: str = ""
    about: dict[str, Any] = field(default_factory=dict)
    frames: list[bytes] = field(default_factory=list)
    result: Any = None
    _asked: threading.Event = field(default_factory=threading.Event)

    def facts(self) -> dict[str, Any]:
        """Return what pages show of it."""
        names = ("id", "room", "title", "state", "label", "done", "total", "message")
        facts = {name: getattr(self, name) for name in names}
        return facts | {"about": self.about, "frames": len(self.frames)}

    def show(self, label: str, done: int = 0, total: int = 0) -> None:
        """Tell how far the work is; raises Stopped when it should end."""
        if self._asked.is_set():
            raise Stopped
        self.label, self.done, self.total = label, done, total
        self.publish({"kind": "job", **self.facts()})

    def describe(self, about: Mapping[str, Any]) -> None:
        """Add facts that pages need to read the frames."""
        self.about = {**self.about, **about}

    def add(self, frames: list[bytes]) -> None:
        """Append frames, which all tabs then receive."""
        self.frames.extend(frames)
        self.publish({"kind": "job", **self.facts()})

    def stop(self) -> None:
        """Ask the work to end at its next report."""
        self._asked.set()

    def run(self, work: Callable[["Job"], Any]) -> None:
        """Do the work and keep its outcome, or say why there is none."""
        try:
            self.result = work(self)
            self.state, self.label = "done", "done"
        except Stopped:
            self.state, self.label, self.message = "stopped", "stopped", "stopped"
        except FAILURES as error:
            self.state, self.label = "failed", "failed"
            self.message = str(error) or type(error).__name__
        finally:
            if self.state == "running":  # a bug, which the thread shows in the terminal
                self.state = self.label = "failed"
                self.message = "an error of the studio: its terminal shows where"
            self.publish({"kind": "job", **self.facts()})


class Jobs:
    """The jobs of a studio; old ones make room for others."""

    def __init__(self, hub: Hub):
        self.hub = hub
        self._jobs: dict[str, Job] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()

    def start(self, room: str, title: str, work: Callable[[Job], Any]) -> Job:
        """Begin a piece of work in a thread of its own."""
        with self._lock:
            running = [job for job in self._jobs.values() if job.state == "running"]
            if len(running) >= MOST_RUNNING:
                raise ValueError(
                    f"{len(running)} runs are under way: wait for one, or stop it"
                )
            job = Job(room, title, self.hub.publish)
            for old in [k for k, j in self._jobs.items() if j.state != "running"]:
                if len(self._jobs) >= MOST_KEPT:
                    del self._jobs[old], self._threads[old]
            thread = threading.Thread(target=job.run, args=(work,), daemon=True)
            self._jobs[job.id], self._threads[job.id] = job, thread
        thread.start()
        return job

    def get(self, name: str) -> Job:
        """Return a job by its id."""
        if name not in self._jobs:
            raise FileNotFoundError(f"no run {name!r} in this studio: start it again")
        return self._jobs[name]

    def all(self) -> list[Job]:
        """Return the jobs, the newest first."""
        return list(self._jobs.values())[::-1]

    def stop(self, seconds: float) -> None:
        """Ask every job to end, and wait a while for that."""
        for name, thread in self._threads.items():
            self._jobs[name].stop()
            thread.join(seconds)
