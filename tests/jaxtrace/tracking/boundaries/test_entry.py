import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxtrace.tracking.boundaries.channel import (
    GridEntry,
    PlaneEntry,
    RandomEntry,
    generated_entry,
    make_salt,
    nearest,
    salted,
)
from jaxtrace.tracking.particles import Draw, noise_key

pytestmark = pytest.mark.slow  # compiles many programs

LO, HI = np.array([0.0, -1.0, 2.0]), np.array([4.0, 3.0, 2.5])
POINTS = jnp.asarray(np.random.default_rng(0).uniform(LO, HI, (2000, 3)), np.float32)


def make_draw(count=2000, step=0, seed=0):
    slots = jnp.arange(count, dtype=np.int32)
    return Draw(noise_key(seed), slots, jnp.asarray(step, np.int32))


def make_random(*, gaussian=False, seed=0):
    plane = np.asarray(LO[0])
    return RandomEntry(plane, 0, LO, HI, make_salt(seed), (1, 2), gaussian)


def test_a_plane_keeps_the_place_on_the_face():
    found = PlaneEntry(np.asarray(0.5), 1).positions(POINTS, make_draw())
    np.testing.assert_array_equal(found[:, 1], 0.5)
    np.testing.assert_array_equal(found[:, 0], POINTS[:, 0])


@pytest.mark.parametrize("count", [1, 2, 7, 60])
def test_the_nearest_node_is_that_of_a_plain_search(count):
    nodes = np.linspace(-0.3, 1.1, count).astype(np.float32)
    x = np.random.default_rng(1).uniform(-0.5, 1.3, 500).astype(np.float32)
    expected = nodes[np.abs(x[:, None] - nodes[None]).argmin(1)]
    np.testing.assert_array_equal(nearest(jnp.asarray(x), jnp.asarray(nodes)), expected)


def test_a_lattice_stays_a_lattice_to_the_last_bit():
    nodes = np.linspace(LO[1], HI[1], 13)
    entry = GridEntry(np.asarray(LO[0]), 0, {1: nodes})
    seeds = np.full((13, 3), 2.2, np.float32)
    seeds[:, 1] = nodes
    found = np.asarray(entry.positions(jnp.asarray(seeds), make_draw(13)))
    np.testing.assert_array_equal(found[:, 1:], seeds[:, 1:])
    np.testing.assert_array_equal(found[:, 0], 0)


def test_even_chance_covers_the_face():
    found = np.asarray(make_random().positions(POINTS, make_draw()))
    np.testing.assert_array_equal(found[:, 0], 0)
    for axis in (1, 2):
        share = (found[:, axis] - LO[axis]) / (HI[axis] - LO[axis])
        assert stats.kstest(share, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(found[:, 1:].T)[0, 1]) < 0.08


def test_gaussian_chance_has_a_sixth_of_the_width():
    entry = make_random(gaussian=True)
    found = np.asarray(entry.positions(POINTS, make_draw()))
    assert np.all((found >= LO) & (found <= HI))
    for axis in (1, 2):
        width = HI[axis] - LO[axis]
        middle = (LO[axis] + HI[axis]) / 2
        inner = np.abs(found[:, axis] - middle) < width / 2
        assert inner.mean() > 0.99
        scaled = (found[:, axis] - middle) / (width / 6)
        assert stats.kstest(scaled, "norm").pvalue > 1e-3


def test_seeds_of_run_and_boundary_both_count():
    numbers = [
        np.asarray(make_random(seed=a).positions(POINTS, make_draw(seed=b, step=c)))
        for a, b, c in [(0, 0, 0), (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    ]
    np.testing.assert_array_equal(numbers[0], numbers[1])
    for other in numbers[2:]:
        assert np.all(other[:, 1] != numbers[0][:, 1])


def test_salt_is_the_seed_in_two_words():
    np.testing.assert_array_equal(make_salt(2**32 + 5), [1, 5])
    with pytest.raises(ValueError, match="seed -1"):
        make_salt(-1)
    draw = make_draw(4)
    np.testing.assert_array_equal(salted(draw, make_salt(3)).slots, draw.slots)


def test_generators_get_uniform_numbers_of_their_slots():
    entry = generated_entry(lambda numbers: 2 * numbers, 0)
    found = np.asarray(entry.positions(POINTS, make_draw()))
    assert found.shape == (2000, 3)
    for column in found.T:
        assert stats.kstest(column / 2, "uniform").pvalue > 1e-3
    assert np.abs(np.corrcoef(found.T) - np.eye(3)).max() < 0.08
    some = entry.positions(POINTS[:10], make_draw(10))
    np.testing.assert_array_equal(some, found[:10])


def test_generators_of_numpy_run_on_the_host():
    def by_hand(numbers):
        numbers[:, 0] = 0.25
        return numbers

    with pytest.warns(UserWarning, match=r"by_hand.*jax\.numpy"):
        entry = generated_entry(by_hand, 0)
    compiled = generated_entry(
        lambda n: jnp.concatenate([0 * n[:, :1] + 0.25, n[:, 1:]], 1), 0
    )
    run = jax.jit(lambda x: entry.positions(x, make_draw(5)))
    expected = compiled.positions(POINTS[:5], make_draw(5))
    np.testing.assert_array_equal(run(POINTS[:5]), expected)


def test_generators_that_answer_otherwise_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 2\).*\(N, 3\)"):
        generated_entry(lambda numbers: numbers[:, :2], 0)
