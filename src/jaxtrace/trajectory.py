"""Recorded paths of a run as host arrays, and several trajectories merged into one."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Int8, Shaped
from numpy.typing import ArrayLike, DTypeLike

from jaxrig.notebook import Shown
from jaxtrace import paths
from jaxtrace.types import ParticleStatus, check_choice


def as_floats(values: ArrayLike, name: str) -> Float[np.ndarray, "*shape"]:
    """Return a host array of at least single precision, losing no digit."""
    array = np.asarray(values)
    if not np.can_cast(array.dtype, np.float64, "same_kind"):
        raise ValueError(f"{name} are of type {array.dtype}: give real numbers")
    return array.astype(np.result_type(array.dtype, np.float32), copy=False)


def as_paths(values: ArrayLike, name: str) -> Float[np.ndarray, "frames particles 3"]:
    """Return (frames, particles, 3); a 2-D array is one particle over time."""
    array = as_floats(values, name)
    if array.ndim not in (1, 2, 3) or array.shape[-1] not in (2, 3):
        raise ValueError(
            f"{name} have shape {array.shape}: give (T, N, 3), (T, 3) for one particle "
            "or (3,) for one point, with 2 in place of 3 for planar paths"
        )
    if array.ndim < 3:
        array = array.reshape(-1, 1, array.shape[-1])
    if array.shape[-1] == 2:
        array = np.pad(array, ((0, 0), (0, 0), (0, 1)))
    return array


def as_slots(
    values: ArrayLike, name: str, dtype: DTypeLike, shape: tuple[int, int]
) -> Shaped[np.ndarray, "frames particles"]:
    """Return one value per frame and particle; (frames,) will do for one particle."""
    array = np.asarray(values)
    array = array if array.dtype == dtype else array.astype(dtype)
    if array.ndim == 1 and shape[1] == 1:
        array = array[:, None]
    require_shape(name, array, shape)
    return array


def require_shape(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raise unless the array has the shape that the positions ask for."""
    if array.shape != shape:
        raise ValueError(
            f"{name} has shape {array.shape}: these positions need {shape}, one entry "
            "per frame or particle"
        )


def as_axis_index(key: Any, size: int) -> slice | np.ndarray:
    """Return an index that keeps the axis: a number picks a part of one."""
    if isinstance(key, slice):
        return key
    # An empty list would be an array of floats, which picks nothing.
    picked = np.arange(size)[np.asarray(key, None if np.size(key) else int)]
    if picked.ndim > 1:
        raise IndexError(f"parts are picked along one axis, not by {picked.ndim}-D")
    return np.atleast_1d(picked)


FORMAT_VERSION = "1.0"


class Trajectory(Shown):
    """Positions of N particles at T instants, and what became of each particle.

    `positions` may be `(3,)`, `(T, 2)`, `(T, 3)`, `(T, N, 2)` or `(T, N, 3)`; a 2-D
    array is one particle over time. `alive` is True where positions are finite unless
    given; `generation` counts the particles that used a slot before; `exit_time` is NaN
    while a particle is inside. Lengths and speeds are those of unwrapped paths where
    `metadata["period"]` names axes that wrap, and never include a recycled particle's
    jump; an absorbed particle counts up to its last alive frame. `variables` are what
    was sampled along the paths and the states of behaviors, (T, N) by name, and
    `release_time` (N,) is when particles entered; None: all did at the first frame.
    """

    shown_by = "jaxtrace.plot.canvas:show_trajectory"
    positions: Float[np.ndarray, "frames particles 3"]
    times: Float[np.ndarray, " frames"]
    velocities: Float[np.ndarray, "frames particles 3"] | None
    metadata: dict[str, Any]
    alive: Bool[np.ndarray, "frames particles"]
    generation: Int[np.ndarray, "frames particles"]
    status: Int8[np.ndarray, " particles"]
    exit_time: Float[np.ndarray, " particles"]
    variables: dict[str, Float[np.ndarray, "frames particles"]]
    release_time: Float[np.ndarray, " particles"] | None = None

    def __init__(
        self,
        positions: ArrayLike,
        times: ArrayLike,
        velocities: ArrayLike | None = None,
        metadata: Mapping[str, Any] | None = None,
        alive: ArrayLike | None = None,
        generation: ArrayLike | None = None,
        status: ArrayLike | None = None,
        exit_time: ArrayLike | None = None,
        variables: Mapping[str, ArrayLike] | None = None,
        release_time: ArrayLike | None = None,
    ):
        self.positions = as_paths(positions, "positions")
        frames, particles, _ = self.positions.shape
        self.times = np.atleast_1d(as_floats(times, "times"))
        require_shape("times", self.times, (frames,))
        self.velocities = None
        if velocities is not None:
            self.velocities = as_paths(velocities, "velocities")
            require_shape("velocities", self.velocities, self.positions.shape)
        self.metadata = {
            "format_version": FORMAT_VERSION,
            "coordinate_system": "cartesian",
            **(metadata or {}),
            "dtype": str(self.positions.dtype),
        }
        paths.read_period(self.metadata)
        slots = (frames, particles)
        if alive is None:
            alive = np.isfinite(self.positions).all(axis=-1)
        self.alive = as_slots(alive, "alive", np.bool_, slots)
        if generation is None:
            # A broadcast zero: most runs recycle nothing and pay nothing for it.
            generation = np.broadcast_to(np.int32(0), slots)
        self.generation = as_slots(generation, "generation", np.int32, slots)
        if status is None:
            status = self._guess_status()
        self.status = np.asarray(status, dtype=np.int8)
        require_shape("status", self.status, (particles,))
        if exit_time is None:
            exit_time = self._guess_exit_time()
        self.exit_time = as_floats(exit_time, "exit_time")
        require_shape("exit_time", self.exit_time, (particles,))
        self.variables = {n: as_floats(a, n) for n, a in (variables or {}).items()}
        for name, values in self.variables.items():
            require_shape(name, values, slots)
        if release_time is not None:
            self.release_time = as_floats(release_time, "release_time")
            require_shape("release_time", self.release_time, (particles,))

    def _guess_status(self) -> Int8[np.ndarray, " particles"]:
        """Return active if alive at the end, absorbed if alive before, else lost."""
        seen, inside = self.alive.any(axis=0), self.alive[-1:].any(axis=0)
        absent = np.where(seen, ParticleStatus.ABSORBED, ParticleStatus.LOST)
        return np.where(inside, ParticleStatus.ACTIVE, absent).astype(np.int8)

    def _guess_exit_time(self) -> Float[np.ndarray, " particles"]:
        """Return the first frame after the last alive one, or NaN."""
        after_last = self.T - np.argmax(self.alive[::-1], axis=0) if self.T else 0
        left = self.alive.any(axis=0) & (after_last < self.T)
        known = np.append(self.times, self.times.dtype.type(np.nan))
        return known[np.where(left, after_last, self.T)]

    @property
    def T(self) -> int:
        """Return the number of recorded frames."""
        return self.positions.shape[0]

    @property
    def N(self) -> int:
        """Return the number of particles."""
        return self.positions.shape[1]

    @property
    def duration(self) -> float:
        """Return time from first to last frame, negative when tracked backwards."""
        return float(self.times[-1] - self.times[0]) if self.T > 1 else 0.0

    @property
    def dt_mean(self) -> float:
        """Return mean time between frames."""
        return self.duration / (self.T - 1) if self.T > 1 else 0.0

    def __len__(self) -> int:
        return self.T

    def __iter__(self) -> Iterator["Trajectory"]:
        return (self[frame] for frame in range(self.T))

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray:
        converted = np.asarray(self.positions, dtype=dtype)
        if copy is False and converted is not self.positions:
            raise ValueError(
                f"positions are {self.positions.dtype}: they become {converted.dtype} "
                "only as a copy; leave out copy=False"
            )
        return converted.copy() if copy else converted

    def __repr__(self) -> str:
        return (
            f"Trajectory(T={self.T}, N={self.N}, duration={self.duration:.6g}, "
            f"dtype={self.positions.dtype}, memory={self.memory_usage_mb():.1f} MB)"
        )

    def __getitem__(self, key: Any) -> "Trajectory":
        """Frames, or frames and particles, as a trajectory; both axes are kept."""
        keys = key if isinstance(key, tuple) else (key, slice(None))
        if len(keys) != 2:
            raise IndexError(f"{len(keys)} indices given: give frames and particles")
        frames = as_axis_index(keys[0], self.T)
        particles = as_axis_index(keys[1], self.N)
        pick = lambda array: array[frames][:, particles]
        times, exit_time = self.times[frames], self.exit_time[particles].copy()
        status = self.status[particles].copy()
        if times.size:
            later = (exit_time - times[-1]) * np.sign(self.duration) > 0
            exit_time[later], status[later] = np.nan, ParticleStatus.ACTIVE
        return Trajectory(
            pick(self.positions),
            times,
            None if self.velocities is None else pick(self.velocities),
            self.metadata,
            pick(self.alive),
            pick(self.generation),
            status,
            exit_time,
            {name: pick(values) for name, values in self.variables.items()},
            None if self.release_time is None else self.release_time[particles],
        )

    residence_time = property(paths.residence_times)
    compute_displacement = paths.displacements
    compute_path_length = paths.path_lengths
    compute_speeds = paths.speeds
    memory_usage_mb = paths.memory_mb
    get_bounds = paths.bounds


# Clocks agree when they differ by less than this part of a frame interval.
CLOCK_AGREEMENT = 1e-3


def merge_trajectories(
    trajectories: Sequence[Trajectory], axis: str = "time"
) -> Trajectory:
    """Return one trajectory out of several, one after another or side by side.

    Along time, a part that begins with the very frame at which the one before it ended
    (a restarted run) contributes that frame once. Velocities are kept when every part
    has them; metadata is the first part's.
    """
    check_choice("axis", axis, ("time", "particles"))
    if not trajectories:
        raise ValueError("there is nothing to merge: give at least one trajectory")
    one, *others = (paths.read_period(part.metadata) for part in trajectories)
    if odd := [two for two in others if not np.array_equal(one, two)]:
        raise ValueError(
            f"periods {one} and {odd[0]} differ: paths of different domains do not "
            "merge"
        )
    merged = (_join_frames if axis == "time" else _join_particles)(trajectories)
    merged.metadata |= {"merged_axis": axis, "merged_count": len(trajectories)}
    return merged


def _join_frames(parts: Sequence[Trajectory]) -> Trajectory:
    counts = [part.N for part in parts]
    if len(set(counts)) > 1:
        raise ValueError(
            f"the parts have {counts} particles: parts merged along time must have the "
            "same number"
        )
    first = parts[0]
    kept, generations, count = [first], [first.generation], first.generation
    status, exit_time = first.status, first.exit_time
    for before, after in pairwise(parts):
        repeated = int(_begins_where_ended(before, after))
        kept.append(after[repeated:])
        # Generations go on from where the part before stopped to count.
        more = np.maximum(count[-1:] - after.generation[:1], 0)
        count = after.generation + more.sum(axis=0, dtype=np.int32)
        generations.append(count[repeated:])
        status = np.where(after.alive.any(axis=0), after.status, status)
        exit_time = np.where(np.isnan(after.exit_time), exit_time, after.exit_time)
    times = np.concatenate([part.times for part in kept])
    merged = _joined(kept, 0, times, generations, status, exit_time)
    merged.release_time = first.release_time
    return merged


def _begins_where_ended(before: Trajectory, after: Trajectory) -> bool:
    if not before.T or not after.T or after.times[0] != before.times[-1]:
        return False
    return np.array_equal(before.positions[-1], after.positions[0], equal_nan=True)


def _join_particles(parts: Sequence[Trajectory]) -> Trajectory:
    first = parts[0]
    allowed = CLOCK_AGREEMENT * abs(first.dt_mean)
    for part in parts[1:]:
        same = part.T == first.T
        if not same or np.abs(part.times - first.times).max(initial=0) > allowed:
            raise ValueError(
                f"the parts have {first.T} and {part.T} frames or different times: "
                "parts merged along particles must share their frames"
            )
    generation = [part.generation for part in parts]
    status = np.concatenate([part.status for part in parts])
    exit_time = np.concatenate([part.exit_time for part in parts])
    merged = _joined(parts, 1, first.times, generation, status, exit_time)
    released = [p.release_time for p in parts if p.release_time is not None]
    if len(released) == len(parts):
        merged.release_time = np.concatenate(released)
    return merged


def _joined(
    parts: Sequence[Trajectory],
    axis: int,
    times: np.ndarray,
    generation: Sequence[np.ndarray],
    status: np.ndarray,
    exit_time: np.ndarray,
) -> Trajectory:
    """Return one trajectory with the velocities and variables that every part has."""
    join = lambda arrays: np.concatenate(list(arrays), axis=axis)
    moving = all(part.velocities is not None for part in parts)
    shared = [n for n in parts[0].variables if all(n in p.variables for p in parts)]
    return Trajectory(
        join(part.positions for part in parts),
        times,
        join(part.velocities for part in parts) if moving else None,
        parts[0].metadata,
        join(part.alive for part in parts),
        join(generation),
        status,
        exit_time,
        {name: join(part.variables[name] for part in parts) for name in shared},
    )
