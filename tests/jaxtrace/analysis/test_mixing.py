import numpy as np
import pytest

from jaxtrace.analysis import compute_mixing_metrics
from jaxtrace.tracking.trajectory import Trajectory
from trace_records import absorbing_channel, recycling_channel, uniform

RATE = 0.7
TIMES = np.linspace(0, 2, 9)
SEEDS = np.random.default_rng(7).random((400, 3))


def saddle(scale=1.0, dtype: type = np.float64):
    """Pure strain: x grows and y shrinks at the same rate."""
    growth = np.exp(RATE * TIMES)[:, None]
    x, y, z = scale * SEEDS.T
    paths = np.stack([x * growth, y / growth, z + 0 * growth], axis=-1)
    return Trajectory(paths.astype(dtype), TIMES)


def stretching():
    """Every separation grows at one rate."""
    return Trajectory(SEEDS * np.exp(RATE * TIMES)[:, None, None], TIMES)


def test_uniform_growth_has_its_rate_as_exponent():
    metrics = compute_mixing_metrics(stretching(), pair_fraction=0.3)
    assert metrics["lyapunov_approximation"] == pytest.approx(RATE)
    before, after = SEEDS.var(axis=0).sum(), SEEDS.var(axis=0).sum() * np.exp(4 * RATE)
    assert metrics["final_variance"] == pytest.approx(after)
    assert metrics["variance_growth_rate"] == pytest.approx((after - before) / 2)


@pytest.mark.parametrize("scale", [1e-6, 1e7])
def test_the_unit_of_length_does_not_matter(scale):
    one, other = (
        compute_mixing_metrics(saddle(factor), pair_fraction=0.3)
        for factor in (1.0, scale)
    )
    for name in ("lyapunov_approximation", "poincare_return_ratio"):
        assert other[name] == pytest.approx(one[name])
    for name in ("variance_growth_rate", "final_variance"):
        assert other[name] == pytest.approx(one[name] * scale**2)
    assert other["mixing_efficiency"] == pytest.approx(one["mixing_efficiency"] * scale)


def test_translation_mixes_nothing():
    metrics = compute_mixing_metrics(uniform([1, 0, 0], SEEDS, TIMES), 0.3)
    assert metrics["lyapunov_approximation"] == pytest.approx(0, abs=1e-12)
    assert metrics["variance_growth_rate"] == pytest.approx(0, abs=1e-12)
    assert metrics["poincare_return_ratio"] == 0
    assert metrics["mixing_efficiency"] == pytest.approx(1)


def test_a_periodic_translation_returns_and_mixes_nothing():
    times = np.linspace(0, 2, 21)
    metrics = compute_mixing_metrics(uniform([1, 0, 0], SEEDS, times, (1, 1, 1)), 0.3)
    assert metrics["poincare_return_ratio"] == 1
    assert metrics["lyapunov_approximation"] == pytest.approx(0, abs=1e-12)
    assert metrics["variance_growth_rate"] == pytest.approx(0, abs=1e-12)


def test_absorbed_pairs_count_to_their_last_common_frame():
    whole = stretching()
    alive = np.ones(whole.alive.shape, bool)
    alive[4:, ::3] = False
    cut = np.where(alive[..., None], whole.positions, np.nan)
    metrics = compute_mixing_metrics(Trajectory(cut, TIMES), pair_fraction=0.3)
    assert metrics["lyapunov_approximation"] == pytest.approx(RATE)
    left = SEEDS[alive[-1]] * np.exp(2 * RATE)
    assert metrics["final_variance"] == pytest.approx(left.var(axis=0).sum())


def test_all_absorbed_or_recycled_leaves_finite_measures():
    starts, times = np.linspace(0, 0.95, 200), np.linspace(0, 2, 41)
    for make in (absorbing_channel, recycling_channel):
        metrics = compute_mixing_metrics(make(1.0, 1.0, starts, times), 0.5)
        assert metrics["lyapunov_approximation"] == pytest.approx(0, abs=1e-10)
        assert metrics["variance_growth_rate"] == pytest.approx(0, abs=1e-10)
        assert metrics["poincare_return_ratio"] == 0


def test_measures_of_nothing_are_nan():
    apart = Trajectory(SEEDS[None, :2] * np.ones((3, 1, 1)), np.arange(3.0))
    assert np.isnan(compute_mixing_metrics(apart)["lyapunov_approximation"])
    nobody = Trajectory(np.full((3, 2, 3), np.nan), np.arange(3.0))
    empty = Trajectory(np.zeros((3, 0, 3)), np.arange(3.0))
    assert np.isnan(compute_mixing_metrics(nobody)["final_variance"])
    assert np.isnan(list(compute_mixing_metrics(empty).values())).all()
    assert np.isnan(compute_mixing_metrics(stretching()[0])["variance_growth_rate"])


def test_single_precision_paths_are_measured_in_double():
    one, other = (
        compute_mixing_metrics(saddle(dtype=dtype), 0.3)
        for dtype in (np.float64, np.float32)
    )
    assert other["final_variance"] == pytest.approx(one["final_variance"], rel=1e-6)
    assert other["lyapunov_approximation"] == pytest.approx(
        one["lyapunov_approximation"], rel=1e-4
    )
