import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.analysis.density import (
    KERNELS,
    NORMAL,
    Domain,
    check_normalization,
    finite_particles,
    grid_counts,
    make_domain,
    pdf_factor,
    plane_axes,
    slice_particles,
    working_dtype,
)
from trace_densities import CONSTANTS, PROFILES

CUBE = np.array([[0.0, 0, 0], [1, 2, 3], [0.5, 1, 1.5], [0.2, 0.4, 0.6]])


def test_absorbed_particles_are_dropped():
    positions = CUBE.copy()
    positions[1, 2] = np.nan
    particles = finite_particles(positions)
    assert particles.kept.tolist() == [0, 2, 3]
    np.testing.assert_array_equal(particles.positions, positions[[0, 2, 3]])


@pytest.mark.parametrize(
    "positions",
    [np.zeros((1, 2)), np.full((5, 3), np.nan), np.zeros((0, 3)), [0.0, 1.0]],
)
def test_fewer_than_two_particles_raise(positions):
    with pytest.raises(ValueError, match="at least 2"):
        finite_particles(positions)


def test_wrong_positions_raise():
    for shape in [(4, 1), (4, 4), (2, 4, 3), ()]:
        with pytest.raises(ValueError, match="expected"):
            finite_particles(np.zeros(shape))
    with pytest.raises(ValueError, match="infinite"):
        finite_particles(np.full((3, 2), np.inf))
    with pytest.raises(TypeError, match="real numbers"):
        finite_particles(np.zeros((3, 2), complex))


def test_dtypes_follow_the_input_where_x64_is_on():
    cases = {"float16": 4, "float32": 4, "float64": 8, "int32": 8}
    for name, size in cases.items():
        array = np.zeros(1, name)
        assert working_dtype(array) == np.float32
        with jax.enable_x64(True):
            assert working_dtype(array).itemsize == size


@pytest.mark.parametrize(
    ("plane", "axes", "normal"),
    [("xy", [0, 1], 2), ("xz", [0, 2], 1), ("yz", [1, 2], 0)],
)
def test_slabs_hold_what_is_near_the_plane(plane, axes, normal):
    particles = finite_particles(CUBE)
    place = CUBE[2, normal]
    inside = slice_particles(particles, plane, place, 0.4 * place)
    np.testing.assert_array_equal(inside.positions, CUBE[2:3, axes])
    assert inside.kept.tolist() == [2]
    ends = slice_particles(particles, plane, place / 2, place)
    assert ends.kept.tolist() == [0, 2, 3], "both faces belong to the slab"
    everything = slice_particles(particles, plane, 99.0, 0.1)
    np.testing.assert_array_equal(everything.positions, CUBE[:, axes])


def test_flat_particles_are_in_their_plane():
    particles = finite_particles(CUBE[:, :2])
    same = slice_particles(particles, "xy", 99.0, 0.1)
    np.testing.assert_array_equal(same.positions, CUBE[:, :2])


def test_wrong_planes_and_slabs_raise():
    with pytest.raises(ValueError, match=r"'zx': choose.*yz"):
        plane_axes("zx", 3)
    with pytest.raises(ValueError, match="needs 3-D positions"):
        plane_axes("xz", 2)
    with pytest.raises(ValueError, match="slab_thickness is 0"):
        slice_particles(finite_particles(CUBE), "xy", 0.0, 0.0)


def test_domains_come_from_bounds_or_from_the_particles():
    box = make_domain(CUBE, None, (0, 1, 2))
    assert (box.lower, box.upper, box.measure) == ((0, 0, 0), (1, 2, 3), 6)
    given = make_domain(CUBE[:, [0, 2]], ((0, 0, -1), (2, 2, 4)), (0, 2))
    assert (given.lower, given.upper, given.measure) == ((0, -1), (2, 4), 10)
    flat = make_domain(CUBE[:, :2], [0, 2, 1, 6], (0, 1))
    assert (flat.lower, flat.upper, flat.measure) == ((0, 1), (2, 6), 10)
    with pytest.raises(ValueError, match=r"from 0.0 to 0.0 on axis z"):
        make_domain(CUBE, [0, 2, 1, 6], (0, 1, 2))
    with pytest.raises(ValueError, match=r"from 2.0 to 2.0 on axis z"):
        make_domain(CUBE[:, [0, 2]] * [1, 0] + np.array([0, 2]), None, (0, 2))


def test_grids_have_their_ends_and_counts():
    axes = Domain((0, 1), (1, 3), (0, 1)).grid_axes((3, 5))
    assert [axis.tolist() for axis in axes] == [[0, 0.5, 1], [1, 1.5, 2, 2.5, 3]]
    assert grid_counts(7, (0, 1, 2)) == (7, 7, 7)
    assert grid_counts([4, 5, 6], (0, 2)) == (4, 6)
    assert grid_counts((4, 5), (1, 2)) == (4, 5)
    for wrong in (0, (3,), (3, 4, 5, 6), (3, 0)):
        with pytest.raises(ValueError, match="positive counts"):
            grid_counts(wrong, (0, 1))
    with pytest.raises(ValueError, match="3 positive counts"):
        grid_counts((3, 4), (0, 1, 2))


def test_normalizations():
    assert check_normalization(True) == "pdf"
    assert check_normalization(False) is None
    assert check_normalization("count") == "count"
    for wrong in ("mass", None, 1):
        with pytest.raises(ValueError, match="relative"):
            check_normalization(wrong)
    domain = lambda: Domain((0, 0), (2, 3), (0, 1))
    factors = [pdf_factor(m, 50, domain) for m in ("pdf", "relative", "count")]
    assert factors == [1, 6, 50]


ALL = {**KERNELS, "normal": NORMAL}


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("h", [0.7, 3e-6])
@pytest.mark.parametrize("name", ALL)
@pytest.mark.slow  # compiles a program of its own
def test_kernels_integrate_to_one(name, h, dims):
    kernel = ALL[name]
    r = np.linspace(0, min(kernel.support, 12.0) * h, 20_001)
    shell = 2 * np.pi * r if dims == 2 else 4 * np.pi * r**2
    with jax.enable_x64(True):
        profile = np.asarray(kernel.profile(jnp.asarray(r / h)))
    values = kernel.constant(dims) / h**dims * profile
    assert np.trapezoid(shell * values, r) == pytest.approx(1, rel=1e-7)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.slow  # compiles a program of its own
def test_kernels_follow_the_table(name, dims):
    q = np.linspace(0, 2.5, 26, dtype=np.float32)
    expected = [CONSTANTS[name][dims] * PROFILES[name](x) for x in q.tolist()]
    kernel = KERNELS[name]
    values = kernel.constant(dims) * kernel.profile(jnp.asarray(q))
    np.testing.assert_allclose(values, expected, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.slow  # compiles a program of its own
def test_nothing_beyond_the_support(name):
    kernel = KERNELS[name]
    q = kernel.support * jnp.array([0.0, 0.999, 1.0, 1.5])
    assert kernel.profile(q)[2:].tolist() == [0, 0]
    assert bool(jnp.all(jnp.diff(kernel.profile(q)) <= 0))
