"""Oracles: counts per cell, known densities, fields of known divergence and curl."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.tracking.seed_sampling import (
    custom_distribution_seeds,
    field_informed_seeds,
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


def jet(axis_from, axis_to, scale):
    """Velocity along one axis that varies along another, in the upper half only."""

    def velocity(x, t):
        speed = jnp.maximum(x[:, axis_from] - 0.5 * scale, 0.0) * t
        return jnp.zeros_like(x).at[:, axis_to].set(speed)

    return velocity


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("metric", "flow", "other"),
    [
        ("divergence", (0, 0), "vorticity"),
        ("divergence", (2, 2), "vorticity"),
        ("vorticity", (0, 1), "divergence"),
        ("vorticity", (1, 2), "divergence"),
    ],
)
def test_seeds_go_where_the_field_diverges_or_turns(metric, flow, other, scale):
    bounds = np.array(UNIT) * scale
    along_axis, velocity_axis = flow
    field = jet(along_axis, velocity_axis, scale)
    seeds = field_informed_seeds(field, bounds, 2000, metric, (12, 12, 12), 1, t=1.0)
    along = seeds[:, flow[0]] / scale
    assert along.min() > 0.4
    assert along.max() <= 1
    np.testing.assert_allclose(along.mean(), 0.74, atol=0.02)
    rest = np.delete(seeds, flow[0], axis=1) / scale
    np.testing.assert_allclose(rest.mean(axis=0), 0.5, atol=0.03)
    with pytest.raises(ValueError, match=f"the {other} of the field is zero"):
        field_informed_seeds(field, bounds, 10, other, (12, 12, 12), t=1.0)


def test_seeds_follow_the_speed():
    field = lambda x, t: x  # speed |x|
    seeds = field_informed_seeds(field, [0, 1, 0, 1], 4000, "magnitude", (40, 40))
    radius = np.linalg.norm(seeds, axis=1)
    grid = (np.arange(200) + 0.5) / 200
    distance = np.hypot(*np.meshgrid(grid, grid))
    expected = (distance**2).sum() / distance.sum()
    np.testing.assert_allclose(radius.mean(), expected, atol=0.01)
    assert set(seeds[:, 2]) == {0}


def test_fields_of_every_kind():
    class Unsteady:
        def sample_at_positions(self, positions, t):
            return positions * t

    class Steady:
        def sample(self, positions):
            return 2.0 * positions

    def plane(x, t):
        return np.asarray(x)[:, :2] * t

    arguments = (UNIT, 20, "magnitude", 5)
    expected = field_informed_seeds(Unsteady(), *arguments, t=2.0)
    np.testing.assert_array_equal(field_informed_seeds(Steady(), *arguments), expected)
    assert field_informed_seeds(plane, *arguments, t=2.0).shape == (20, 3)
    with pytest.raises(TypeError, match="int is no field"):
        field_informed_seeds(3, *arguments)


def test_places_without_a_velocity_get_no_seeds():
    def half(x, t):
        return jnp.where(x[:, :1] < 0.5, jnp.nan, jnp.ones_like(x))

    seeds = field_informed_seeds(half, UNIT, 200, "magnitude", 4)
    assert (seeds[:, 0] >= 0.5).all()
    nowhere = lambda x, t: jnp.full_like(x, jnp.inf)
    for metric in ("magnitude", "divergence"):
        with pytest.raises(ValueError, match="zero to rounding"):
            field_informed_seeds(nowhere, UNIT, 5, metric, 4)


def test_wrong_arguments():
    field = lambda x, t: x
    with pytest.raises(ValueError, match="divergence, magnitude, vorticity"):
        field_informed_seeds(field, UNIT, 5, "speed")
    with pytest.raises(ValueError, match="sample_resolution=0"):
        field_informed_seeds(field, UNIT, 5, "magnitude", 0)
    with pytest.raises(ValueError, match="divergence of the field is zero"):
        field_informed_seeds(field, [[1, 1, 1], [1, 1, 1]], 5)
    assert field_informed_seeds(field, UNIT, 0).shape == (0, 3)
