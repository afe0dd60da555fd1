"""Destinations of the frames of a run: memory, or a store on disk as they come.

A run to disk keeps its particles beside the frames after every chunk, so that a run
that was stopped goes on from there, bit for bit.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from jaxrig import CheckpointManager
from jaxtrace.io.convert import export_store, streaming_path
from jaxtrace.io.store import RECORDED, open_store
from jaxtrace.tracking.particles import Particles
from jaxtrace.tracking.release import Releases
from jaxtrace.tracking.time_loop import Chunk, Record
from jaxtrace.trajectory import Trajectory
from jaxtrace.types import ParticleStatus

Arrays = dict[str, np.ndarray]
# What two parts of one run share.
SAME_RUN = (
    *("integrator", "n_particles", "n_timesteps", "dt", "seed", "recording_interval"),
    *("time_span", "dtype", "releases", "sampled"),
    *("seeds", "flow", "boundary", "motion"),
)
FINGERPRINTED = 4096  # numbers; larger arrays are data, which may be laid out otherwise


def fingerprint(name: str, tree: Any) -> str:
    """Return a name, and a digest of the small arrays of a tree."""
    digest = sha256()
    for leaf in filter(eqx.is_array, jax.tree.leaves(tree)):
        if leaf.size <= FINGERPRINTED:
            digest.update(np.ascontiguousarray(leaf).tobytes())
    return f"{name} {digest.hexdigest()[:12]}"


@dataclass
class Output:
    """The frames of a run: their times, their particles, and how it was made."""

    times: np.ndarray
    count: int
    facts: dict[str, Any]
    releases: Releases | None = None

    @property
    def forward(self) -> bool:
        """Return whether time rises."""
        return bool(self.times[-1] >= self.times[0])

    def make_trajectory(
        self, arrays: Arrays, particles: Particles, fill: float
    ) -> Trajectory:
        """Return recorded frames and what became of the particles."""
        if self.releases is not None:
            waiting = self.releases.waiting(self.times, self.forward)
            arrays = _without(arrays, waiting)
        positions, generation = arrays["positions"], arrays.get("generation")
        status = np.asarray(particles.status)[: self.count]
        if self.releases is None:
            alive = _presence(positions, generation, status)
        else:
            alive = np.isfinite(positions[..., 0])
        if not np.isnan(fill):
            positions = positions.copy()
            positions[~alive] = fill
        return Trajectory(
            positions,
            self.times,
            arrays.get("velocities"),
            self.facts,
            alive=alive,
            generation=generation,
            status=status,
            exit_time=np.asarray(particles.exit_time)[: self.count],
            variables={n: a for n, a in arrays.items() if n not in RECORDED},
            release_time=None if self.releases is None else self.releases.times,
        )


class Collected(Output):
    """Frames gathered in host memory."""

    streams = False

    def begin(self, opening: Record, particles: Particles) -> tuple[int, Particles]:
        """Take frame 0; say from which frame on to go, and with which particles."""
        self.arrays: Arrays = {}
        for name, array in _recorded(opening).items():
            shape = (len(self.times), self.count, *array.shape[2:])
            self.arrays[name] = np.empty(shape, array.dtype)
        self._opening = opening  # fetched at the end: the run need not wait for it
        return 0, particles

    def take(self, chunk: Chunk) -> None:
        """Fetch a chunk while the next is worked out."""
        self._put(chunk.first + 1, chunk.records)

    def trajectory(self, particles: Particles, fill: float) -> Trajectory:
        """Return all frames as a trajectory."""
        self._put(0, (self._opening,))
        return self.make_trajectory(self.arrays, particles, fill)

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _put(self, at: int, records: Sequence[Record]) -> None:
        start = 0
        for record in records:
            arrays = _host(record)
            stop = start + arrays["positions"].shape[1]
            for name, array in arrays.items():
                own = self.arrays[name][at : at + len(array), start:stop]
                own[:] = array[:, : own.shape[1]]  # the rest only fills up
            start = stop


class Streamed(Output):
    """Frames written to a .zarr store, and particles kept beside it.

    Another format is exported from the store when the run ends.
    """

    streams = True

    def __init__(self, path: Path, resume: bool, *run: Any):
        super().__init__(*run)
        self.path, self.export = streaming_path(path), path
        if path.exists() and not resume:
            raise FileExistsError(f"{path} exists: remove it, or resume the run")
        beside = self.path.with_name(self.path.name + ".state")
        self.keeper = CheckpointManager(beside, keep=2)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="frames")
        self._pending: Future[None] | None = None
        self.store = open_store(self.path, "a" if resume else "x")
        self.resume = self.store.frames > 0
        if self.resume:
            self._check()
        else:
            for step in self.keeper.steps():
                self.keeper.path(step).unlink()
            self.store.describe(self.facts)

    def _check(self) -> None:
        """Refuse to go on with a run that was another."""
        before = self.store.metadata
        for name in SAME_RUN:
            if before.get(name) != self.facts.get(name):
                self.store.close()
                raise ValueError(
                    f"{self.path} contains a run with {name}={before.get(name)!r}, but "
                    f"this run has {self.facts.get(name)!r}: use the same value, or "
                    "another output"
                )

    def begin(self, opening: Record, particles: Particles) -> tuple[int, Particles]:
        """Keep frame 0, or return the last frame that was kept with its particles."""
        if self.resume and self.keeper.latest() is not None:
            restored = self.keeper.restore(particles)
            done = restored.step
            self.store.truncate(done + 1)
            return done, restored.tree
        self.store.truncate(0)
        self._append(0, _host(opening))
        return 0, particles

    def _append(self, first: int, frames: Arrays) -> None:
        """Write frames; a particle begins with its seed, at the time of its release."""
        clock = self.times[first : first + len(frames["positions"])]
        if self.releases is None:
            self.store.append(clock, frames)
            return
        waiting = self.releases.waiting(clock, self.forward)
        begun = self.releases.first_frames(self.times, self.forward) - first
        here = np.flatnonzero((begun >= 0) & (begun < len(clock)))
        when = np.broadcast_to(clock[:, None], waiting.shape).copy()
        when[begun[here], here] = self.releases.times[here]
        shown = _without(frames, waiting)
        seeds = frames["positions"][begun[here], here]
        shown["positions"][begun[here], here] = seeds
        for name, values in self.releases.values.items():
            shown[name][begun[here], here] = values[here]
        self.store.append(clock, shown, when)

    def take(self, chunk: Chunk) -> None:
        """Have a chunk written while the next is worked out; one waits at most.

        What went wrong with the chunk before is raised here.
        """
        self._wait()
        self._pending = self._writer.submit(self._write, chunk)

    def _wait(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def _write(self, chunk: Chunk) -> None:
        """Write frames, then particles, which are never ahead of the store.

        Slots that only fill up are left out: the run may go on with other batches.
        """
        first, last = chunk.first + 1, chunk.first + 1 + chunk.frames
        parts = [_host(record) for record in chunk.records]
        frames = {
            name: np.concatenate([part[name] for part in parts], 1)[:, : self.count]
            for name in parts[0]
        }
        self._append(first, frames)
        real = jax.tree.map(lambda x: x[: self.count], chunk.particles)
        self.keeper.save(last - 1, real)

    def trajectory(self, particles: Particles, fill: float) -> Trajectory:
        """Return the whole run, read back from disk; write the format asked for."""
        self._wait()
        ends: dict[str, Any] = {
            "status": particles.status,
            "exit_time": particles.exit_time,
        }
        if self.releases is not None:
            ends["release_time"] = self.releases.times
        self.store.finish({n: np.asarray(a)[: self.count] for n, a in ends.items()})
        if self.export != self.path:
            export_store(self.store, self.export)
        self.times, arrays = self.store.read()
        return self.make_trajectory(arrays, particles, fill)

    def close(self) -> None:
        """Let the writing end, also of a run that was interrupted."""
        self._writer.shutdown()
        self.store.close()


def open_output(output: Any, resume: bool, *run: Any) -> Collected | Streamed:
    """Open memory, or the store of a path; `run` are the fields of `Output`."""
    if output is not None:
        return Streamed(Path(output), resume, *run)
    if resume:
        raise ValueError("resume needs the output of the run to resume")
    return Collected(*run)


def _presence(
    positions: np.ndarray, generation: np.ndarray | None, status: np.ndarray
) -> np.ndarray:
    """Return where there is a particle; checks only slots that were ever empty."""
    emptied = status != ParticleStatus.ACTIVE
    if generation is not None:
        emptied = emptied | (generation[-1] > 0)
    alive = np.ones(positions.shape[:2], bool)
    alive[:, emptied] = np.isfinite(positions[:, emptied, 0])
    return alive


def _without(arrays: Arrays, absent: np.ndarray) -> Arrays:
    """Return the arrays with NaN where there is no particle yet."""
    found = dict(arrays)
    for name in found.keys() - {"generation"}:
        found[name] = found[name].copy()
        found[name][absent] = np.nan
    return found


def _recorded(record: Record) -> dict[str, jax.Array]:
    """Return the arrays of a record by their names."""
    parts = {name: getattr(record, name) for name in RECORDED} | record.variables
    return {name: array for name, array in parts.items() if array is not None}


def _host(record: Record) -> Arrays:
    """Return the arrays of a record, fetched."""
    return {name: np.asarray(array) for name, array in _recorded(record).items()}
