import numpy as np
import pytest

from jaxtrace import paths
from jaxtrace.analysis import (
    completed_residence_times,
    dispersion,
    exit_times,
    mean_squared_displacement,
    residence_times,
)
from jaxtrace.tracking.trajectory import Trajectory
from trace_records import absorbing_channel, recycling_channel, uniform

TIMES = np.linspace(0, 4, 81)
SEEDS = np.random.default_rng(11).random((30, 3))


@pytest.mark.parametrize("period", [None, (1, 1, 1), (0, 1, 0)])
def test_uniform_motion_is_ballistic(period):
    msd = mean_squared_displacement(uniform([1, 2, 2], SEEDS, TIMES, period))
    np.testing.assert_allclose(msd, (3 * TIMES) ** 2, atol=1e-20)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_a_random_walk_spreads_as_twice_dimensions_times_diffusivity(dimensions):
    rng = np.random.default_rng(13)
    particles, diffusivity = 4000, 50.0
    steps = rng.normal(size=(40, particles, 3)) * np.sqrt(2 * diffusivity * 0.1)
    steps[..., dimensions:] = 0
    walk = np.concatenate([np.zeros((1, particles, 3)), np.cumsum(steps, axis=0)])
    times = 0.1 * np.arange(41)
    msd = mean_squared_displacement(Trajectory(walk, times))
    # The squared length of a Gaussian step varies by sqrt(2 / d) of its mean.
    error = 5 * np.sqrt(2 / dimensions / particles)
    np.testing.assert_allclose(msd, 2 * dimensions * diffusivity * times, rtol=error)


def test_recycled_particles_do_not_fall_back():
    trajectory = recycling_channel(1.0, 1.0, np.linspace(0.025, 0.975, 20), TIMES)
    msd = mean_squared_displacement(trajectory)
    left = TIMES < 0.97
    np.testing.assert_allclose(msd[left], TIMES[left] ** 2, atol=1e-12)
    assert np.isnan(msd[TIMES > 1]).all()


def test_only_the_particles_still_there_are_averaged():
    trajectory = absorbing_channel(1.0, 2.05, [0.0, 1.0], TIMES)
    msd = mean_squared_displacement(trajectory)
    np.testing.assert_allclose(msd[TIMES < 2.05], TIMES[TIMES < 2.05] ** 2, atol=1e-12)
    assert np.isnan(msd[TIMES > 2.1]).all()


def test_blocks_do_not_change_the_averages(monkeypatch):
    trajectory = uniform([1, 2, 2], SEEDS, TIMES, (1, 1, 1))
    whole = mean_squared_displacement(trajectory), dispersion(trajectory)
    monkeypatch.setattr(paths, "BLOCK_POSITIONS", 300)
    np.testing.assert_allclose(mean_squared_displacement(trajectory), whole[0])
    np.testing.assert_allclose(dispersion(trajectory), whole[1])


def test_pairs_part_with_the_shear():
    heights = np.array([0.0, 0.1])
    positions = np.zeros((len(TIMES), 2, 3))
    positions[..., 0] = np.mod(heights * TIMES[:, None] + [0.95, 1.05], 1.0)
    positions[..., 1] = heights
    trajectory = Trajectory(positions, TIMES, metadata={"period": (1, 0, 0)})
    wanted = (0.1 + 0.1 * TIMES) ** 2 + 0.1**2
    np.testing.assert_allclose(dispersion(trajectory), wanted)
    np.testing.assert_allclose(dispersion(trajectory, np.array([[1, 0]])), wanted)


def test_residence_in_a_uniform_channel():
    starts = np.array([0.0, 0.33, 0.9, -10.0])
    trajectory = absorbing_channel(0.5, 1.0, starts, TIMES)
    wanted = (1.0 - starts) / 0.5
    wanted[-1] = np.nan
    np.testing.assert_allclose(residence_times(trajectory), wanted)
    np.testing.assert_allclose(exit_times(trajectory), wanted)


def test_residence_counts_from_the_first_frame_seen():
    trajectory = absorbing_channel(0.5, 1.0, [0.0], TIMES)
    np.testing.assert_allclose(residence_times(trajectory[20:]), 1.0)
    np.testing.assert_allclose(exit_times(trajectory[20:]), 2.0)
    assert np.isnan(residence_times(trajectory[:20])).all()


def test_backward_residence_is_positive():
    trajectory = absorbing_channel(0.5, 1.0, [0.0, 0.5], TIMES)
    backward = Trajectory(trajectory.positions, -TIMES, exit_time=-trajectory.exit_time)
    np.testing.assert_allclose(residence_times(backward), [2, 1])
    np.testing.assert_allclose(exit_times(backward), [-2, -1])


def test_without_exit_times_the_frames_decide():
    trajectory = absorbing_channel(0.5, 1.0, [0.01], TIMES)
    bare = Trajectory(trajectory.positions, TIMES)
    late = residence_times(bare) - residence_times(trajectory)
    assert 0 <= late < TIMES[1]


def test_a_recycled_slot_counts_its_first_particle_and_lists_all_stays():
    trajectory = recycling_channel(1.0, 1.0, [0.125, 0.525], TIMES)
    spacing = TIMES[1]
    np.testing.assert_allclose(residence_times(trajectory), [0.9, 0.5])
    stays = completed_residence_times(trajectory)
    assert len(stays) == 4 + 4
    full = np.delete(stays, [0, 4])
    np.testing.assert_allclose(full, 1.0, atol=spacing)


def test_a_slot_filled_late_counts_from_its_filling():
    alive = np.array([0, 0, 1, 1, 0, 1, 1], bool)
    generation = [0, 0, 0, 0, 0, 1, 1]
    trajectory = Trajectory(
        np.zeros((7, 3)), np.arange(7.0), alive=alive, generation=generation
    )
    np.testing.assert_array_equal(residence_times(trajectory), [2.0])
    np.testing.assert_array_equal(exit_times(trajectory), [4.0])
    np.testing.assert_array_equal(completed_residence_times(trajectory), [2.0])
    np.testing.assert_array_equal(
        mean_squared_displacement(trajectory), np.full(7, np.nan)
    )
