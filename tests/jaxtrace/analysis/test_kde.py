import jax
import numpy as np
import pytest
from scipy.stats import gaussian_kde

from jaxtrace.analysis import KDEEstimator
from jaxtrace.analysis.estimators import rule_bandwidth
from jaxtrace.config import configure, reset_config
from trace_densities import clustered, integral, naive_kde

RNG = np.random.default_rng(2)
CLOUD = RNG.standard_normal((200, 3)) * [1.0, 2.0, 0.5] + [3.0, -1.0, 0.0]


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.slow  # compiles a program of its own
def test_evaluate_equals_the_double_loop(dims):
    positions = clustered(70, dims)
    points = 2 * RNG.standard_normal((30, dims))
    with jax.enable_x64(True):
        estimator = KDEEstimator(positions)
        found = estimator.evaluate(points)
        assert found.dtype == np.float64
        expected = naive_kde(positions, points, estimator.h)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    narrow = KDEEstimator(positions.astype(np.float32)).evaluate(points)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, expected, rtol=2e-4, atol=1e-7)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("rule", ["scott", "silverman"])
@pytest.mark.slow  # compiles a program of its own
def test_matches_scipy_where_bandwidths_coincide(rule, dims):
    # SciPy scales by the whole covariance: whiten, so that all standard deviations
    # are 1, there is no correlation, and both have the same isotropic kernel.
    centered = CLOUD[:, :dims] - CLOUD[:, :dims].mean(axis=0)
    factor = np.linalg.cholesky(np.linalg.inv(np.cov(centered.T)))
    white = centered @ factor
    points = RNG.standard_normal((40, dims))
    peer = gaussian_kde(white.T, bw_method=rule)
    with jax.enable_x64(True):
        estimator = KDEEstimator(white, bandwidth_rule=rule)
        assert estimator.h == pytest.approx(peer.factor, rel=1e-12)
        found = estimator.evaluate(points)
    np.testing.assert_allclose(found, peer(points.T), rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e6])
@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.slow  # compiles a program of its own
def test_the_pdf_integrates_to_one_at_any_scale(dims, scale):
    positions = (CLOUD[:, :dims] * scale).astype(np.float32)
    h = KDEEstimator(positions).h
    lower, upper = positions.min(axis=0) - 6 * h, positions.max(axis=0) + 6 * h
    estimator = KDEEstimator(
        positions, resolution=(40, 50, 60)[:dims], bounds=np.stack([lower, upper]).T
    )
    if dims == 2:
        x, y, density = estimator.evaluate_2d()
        axes = [y[:, 0], x[0]]
    else:
        x, y, z, density = estimator.evaluate_3d()
        axes = [x[:, 0, 0], y[0, :, 0], z[0, 0]]
        points = np.stack([x, y, z], axis=-1).reshape(-1, 3)[::97]
        some = estimator.evaluate(points)
        np.testing.assert_allclose(
            some, density.ravel()[::97], rtol=1e-3, atol=1e-6 * density.max()
        )
    assert integral(axes, density) == pytest.approx(1, rel=2e-4)


@pytest.mark.slow  # compiles a program of its own
def test_grids_are_in_the_order_of_meshgrid():
    estimator = KDEEstimator(CLOUD[:, :2], resolution=(5, 7))
    x, y, density = estimator.evaluate_2d()
    assert x.shape == y.shape == density.shape == (7, 5)
    low, high = CLOUD[:, :2].min(axis=0), CLOUD[:, :2].max(axis=0)
    np.testing.assert_allclose(x[0], np.linspace(low[0], high[0], 5), rtol=1e-5)
    np.testing.assert_allclose(y[:, 0], np.linspace(low[1], high[1], 7), rtol=1e-5)
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    np.testing.assert_allclose(estimator.evaluate(points), density.ravel(), rtol=1e-4)


@pytest.mark.parametrize(
    ("plane", "axes"), [("xy", [0, 1]), ("xz", [0, 2]), ("yz", [1, 2])]
)
@pytest.mark.slow  # compiles a program of its own
def test_a_plane_is_a_density_of_its_slab(plane, axes):
    (normal,) = {0, 1, 2} - set(axes)
    place = CLOUD[:, normal].mean()
    estimator = KDEEstimator(
        CLOUD, plane=plane, slab_position=place, slab_thickness=0.4, resolution=12
    )
    inside = CLOUD[np.abs(CLOUD[:, normal] - place) <= 0.2][:, axes]
    assert 2 < len(inside) < len(CLOUD)
    flat = KDEEstimator(inside, resolution=12)
    for found, wanted in zip(estimator.evaluate_2d(), flat.evaluate_2d(), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    points = inside[:5] + 0.1
    np.testing.assert_allclose(
        estimator.evaluate(points), flat.evaluate(points), rtol=1e-5
    )
    assert estimator.h == KDEEstimator(CLOUD).h
    assert flat.h == pytest.approx(rule_bandwidth(inside))


@pytest.mark.slow  # compiles a program of its own
def test_an_empty_slab_projects_everything():
    found = KDEEstimator(CLOUD, slab_position=1e3, resolution=6).evaluate_2d()
    wanted = KDEEstimator(CLOUD[:, :2], resolution=6).evaluate_2d()
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.slow  # compiles a program of its own
def test_grid_normalizations():
    bounds = [0, 6, -7, 5]

    def grid(normalize):
        estimator = KDEEstimator(
            CLOUD[:, :2], normalize=normalize, bounds=bounds, resolution=9
        )
        points = CLOUD[:3, :2]
        np.testing.assert_allclose(
            estimator.evaluate(points),
            naive_kde(CLOUD[:, :2], points, estimator.h),
            rtol=1e-4,
        )
        return estimator.evaluate_2d()[2], estimator.h

    pdf, h = grid("pdf")
    np.testing.assert_array_equal(grid(True)[0], pdf)
    np.testing.assert_allclose(grid("count")[0], 200 * pdf, rtol=1e-6)
    np.testing.assert_allclose(grid("relative")[0], 72 * pdf, rtol=1e-6)
    np.testing.assert_allclose(grid(False)[0], 200 * h**2 * pdf, rtol=1e-6)


def test_absorbed_particles_do_not_count():
    holes = np.concatenate([CLOUD, np.full((20, 3), np.nan)])[RNG.permutation(220)]
    points = CLOUD[:10] + 0.1
    found, wanted = KDEEstimator(holes), KDEEstimator(CLOUD)
    assert found.h == pytest.approx(wanted.h)
    assert found.positions.shape == (200, 3)
    np.testing.assert_allclose(
        found.evaluate(points), wanted.evaluate(points), rtol=1e-4
    )


@pytest.mark.slow  # compiles a program of its own
def test_a_far_origin_loses_nothing():
    """Coordinates of a map grid: large numbers, small differences."""
    points = CLOUD[:10] + 0.1
    wanted = KDEEstimator(CLOUD).evaluate(points)
    found = KDEEstimator(CLOUD + 5e6).evaluate(points + 5e6)
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


@pytest.mark.slow  # compiles a program of its own
def test_the_memory_limit_is_kept():
    configure(memory_limit_gb=1e-7)
    try:
        with pytest.raises(ValueError, match="smallest chunk"):
            KDEEstimator(CLOUD).evaluate(CLOUD)
    finally:
        reset_config()


@pytest.mark.slow  # compiles a program of its own
def test_wrong_use_raises():
    flat = CLOUD[:, :2]
    for bandwidth in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match=r"bandwidth is .* must be positive"):
            KDEEstimator(flat, bandwidth)
    with pytest.raises(ValueError, match=r"'normal': choose.*silverman"):
        KDEEstimator(flat, bandwidth_rule="normal")
    with pytest.raises(ValueError, match="no spread"):
        KDEEstimator(np.ones((4, 2)))
    with pytest.raises(ValueError, match="3-D density was requested for 2-D"):
        KDEEstimator(flat).evaluate_3d()
    with pytest.raises(ValueError, match="3-D density was requested for 2-D"):
        KDEEstimator(flat).evaluate(CLOUD)
    with pytest.raises(ValueError, match="needs 3-D positions"):
        KDEEstimator(flat, plane="yz")
    with pytest.raises(ValueError, match="on axis y"):
        KDEEstimator(flat * [1, 0]).evaluate_2d()
    with pytest.raises(ValueError, match="holds more"):
        KDEEstimator(
            [[0.0, 0, 0], [1, 1, 1], [2, 0, 1]], slab_position=0.0
        ).evaluate_2d()
