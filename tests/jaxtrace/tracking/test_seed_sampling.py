"""Oracles: counts per cell, known densities, fields of known divergence and curl."""

import numpy as np
import pytest

from jaxtrace.tracking.seeding import (
    custom_distribution_seeds,
    stratified_seeds,
)

UNIT = [[0, 0, 0], [1, 1, 1]]
SCALES = [1e-6, 1.0, 1e6]


@pytest.mark.parametrize("scale", SCALES)
def test_strata_share_the_seeds(scale):
    bounds = np.array([[0.0, 1.0, 2.0], [2.0, 2.0, 5.0]]) * scale
    seeds = stratified_seeds(bounds, 150, 4, dtype=np.float64)
    cells = np.floor((seeds - bounds[0]) / (bounds[1] - bounds[0]) * 4).astype(int)
    numbers = np.ravel_multi_index(tuple(cells.T), (4, 4, 4))
    counts = np.bincount(numbers, minlength=64)
    np.testing.assert_array_equal(counts, [3] * 22 + [2] * 42)


def test_strata_per_axis_and_in_the_plane():
    flat = stratified_seeds([0, 1, 0, 1], 16, 4)
    assert len(np.unique(np.floor(flat[:, :2] * 4), axis=0)) == 16
    layers = stratified_seeds(UNIT, 5, (1, 1, 5))
    np.testing.assert_array_equal(np.floor(layers[:, 2] * 5), range(5))
    assert stratified_seeds(UNIT, 0).shape == (0, 3)
    np.testing.assert_array_equal(
        stratified_seeds(UNIT, 9, rng_seed=2), stratified_seeds(UNIT, 9, rng_seed=2)
    )
    with pytest.raises(ValueError, match="at least 1"):
        stratified_seeds(UNIT, 5, 0)


def test_a_density_is_followed():
    seeds = custom_distribution_seeds(UNIT, 6000, lambda x: x[:, 0] ** 2, rng_seed=1)
    assert seeds.shape == (6000, 3)
    # Density 3 x^2: mean 3/4, mean square 3/5; even along y and z.
    np.testing.assert_allclose(seeds[:, 0].mean(), 0.75, atol=0.01)
    np.testing.assert_allclose((seeds[:, 0] ** 2).mean(), 0.6, atol=0.01)
    np.testing.assert_allclose(seeds[:, 1:].mean(axis=0), 0.5, atol=0.02)


def test_a_peak_that_the_probes_miss_is_not_cut_off():
    narrow, met = 5e-4, []

    def pdf(x):
        peak = x[:, 0] < narrow
        met.append(peak.any())
        return 1.0 + peak / narrow

    seeds = custom_distribution_seeds(UNIT, 3000, pdf, 3000, rng_seed=6)
    assert met[:3] == [False, False, True]  # so that seeds taken are thinned
    assert abs((seeds[:, 0] < narrow).mean() - 0.5) < 0.04


def test_what_cannot_be_reached_is_said():
    tiny = lambda x: (x < 1e-3).all(axis=1).astype(float)
    with pytest.raises(ValueError, match=r"only 0 of 10 seeds .* in 3 rounds"):
        custom_distribution_seeds(UNIT, 10, tiny, max_iterations=3)
    with pytest.raises(ValueError, match="one density per row"):
        custom_distribution_seeds(UNIT, 10, lambda x: x)
    with pytest.raises(ValueError, match="not negative"):
        custom_distribution_seeds(UNIT, 10, lambda x: x[:, 0] - 0.5)
    assert custom_distribution_seeds(UNIT, 0, tiny).shape == (0, 3)
