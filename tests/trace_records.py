"""Recorded paths with closed forms: uniform motion, periodic boxes and channels."""

import numpy as np

from jaxtrace.trajectory import Trajectory
from jaxtrace.types import ParticleStatus


def uniform(velocity, seeds, times, period=None, **fields):
    """Particles in a uniform flow, wrapped into [0, period) where it is not 0."""
    velocity, seeds = np.asarray(velocity, float), np.asarray(seeds, float)
    times = np.asarray(times, float)
    positions = seeds + times[:, None, None] * velocity
    metadata = {}
    if period is not None:
        length = np.asarray(period, float)
        wraps = length > 0
        folded = np.mod(positions, np.where(wraps, length, 1))
        positions = np.where(wraps, folded, positions)
        metadata["period"] = tuple(period)
    return Trajectory(positions, times, metadata=metadata, **fields)


def absorbing_channel(speed, length, starts, times):
    """Particles that flow along x and are absorbed at `length`."""
    starts, times = np.asarray(starts, float), np.asarray(times, float)
    positions = np.zeros((len(times), len(starts), 3))
    positions[..., 0] = starts + speed * times[:, None]
    gone = positions[..., 0] >= length
    positions[gone] = np.nan
    left = gone.any(axis=0)
    exit_time = np.where(left, (length - starts) / speed, np.nan)
    status = np.where(left, ParticleStatus.EXITED, ParticleStatus.ACTIVE)
    return Trajectory(positions, times, alive=~gone, status=status, exit_time=exit_time)


def recycling_channel(speed, length, starts, times):
    """Particles that flow along x and enter anew at 0 when they reach `length`."""
    starts, times = np.asarray(starts, float), np.asarray(times, float)
    traveled = starts + speed * times[:, None]
    positions = np.zeros((*traveled.shape, 3))
    positions[..., 0] = np.mod(traveled, length)
    return Trajectory(positions, times, generation=traveled // length)
