from typing import Any

import jax
import numpy as np
import pytest

from jaxtrace.analysis import SPHDensityEstimator
from jaxtrace.analysis.density import KERNELS
from jaxtrace.analysis.estimators import (
    adaptive_lengths,
    smoothing_length_of,
)
from trace_densities import clustered, integral, naive_adaptive_lengths, naive_sph

RNG = np.random.default_rng(3)


def dimension(dims):
    return f"{dims}d"


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.slow  # compiles a program of its own
def test_equals_the_double_loop(kernel, dims, adaptive):
    positions = clustered(80, dims)
    points = np.concatenate([positions[:10], RNG.standard_normal((20, dims))])
    masses = RNG.uniform(0.5, 2, 80)
    with jax.enable_x64(True):
        estimator = SPHDensityEstimator(
            positions,
            dimension(dims),
            smoothing_length=0.4,
            kernel_type=kernel,
            adaptive=adaptive,
            n_neighbors=9,
            masses=masses,
            normalize=False,
        )
        found = estimator.evaluate(points)
    lengths = naive_adaptive_lengths(positions, 9) if adaptive else np.full(80, 0.4)
    np.testing.assert_allclose(estimator.h, lengths if adaptive else 0.4, rtol=1e-12)
    expected = naive_sph(positions, points, lengths, masses, kernel)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.slow  # compiles a program of its own
def test_a_lattice_has_its_number_density(dims):
    per_axis = {2: 20, 3: 10}[dims]
    side = (np.arange(per_axis) + 0.5) / per_axis
    lattice = np.stack(np.meshgrid(*[side] * dims), axis=-1).reshape(-1, dims)
    middle = np.full((1, dims), 0.5)
    for kernel in KERNELS:
        estimator = SPHDensityEstimator(
            lattice,
            dimension(dims),
            smoothing_length=1.5 / per_axis,
            kernel_type=kernel,
            normalize=False,
        )
        # A Gaussian this wide reaches over the edge of so small a lattice.
        loose = 2e-2 if kernel == "gaussian" else 5e-3
        density = estimator.evaluate(middle)[0]
        assert density == pytest.approx(per_axis**dims, rel=loose)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.slow  # compiles a program of its own
def test_nothing_depends_on_the_unit_of_length(dims, adaptive, scale):
    positions = clustered(100, dims)
    points = positions[:20] * 1.1

    def density(factor):
        estimator = SPHDensityEstimator(
            positions * factor, dimension(dims), adaptive=adaptive, normalize="relative"
        )
        return estimator.evaluate(points * factor)

    np.testing.assert_allclose(density(scale), density(1.0), rtol=1e-3)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.slow  # compiles a program of its own
def test_the_pdf_integrates_to_one(adaptive, kernel):
    positions = RNG.standard_normal((150, 2))
    bounds = ((-9, 9), (-9, 9))
    estimator = SPHDensityEstimator(
        positions,
        smoothing_length=0.5,
        kernel_type=kernel,
        adaptive=adaptive,
        n_neighbors=12,
        masses=RNG.uniform(1, 2, 150),
        resolution=(241, 301),
        bounds=bounds,
    )
    x, y, density = estimator.evaluate_2d()
    assert density.shape == (301, 241)
    assert integral([y[:, 0], x[0]], density) == pytest.approx(1, rel=2e-3)


@pytest.mark.slow  # compiles a program of its own
def test_the_pdf_of_a_volume_integrates_to_one():
    positions = RNG.standard_normal((60, 3))
    estimator = SPHDensityEstimator(
        positions,
        "3d",
        smoothing_length=0.9,
        resolution=(30, 33, 36),
        bounds=np.full((2, 3), 5.5) * [[-1], [1]],
    )
    x, y, z, density = estimator.evaluate_3d()
    axes = [x[:, 0, 0], y[0, :, 0], z[0, 0]]
    assert density.shape == (30, 33, 36)
    assert integral(axes, density) == pytest.approx(1, rel=5e-3)


@pytest.mark.slow  # compiles a program of its own
def test_normalizations_are_by_the_domain():
    positions = clustered(90, 2)
    masses = RNG.uniform(1, 3, 90)
    points = positions[:7]

    def density(normalize, some=points):
        return SPHDensityEstimator(
            positions,
            smoothing_length=0.3,
            masses=masses,
            normalize=normalize,
            bounds=(-4, 4, -4, 6),
        ).evaluate(some)

    raw = density(False)
    np.testing.assert_allclose(density("pdf"), raw / masses.sum(), rtol=1e-5)
    np.testing.assert_array_equal(density(True), density("pdf"))
    np.testing.assert_allclose(density("relative"), raw * 80 / masses.sum(), rtol=1e-5)
    np.testing.assert_allclose(density("count"), raw * 90 / masses.sum(), rtol=1e-5)
    alone = np.concatenate([density("relative", point) for point in points])
    np.testing.assert_allclose(alone, density("relative"), rtol=1e-5)


@pytest.mark.parametrize(
    ("plane", "axes"), [("xy", [0, 1]), ("xz", [0, 2]), ("yz", [1, 2])]
)
@pytest.mark.slow  # compiles a program of its own
def test_a_plane_is_a_density_of_its_slab(plane, axes):
    positions = RNG.random((400, 3))
    masses = RNG.random(400)
    (normal,) = {0, 1, 2} - set(axes)
    inside = np.abs(positions[:, normal] - 0.5) <= 0.1
    sliced = SPHDensityEstimator(
        positions, "2d", plane, 0.5, 0.2, masses=masses, resolution=(6, 7, 8)
    )
    flat = SPHDensityEstimator(positions[inside][:, axes], masses=masses[inside])
    assert sliced.h == pytest.approx(flat.h)
    points = positions[:20]
    wanted = flat.evaluate(points[:, axes])
    np.testing.assert_allclose(sliced.evaluate(points[:, axes]), wanted, rtol=1e-5)
    np.testing.assert_allclose(sliced.evaluate(points), wanted, rtol=1e-5)
    counts = [(6, 7, 8)[axis] for axis in axes]
    assert sliced.evaluate_2d()[2].shape == (counts[1], counts[0])
    empty = SPHDensityEstimator(positions, "2d", plane, 99.0, masses=masses)
    everything = SPHDensityEstimator(positions[:, axes], masses=masses)
    np.testing.assert_allclose(
        empty.evaluate(points), everything.evaluate(points[:, axes]), rtol=1e-5
    )


@pytest.mark.slow  # compiles a program of its own
def test_grids_hold_what_evaluate_gives():
    estimator = SPHDensityEstimator(clustered(100, 3), "3d", resolution=(3, 4, 5))
    x, y, z, density = estimator.evaluate_3d()
    points = np.stack([x, y, z], axis=-1).reshape(-1, 3)
    np.testing.assert_allclose(
        density.ravel(), estimator.evaluate(points), rtol=1e-3, atol=1e-5
    )


@pytest.mark.slow  # compiles a program of its own
def test_absorbed_particles_and_points():
    positions = clustered(60, 2)
    holes = positions.copy()
    holes[[3, 50]] = np.nan
    masses = RNG.random(60)
    kept = np.delete(np.arange(60), [3, 50])
    found = SPHDensityEstimator(holes, masses=masses).evaluate(positions)
    wanted = SPHDensityEstimator(positions[kept], masses=masses[kept])
    np.testing.assert_allclose(found, wanted.evaluate(positions), rtol=1e-4)
    for kernel in KERNELS:
        estimator = SPHDensityEstimator(positions, kernel_type=kernel)
        far = [[1e9, 1e9], [0, -1e30], [np.inf, 0]]
        density = estimator.evaluate([*far, [np.nan, 0], [0, 0]])
        assert density[:3].tolist() == [0, 0, 0]
        assert np.isnan(density[3])
        assert density[4] > 0


@pytest.mark.slow  # compiles a program of its own
def test_wrong_use_raises():
    positions = clustered(20, 2)
    wrong: dict[str, Any] = {
        "dimensions": "4d",
        "kernel_type": "quintic",
        "plane": "zz",
        "normalize": "mass",
    }
    for argument, value in wrong.items():
        with pytest.raises(ValueError, match=value):
            SPHDensityEstimator(positions, **{argument: value})
    with pytest.raises(ValueError, match="smoothing_length is 0"):
        SPHDensityEstimator(positions, smoothing_length=0.0)
    with pytest.raises(ValueError, match="at least 2"):
        SPHDensityEstimator(positions[:1])
    with pytest.raises(ValueError, match="choose 1 to 19"):
        SPHDensityEstimator(positions, adaptive=True)
    with pytest.raises(ValueError, match='use dimensions="2d"'):
        SPHDensityEstimator(positions, "3d")
    with pytest.raises(ValueError, match="on axis y"):
        SPHDensityEstimator(positions * [1, 0]).evaluate_2d()
    with pytest.raises(ValueError, match="slab holds one particle"):
        SPHDensityEstimator([[0.0, 0, 0], [1, 1, 1], [2, 0, 1]])
    for masses in (np.ones(19), -np.ones(20), np.zeros(20), np.full(20, np.nan)):
        with pytest.raises(ValueError, match="masses"):
            SPHDensityEstimator(positions, masses=masses)
    flat, solid = (
        SPHDensityEstimator(positions),
        SPHDensityEstimator(clustered(20, 3), "3d"),
    )
    with pytest.raises(ValueError, match="use evaluate_2d"):
        flat.evaluate_3d()
    with pytest.raises(ValueError, match="use evaluate_3d"):
        solid.evaluate_2d()
    with pytest.raises(ValueError, match="a 3-D density needs 3"):
        solid.evaluate(positions)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.slow  # compiles a program of its own
def test_default_length_follows_the_extent(scale):
    corners = np.array([[0, 0], [2, 4]]) * scale
    many = np.concatenate([corners, np.full((1598, 2), scale)])
    assert smoothing_length_of(None, many) == pytest.approx(2 * 3 * scale / 40)
    assert smoothing_length_of(None, corners) == pytest.approx(0.1 * 3 * scale)


def test_wrong_lengths_are_refused():
    positions = clustered(6, 2)
    for n in (0, 6):
        with pytest.raises(ValueError, match="choose 1 to 5"):
            adaptive_lengths(positions, n)
    with pytest.raises(ValueError, match="have the same position"):
        adaptive_lengths(np.zeros((6, 2)), 3)
    with pytest.raises(ValueError, match="at one place"):
        smoothing_length_of(None, np.ones((6, 2)))
    for length in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="must be positive"):
            smoothing_length_of(length, positions)
