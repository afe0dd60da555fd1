"""The recorded paths of a run, as host arrays with the questions one asks of them."""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int8
from numpy.typing import ArrayLike, DTypeLike

from jaxtrace import measures, paths
from jaxtrace.tracking.shapes import (
    as_axis_index,
    as_floats,
    as_index,
    as_paths,
    as_slots,
    require_shape,
)
from jaxtrace.types import ParticleStatus

FORMAT_VERSION = "1.0"
PLANES = {"xy": 2, "xz": 1, "yz": 0}  # and the axis each leaves out
PLOTTED_PARTICLES = 20

Indices = Sequence[SupportsIndex] | Int[np.ndarray, " indices"]


class TrajectoryArrays(eqx.Module):
    """The arrays of a trajectory on a JAX device, ready to pass into compiled code."""

    positions: Float[Array, "frames particles 3"]
    times: Float[Array, " frames"]
    velocities: Float[Array, "frames particles 3"] | None
    alive: Bool[Array, "frames particles"]
    generation: Int[Array, "frames particles"]


class Trajectory:
    """Positions of N particles at T instants, and what became of each particle.

    `positions` may be `(3,)`, `(T, 2)`, `(T, 3)`, `(T, N, 2)` or `(T, N, 3)`; a 2-D
    array is one particle over time. `alive` is True where positions are finite unless
    given; `generation` counts the particles that used a slot before; `exit_time` is NaN
    while a particle is inside. Lengths and speeds are those of unwrapped paths where
    `metadata["period"]` names axes that wrap, and never include a recycled particle's
    jump; an absorbed particle counts up to its last alive frame.
    """

    positions: Float[np.ndarray, "frames particles 3"]
    times: Float[np.ndarray, " frames"]
    velocities: Float[np.ndarray, "frames particles 3"] | None
    metadata: dict[str, Any]
    alive: Bool[np.ndarray, "frames particles"]
    generation: Int[np.ndarray, "frames particles"]
    status: Int8[np.ndarray, " particles"]
    exit_time: Float[np.ndarray, " particles"]

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

    def _guess_status(self) -> Int8[np.ndarray, " particles"]:
        """Alive at the end: active; alive before: absorbed; never alive: lost."""
        seen, inside = self.alive.any(axis=0), self.alive[-1:].any(axis=0)
        absent = np.where(seen, ParticleStatus.ABSORBED, ParticleStatus.LOST)
        return np.where(inside, ParticleStatus.ACTIVE, absent).astype(np.int8)

    def _guess_exit_time(self) -> Float[np.ndarray, " particles"]:
        """The first frame after the last alive one; NaN if inside or never seen."""
        after_last = self.T - np.argmax(self.alive[::-1], axis=0) if self.T else 0
        left = self.alive.any(axis=0) & (after_last < self.T)
        known = np.append(self.times, self.times.dtype.type(np.nan))
        return known[np.where(left, after_last, self.T)]

    @property
    def T(self) -> int:
        """Number of recorded frames."""
        return self.positions.shape[0]

    @property
    def N(self) -> int:
        """Number of particles."""
        return self.positions.shape[1]

    @property
    def D(self) -> int:
        """Number of space dimensions, always 3."""
        return self.positions.shape[2]

    @property
    def num_particles(self) -> int:
        """Number of particles."""
        return self.N

    @property
    def num_timesteps(self) -> int:
        """Number of recorded frames."""
        return self.T

    @property
    def duration(self) -> float:
        """Time from first to last frame, negative when tracked backwards."""
        return float(self.times[-1] - self.times[0]) if self.T > 1 else 0.0

    @property
    def dt_mean(self) -> float:
        """Mean time between frames."""
        return self.duration / (self.T - 1) if self.T > 1 else 0.0

    @property
    def residence_time(self) -> Float[np.ndarray, " particles"]:
        """How long each slot's first particle was inside, NaN while it still is."""
        entered, left = paths.first_stays(self)
        return np.abs(left - entered)

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
        frames = as_axis_index(keys[0], self.T, "frame")
        particles = as_axis_index(keys[1], self.N, "particle")
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
        )

    def get_positions_at_time(
        self, t_idx: SupportsIndex
    ) -> Float[np.ndarray, "particles 3"]:
        """A copy of all positions at one frame."""
        return self.positions[as_index(t_idx, self.T, "frame")].copy()

    def get_particle_trajectory(
        self, p_idx: SupportsIndex
    ) -> tuple[Float[np.ndarray, "frames 3"], Float[np.ndarray, " frames"]]:
        """Copies of one particle's positions and of the times."""
        particle = as_index(p_idx, self.N, "particle")
        return self.positions[:, particle].copy(), self.times.copy()

    def extract_2d_slice(self, plane: str = "xy") -> "Trajectory":
        """The projection onto a plane: the component that leaves it is zero."""
        if plane.lower() not in PLANES:
            raise ValueError(f"plane is {plane!r}: choose one of {', '.join(PLANES)}")
        flat = self.to_numpy()
        axis = PLANES[plane.lower()]
        flat.positions[..., axis] = np.where(flat.alive, 0, flat.positions[..., axis])
        if flat.velocities is not None:
            flat.velocities[..., axis] = 0
        flat.metadata["extracted_plane"] = plane.lower()
        return flat

    def compute_displacement(self) -> Float[np.ndarray, " particles"]:
        """Distance from start to end of each slot's latest life."""
        return measures.displacements(self)

    def compute_path_length(self) -> Float[np.ndarray, " particles"]:
        """Length of each slot's path, summed over its lives."""
        return measures.path_lengths(self)

    def compute_speeds(self) -> Float[np.ndarray, "steps particles"]:
        """Recorded speed at the start of each frame interval, else length over time."""
        return measures.speeds(self)

    def to_jax(self) -> TrajectoryArrays:
        """The arrays on the default JAX device, in the dtype of the positions."""
        dtype = self.positions.dtype
        if jax.dtypes.canonicalize_dtype(dtype) != dtype:
            raise ValueError(
                f"positions are {dtype}, which JAX would cut to float32: set "
                'jaxtrace.configure(dtype="float64") first'
            )
        return TrajectoryArrays(
            jnp.asarray(self.positions),
            jnp.asarray(self.times.astype(dtype)),
            None
            if self.velocities is None
            else jnp.asarray(self.velocities.astype(dtype)),
            jnp.asarray(self.alive),
            jnp.asarray(self.generation),
        )

    def to_numpy(self) -> "Trajectory":
        """An independent copy."""
        return Trajectory(
            self.positions.copy(),
            self.times.copy(),
            None if self.velocities is None else self.velocities.copy(),
            self.metadata,
            self.alive.copy(),
            self.generation.copy() if any(self.generation.strides) else None,
            self.status.copy(),
            self.exit_time.copy(),
        )

    def memory_usage_mb(self) -> float:
        """Host memory held by the arrays of all frames, in MiB."""
        return measures.memory_mb(self)

    def subsample_time(self, step: int = 2) -> "Trajectory":
        """Every `step`-th frame, from the first."""
        if step < 1:
            raise ValueError(f"step is {step}: give a whole number of at least 1")
        thinned = self[::step]
        thinned.metadata["subsampled"] = step
        return thinned

    def get_bounds(self) -> tuple[Float[np.ndarray, "3"], Float[np.ndarray, "3"]]:
        """Lowest and highest recorded coordinates of alive particles, NaN if none."""
        return measures.bounds(self)

    def analyze_convergence(self) -> dict[str, Any]:
        """Final and furthest distance of the latest lives from their starts."""
        if self.T < 2:
            return {"status": "insufficient_data", "num_timesteps": self.T}
        reached = measures.summarize(measures.displacements(self))
        furthest = measures.summarize(measures.furthest_distances(self))
        return {
            "status": "success",
            "num_timesteps": self.T,
            "num_particles": self.N,
            "duration": self.duration,
            "mean_final_displacement": reached["mean"],
            "max_final_displacement": reached["max"],
            "mean_max_displacement": furthest["mean"],
            "trajectory_bounds": self.get_bounds(),
            "memory_usage_mb": self.memory_usage_mb(),
        }

    def export_to_vtk(
        self, filename: str | PathLike[str], time_indices: Indices | None = None
    ) -> None:
        """Write alive particles of the chosen frames as vertices of one `.vtu` file.

        Point arrays: `Velocity`, `Speed`, `Time` and `ParticleID`.
        """
        from jaxtrace.files.trajectories import export_points_vtu

        every = range(self.T) if time_indices is None else time_indices
        frames = [as_index(frame, self.T, "frame") for frame in every]
        if not frames:
            raise ValueError("time_indices name no frame: give at least one")
        # One frame is written with its time, several as points in a row.
        pick = frames[0] if len(frames) == 1 else np.array(frames)
        velocities = np.stack([self._velocities_at(frame) for frame in frames])
        export_points_vtu(
            self.positions[pick],
            filename,
            time=self.times[pick],
            velocities=velocities.reshape(self.positions[pick].shape),
            alive=self.alive[pick],
        )

    def _velocities_at(self, frame: int) -> Float[np.ndarray, "particles 3"]:
        """Velocities at one frame; the window keeps one frame of a long run cheap."""
        start = max(frame - 1, 0)
        return measures.frame_velocities(self[start : frame + 2])[frame - start]

    def plot_2d(
        self,
        plane: str = "xy",
        particle_indices: Indices | None = None,
        show_arrows: bool = False,
        figsize: tuple[float, float] = (10, 8),
    ) -> Any:
        """Draw paths in a plane; without `particle_indices` those of the first 20."""
        from jaxtrace.plot.static import plot_trajectory_2d

        if particle_indices is None:
            particle_indices = range(min(self.N, PLOTTED_PARTICLES))
        chosen = self[:, [as_index(i, self.N, "particle") for i in particle_indices]]
        return plot_trajectory_2d(
            chosen, plane=plane, show_arrows=show_arrows, figsize=figsize
        )
