import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.compile_cache import record_compilations
from jaxrig.memory import compiled_memory
from jaxtrace.analysis import kernel_sums
from jaxtrace.analysis.density import KERNELS, cubic_spline, normal
from jaxtrace.analysis.kernel_sums import (
    DirectSum,
    NeighborSum,
    Sources,
    chunk_size,
    chunks_together,
    rescale,
    separable_sum,
    sum_all,
)
from jaxtrace.config import configure, reset_config
from trace_densities import clustered

pytestmark = pytest.mark.slow  # compiles programs of its own

LIMIT = 1e9


def sources(count, dims, dtype: Any = np.float32, seed=0):
    rng = np.random.default_rng(seed)
    arrays = (
        3 * clustered(count, dims, seed),
        rng.random(count),
        2 ** rng.uniform(-3, 3, count),
    )
    return Sources(*(a.astype(dtype) for a in arrays))


def expected(profile, given, points):
    apart = np.linalg.norm(points[:, None] - given.positions[None], axis=-1)
    values = np.asarray(profile(jnp.asarray(apart / given.lengths[None])))
    return (values * given.weights[None]).sum(axis=1)


@pytest.mark.parametrize("kind", ["direct", "neighbors"])
@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_sums_equal_the_table_of_all_pairs(name, dims, kind):
    kernel = KERNELS[name]
    with jax.enable_x64(True):
        given = sources(700, dims, np.float64)
        points = 3 * clustered(90, dims, seed=1)
        near = NeighborSum(given, kernel.support)
        summed = DirectSum(given) if kind == "direct" else near
        found = summed(kernel.profile, points, LIMIT)
        np.testing.assert_allclose(
            found, expected(kernel.profile, given, points), rtol=1e-11, atol=1e-13
        )


@pytest.mark.parametrize("dims", [2, 3])
def test_separable_sums_equal_direct_ones(dims):
    given = sources(700, dims)
    given = given._replace(lengths=np.ones_like(given.lengths))
    axes = [np.linspace(-2, 2, n, dtype=np.float32) for n in (5, 7, 4)[:dims]]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dims)
    whole = separable_sum(given, axes, LIMIT)
    assert whole.shape == (5, 7, 4)[:dims]
    direct = DirectSum(given)(normal, points, LIMIT)
    np.testing.assert_allclose(whole.ravel(), direct, rtol=1e-5)
    rows = separable_sum(given, axes, 4e4)
    np.testing.assert_allclose(rows, whole, rtol=1e-6)


@pytest.mark.parametrize("make", [DirectSum, lambda s: NeighborSum(s, 2.0)])
def test_the_memory_limit_does_not_change_the_answer(make):
    given = sources(600, 3)
    points = given.positions[:100]
    summed = make(given)
    profile = KERNELS["wendland"].profile
    whole = summed(profile, points, LIMIT)
    parts = summed(profile, points, 1e5)
    np.testing.assert_allclose(parts, whole, rtol=1e-5)


@pytest.mark.parametrize("make", [DirectSum, lambda s: NeighborSum(s, 2.0)])
def test_one_compilation_serves_all_data_of_a_shape(make):
    profile = KERNELS["cubic_spline"].profile
    first, second = (sources(500, 2, seed=seed) for seed in (3, 4))
    make(first)(profile, first.positions, LIMIT)
    with record_compilations() as log:
        make(second)(profile, second.positions + np.float32(0.1), LIMIT)
        few = second._replace(**{k: v[:497] for k, v in second._asdict().items()})
        make(few)(profile, second.positions[:491], LIMIT)
    assert log.compilations == []


def test_no_table_of_all_pairs_is_made():
    """What the compiled sum holds does not grow with the number of particles."""
    queries, block = 512, 256
    run = jax.vmap(functools.partial(sum_all, normal), in_axes=(0, None, None, None))

    def temporaries(blocks):
        shapes = [(queries, 2), (blocks, 2, block), (blocks, block), (blocks, block)]
        arguments = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
        return compiled_memory(run, *arguments).temporaries

    few, many = temporaries(4), temporaries(40)
    assert many <= few + 40 * block * 4 * 4  # copies of the particles themselves
    assert many < queries * block * 4 * 6


def test_chunks_follow_the_limit_and_the_cores():
    assert chunk_size(10, 1000, 1e9) == 10
    assert chunk_size(10**6, 1000, 1e9) == 1024
    assert chunk_size(10**6, 1000, 1e5) == 50
    with pytest.raises(ValueError, match=r"smallest chunk takes 2e\+03"):
        chunk_size(10, 1000, 1e3)
    configure(cores=4)
    limits = [1e9, 4e6, 1e5]
    assert [chunks_together(1000, 1000, limit) for limit in limits] == [4, 3, 1]
    reset_config()


@pytest.mark.bitwise
@pytest.mark.parametrize("make", [DirectSum, lambda s: NeighborSum(s, 2.0)])
def test_the_cores_do_not_change_the_answer(make, monkeypatch):
    monkeypatch.setattr(kernel_sums, "_LARGEST_CHUNK", 16)
    given, found = sources(100, 3), []
    for cores in (1, 3):
        configure(cores=cores)
        found.append(make(given)(cubic_spline, given.positions, LIMIT))
    reset_config()
    np.testing.assert_array_equal(*found)


def test_factors_beyond_float32_are_no_matter():
    sums = np.array([1e-30], np.float32)
    assert rescale(sums, 1e50).tolist() == pytest.approx([1e20], rel=1e-6)
    assert rescale(sums, 1e50).dtype == np.float32


def test_no_points_no_sums():
    given = sources(10, 2)
    none = np.zeros((0, 2), np.float32)
    profile = KERNELS["wendland"].profile
    assert DirectSum(given)(profile, none, LIMIT).shape == (0,)
    assert NeighborSum(given, 2.0)(profile, none, LIMIT).shape == (0,)
