from typing import Any

import jax
import numpy as np
import pytest
from scipy.stats import gaussian_kde

from jaxrig.compile_cache import record_compilations
from jaxtrace.analysis import KDEEstimator, SPHDensityEstimator
from jaxtrace.analysis.density import rule_bandwidth
from jaxtrace.analysis.sph import KERNELS, adaptive_lengths, smoothing_length_of
from jaxtrace.config import configure, reset_config
from trace_densities import (
    CONSTANTS,
    PROFILES,
    clustered,
    integral,
    naive_adaptive_lengths,
    naive_kde,
    naive_sph,
)

RNG = np.random.default_rng(2)
CLOUD = RNG.standard_normal((200, 3)) * [1.0, 2.0, 0.5] + [3.0, -1.0, 0.0]
BOTH = [KDEEstimator, SPHDensityEstimator]
PLANES = [("xy", [0, 1]), ("xz", [0, 2]), ("yz", [1, 2])]
both = pytest.mark.parametrize("make", BOTH)


def of_dims(make, positions, dims, **options):
    """Make an estimator of a plane or of space."""
    if make is SPHDensityEstimator:
        options["dimensions"] = f"{dims}d"
    return make(positions, **options)


@both
@pytest.mark.parametrize(
    "positions",
    [np.zeros((1, 2)), np.full((5, 3), np.nan), np.zeros((0, 3)), [0.0, 1.0]],
)
def test_fewer_than_two_particles_raise(make, positions):
    with pytest.raises(ValueError, match="at least 2"):
        make(positions)


@both
def test_wrong_use_of_either_raises(make):
    for shape in [(4, 1), (4, 4), (2, 4, 3), ()]:
        with pytest.raises(ValueError, match="expected"):
            make(np.zeros(shape))
    with pytest.raises(ValueError, match="infinite"):
        make(np.full((3, 2), np.inf))
    with pytest.raises(TypeError, match="real numbers"):
        make(np.zeros((3, 2), complex))
    with pytest.raises(ValueError, match=r"'zx': choose.*yz"):
        make(CLOUD, plane="zx")
    with pytest.raises(ValueError, match="needs 3-D positions"):
        make(CLOUD[:, :2], plane="xz")
    with pytest.raises(ValueError, match="slab_thickness is 0"):
        make(CLOUD, slab_thickness=0.0).evaluate_2d()
    for wrong in ("mass", None, 1):
        with pytest.raises(ValueError, match="relative"):
            make(CLOUD, normalize=wrong)
    with pytest.raises(ValueError, match=r"from 0.0 to 0.0 on axis z"):
        of_dims(make, CLOUD, 3, bounds=[0, 2, 1, 6]).evaluate_3d()
    with pytest.raises(ValueError, match=r"from 0.0 to 0.0 on axis y"):
        make(CLOUD[:, :2] * [1, 0]).evaluate_2d()
    for wrong in (0, (3,), (3, 4, 5, 6), (3, 0)):
        with pytest.raises(ValueError, match="positive counts"):
            make(CLOUD, resolution=wrong).evaluate_2d()


@both
def test_dtypes_follow_the_input_where_x64_is_on(make):
    cases = {"float16": 4, "float32": 4, "float64": 8, "int32": 8}
    for name, size in cases.items():
        array = (10 * CLOUD).astype(name)
        assert make(array).evaluate(array[:2]).dtype == np.float32
        with jax.enable_x64(True):
            assert make(array).evaluate(array[:2]).dtype.itemsize == size


@both
@pytest.mark.parametrize(("plane", "axes"), PLANES)
def test_a_plane_is_a_density_of_its_slab(make, plane, axes):
    (normal,) = {0, 1, 2} - set(axes)
    place = CLOUD[:, normal].mean()
    where = "slab_position" if make is KDEEstimator else "position"
    grid = {"resolution": (6, 7, 8), "plane": plane}
    sliced = make(CLOUD, **{where: place}, slab_thickness=0.4, **grid)
    inside = CLOUD[np.abs(CLOUD[:, normal] - place) <= 0.2][:, axes]
    assert 2 < len(inside) < len(CLOUD)
    flat = make(inside, resolution=[(6, 7, 8)[axis] for axis in axes])
    for found, wanted in zip(sliced.evaluate_2d(), flat.evaluate_2d(), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    points = inside[:5] + 0.1
    wanted = flat.evaluate(points)
    np.testing.assert_allclose(sliced.evaluate(points), wanted, rtol=1e-5)
    empty = make(CLOUD, **{where: 1e3}, **grid)
    everything = make(CLOUD[:, axes])
    np.testing.assert_allclose(
        empty.evaluate(points), everything.evaluate(points), rtol=1e-5
    )


@both
def test_grids_are_in_the_order_of_meshgrid(make):
    estimator = make(CLOUD[:, :2], resolution=(5, 7))
    x, y, density = estimator.evaluate_2d()
    assert x.shape == y.shape == density.shape == (7, 5)
    low, high = CLOUD[:, :2].min(axis=0), CLOUD[:, :2].max(axis=0)
    np.testing.assert_allclose(x[0], np.linspace(low[0], high[0], 5), rtol=1e-5)
    np.testing.assert_allclose(y[:, 0], np.linspace(low[1], high[1], 7), rtol=1e-5)
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    np.testing.assert_allclose(
        estimator.evaluate(points), density.ravel(), rtol=1e-4, atol=1e-7
    )


@both
@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e6])
@pytest.mark.parametrize("dims", [2, 3])
def test_the_pdf_integrates_to_one_at_any_scale(make, dims, scale):
    positions = (CLOUD[:, :dims] * scale).astype(np.float32)
    room = 6 * float(np.max(of_dims(make, positions, dims).h))
    bounds = np.stack([positions.min(axis=0) - room, positions.max(axis=0) + room]).T
    counts = (60, 70, 80)[:dims]
    estimator = of_dims(make, positions, dims, resolution=counts, bounds=bounds)
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
    rough = 2e-4 if make is KDEEstimator else 5e-2
    assert integral(axes, density) == pytest.approx(1, rel=rough)


@both
def test_normalizations_are_by_the_domain(make):
    flat = CLOUD[:, :2]
    modes = ("pdf", True, "count", "relative", False)
    grids = [
        make(flat, normalize=mode, bounds=[0, 6, -7, 5], resolution=9).evaluate_2d()[2]
        for mode in modes
    ]
    pdf, same, count, relative, raw = grids
    np.testing.assert_array_equal(same, pdf)
    np.testing.assert_allclose(count, 200 * pdf, rtol=1e-6)
    np.testing.assert_allclose(relative, 72 * pdf, rtol=1e-6)
    kernels = 200 * make(flat).h ** 2 if make is KDEEstimator else 200
    np.testing.assert_allclose(raw, kernels * pdf, rtol=1e-6)


@both
def test_absorbed_particles_do_not_count(make):
    holes = np.concatenate([CLOUD, np.full((20, 3), np.nan)])[RNG.permutation(220)]
    found, wanted = make(holes), make(CLOUD)
    assert found.h == pytest.approx(wanted.h)
    assert found.positions.shape == wanted.positions.shape
    points = CLOUD[:10, :2]
    np.testing.assert_allclose(
        found.evaluate(points), wanted.evaluate(points), rtol=1e-4
    )
    assert found.evaluate(np.zeros((0, 2))).shape == (0,)


@both
def test_a_far_origin_loses_nothing(make):
    """Coordinates of a map grid: large numbers, small differences."""
    points = CLOUD[:10, :2] + 0.01
    wanted = make(CLOUD[:, :2]).evaluate(points)
    found = make(CLOUD[:, :2] + 5e6).evaluate(points + 5e6)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dims", [2, 3])
def test_kde_equals_the_double_loop(dims):
    positions = clustered(70, dims)
    points = 2 * RNG.standard_normal((30, dims))
    with jax.enable_x64(True):
        estimator = KDEEstimator(positions)
        found = estimator.evaluate(points)
        expected = naive_kde(positions, points, estimator.h)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    narrow = KDEEstimator(positions.astype(np.float32)).evaluate(points)
    np.testing.assert_allclose(narrow, expected, rtol=2e-4, atol=1e-7)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("rule", ["scott", "silverman"])
def test_kde_matches_scipy_where_bandwidths_coincide(rule, dims):
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
        assert estimator.h == rule_bandwidth(white, rule)
        found = estimator.evaluate(points)
    np.testing.assert_allclose(found, peer(points.T), rtol=1e-10)


def test_one_compilation_serves_frames_of_one_size():
    """Particles that were absorbed do not make another program."""
    cloud, points = clustered(2000, 2), clustered(500, 2, seed=1)
    for kept in (2000, 1996):
        with record_compilations() as log:
            estimator = KDEEstimator(cloud[:kept], resolution=12)
            estimator.evaluate_2d()
            estimator.evaluate(points[: kept // 4])
    assert log.compilations == []


@pytest.mark.bitwise
@both
def test_the_cores_do_not_change_the_answer(make):
    found = []
    for cores in (1, 3):
        configure(cores=cores)
        found.append(make(CLOUD[:, :2]).evaluate(np.tile(CLOUD[:, :2], (30, 1))))
    reset_config()
    np.testing.assert_array_equal(*found)


def test_wrong_use_of_the_kde_raises():
    flat = CLOUD[:, :2]
    for bandwidth in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match=r"bandwidth is .* must be positive"):
            KDEEstimator(flat, bandwidth)
    with pytest.raises(ValueError, match=r"'normal': choose.*silverman"):
        KDEEstimator(flat, bandwidth_rule="normal")
    with pytest.raises(ValueError, match="no spread"):
        KDEEstimator(np.ones((4, 2)))
    for ask in (KDEEstimator.evaluate_3d, lambda e: e.evaluate(CLOUD)):
        with pytest.raises(ValueError, match="3-D density was requested for 2-D"):
            ask(KDEEstimator(flat))
    with pytest.raises(ValueError, match="holds more"):
        KDEEstimator([[0.0, 0, 0], [1, 1, 1], [2, 0, 1]]).evaluate_2d()


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_follow_the_table_and_integrate_to_one(name, dims):
    kernel = KERNELS[name]
    q = np.linspace(0, 2.5, 26)
    expected = [CONSTANTS[name][dims] * PROFILES[name](x) for x in q.tolist()]
    values = kernel.constants[dims] * kernel.profile(q)
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-15)
    r = np.linspace(0, kernel.support, 20_001)
    shell = 2 * np.pi * r if dims == 2 else 4 * np.pi * r**2
    total = np.trapezoid(shell * kernel.constants[dims] * kernel.profile(r), r)
    assert total == pytest.approx(1, rel=1e-7)
    ends = kernel.profile(kernel.support * np.array([0.0, 0.999, 1.0, 1.5]))
    assert ends[2:].tolist() == [0, 0]
    assert (np.diff(ends) <= 0).all()


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_sph_equals_the_double_loop(kernel, dims, adaptive):
    positions = clustered(80, dims)
    points = np.concatenate([positions[:10], RNG.standard_normal((20, dims))])
    masses = RNG.uniform(0.5, 2, 80)

    def evaluate():
        return SPHDensityEstimator(
            positions,
            f"{dims}d",
            smoothing_length=0.4,
            kernel_type=kernel,
            adaptive=adaptive,
            n_neighbors=9,
            masses=masses,
            normalize=False,
        ).evaluate(points)

    lengths = naive_adaptive_lengths(positions, 9) if adaptive else np.full(80, 0.4)
    expected = naive_sph(positions, points, lengths, masses, kernel)
    with jax.enable_x64(True):
        np.testing.assert_allclose(evaluate(), expected, rtol=1e-10, atol=1e-14)
    configure(memory_limit_gb=1e-5)  # a few points at a time
    few = evaluate()
    reset_config()
    np.testing.assert_array_equal(few, evaluate())


@pytest.mark.parametrize("dims", [2, 3])
def test_a_lattice_has_its_number_density(dims):
    per_axis = {2: 20, 3: 10}[dims]
    side = (np.arange(per_axis) + 0.5) / per_axis
    lattice = np.stack(np.meshgrid(*[side] * dims), axis=-1).reshape(-1, dims)
    for kernel in KERNELS:
        estimator = SPHDensityEstimator(
            lattice,
            f"{dims}d",
            smoothing_length=1.5 / per_axis,
            kernel_type=kernel,
            normalize=False,
        )
        # A Gaussian this wide reaches over the edge of so small a lattice.
        loose = 2e-2 if kernel == "gaussian" else 5e-3
        density = estimator.evaluate(np.full((1, dims), 0.5))[0]
        assert density == pytest.approx(per_axis**dims, rel=loose)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("dims", [2, 3])
def test_sph_does_not_depend_on_the_unit_of_length(dims, adaptive, scale):
    positions = clustered(100, dims)
    options: dict[str, Any] = {"adaptive": adaptive, "normalize": "relative"}

    def density(factor):
        estimator = SPHDensityEstimator(positions * factor, f"{dims}d", **options)
        return estimator.evaluate(positions[:20] * 1.1 * factor)

    np.testing.assert_allclose(density(scale), density(1.0), rtol=1e-3)


def test_masses_weigh_and_points_may_be_anywhere():
    positions, masses = clustered(60, 2), RNG.uniform(1, 3, 60)
    holes = positions.copy()
    holes[[3, 50]] = np.nan
    kept = np.delete(np.arange(60), [3, 50])
    found = SPHDensityEstimator(holes, masses=masses).evaluate(positions)
    wanted = SPHDensityEstimator(positions[kept], masses=masses[kept])
    np.testing.assert_allclose(found, wanted.evaluate(positions), rtol=1e-4)
    raw = SPHDensityEstimator(positions[kept], masses=masses[kept], normalize=False)
    total = masses[kept].sum()
    np.testing.assert_allclose(raw.evaluate(positions), total * found, rtol=1e-4)
    for kernel in KERNELS:
        estimator = SPHDensityEstimator(positions, kernel_type=kernel)
        far = [[1e9, 1e9], [0, -1e30], [np.inf, 0]]
        density = estimator.evaluate([*far, [np.nan, 0], [0, 0]])
        assert density[:3].tolist() == [0, 0, 0]
        assert np.isnan(density[3])
        assert density[4] > 0


def test_wrong_use_of_the_sph_raises():
    positions = clustered(20, 2)
    wrong: dict[str, Any] = {"dimensions": "4d", "kernel_type": "quintic"}
    for argument, value in wrong.items():
        with pytest.raises(ValueError, match=value):
            SPHDensityEstimator(positions, **{argument: value})
    with pytest.raises(ValueError, match='use dimensions="2d"'):
        SPHDensityEstimator(positions, "3d")
    with pytest.raises(ValueError, match="slab holds one particle"):
        SPHDensityEstimator([[0.0, 0, 0], [1, 1, 1], [2, 0, 1]])
    for masses in (np.ones(19), -np.ones(20), np.zeros(20), np.full(20, np.nan)):
        with pytest.raises(ValueError, match="masses"):
            SPHDensityEstimator(positions, masses=masses)
    solid = SPHDensityEstimator(clustered(20, 3), "3d")
    with pytest.raises(ValueError, match="use evaluate_2d"):
        SPHDensityEstimator(positions).evaluate_3d()
    with pytest.raises(ValueError, match="use evaluate_3d"):
        solid.evaluate_2d()
    with pytest.raises(ValueError, match="a 3-D density needs 3"):
        solid.evaluate(positions)


def test_smoothing_lengths():
    for scale in (1e-9, 1.0, 1e9):
        corners = np.array([[0, 0], [2, 4]]) * scale
        many = np.concatenate([corners, np.full((1598, 2), scale)])
        assert smoothing_length_of(None, many) == pytest.approx(2 * 3 * scale / 40)
        assert smoothing_length_of(None, corners) == pytest.approx(0.1 * 3 * scale)
    positions = clustered(6, 2)
    np.testing.assert_allclose(
        adaptive_lengths(positions, 3), naive_adaptive_lengths(positions, 3)
    )
    for n in (0, 6):
        with pytest.raises(ValueError, match="choose 1 to 5"):
            adaptive_lengths(positions, n)
    with pytest.raises(ValueError, match="have the same position"):
        adaptive_lengths(np.zeros((6, 2)), 3)
    with pytest.raises(ValueError, match="at one place"):
        smoothing_length_of(None, np.ones((6, 2)))
    for length in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"smoothing_length is .* positive"):
            smoothing_length_of(length, positions)
