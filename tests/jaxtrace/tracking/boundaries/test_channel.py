import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxtrace.bounds import box_bounds
from jaxtrace.tracking.boundaries.channel import (
    INLETS,
    OUTLETS,
    SETBACK,
    GridEntry,
    RandomEntry,
    channel_boundary,
    channel_ends,
    generated_entry,
    lattice_counts,
    make_salt,
)
from jaxtrace.tracking.particles import Draw, noise_key
from jaxtrace.types import ParticleStatus
from trace_boundaries import BOX, cross

COUNTS = (9, 5, 3)
CHANNEL = [[0, 0, 0], [1, 1, 1]]
COMBINATIONS = list(itertools.product(INLETS, OUTLETS))


def make(inlet, outlet, **options):
    return channel_boundary(
        CHANNEL, "x", inlet, outlet, concentrations=COUNTS, **options
    )


def along(limit, before, after):
    """One step along the axis, in the middle of the face."""
    start = np.array([[before, 0.5, 0.5]], np.float32)
    end = np.array([[after, 0.5, 0.5]], np.float32)
    return cross(limit, start, end)


@pytest.mark.parametrize("inlet", INLETS)
@pytest.mark.parametrize(
    ("outlet", "x", "status"),
    [
        ("absorbing", 1.0, ParticleStatus.EXITED),
        ("reflective", 0.875, ParticleStatus.ACTIVE),
        ("periodic", 0.125, ParticleStatus.ACTIVE),
    ],
)
def test_every_outlet_beside_every_inlet(inlet, outlet, x, status):
    found = along(make(inlet, outlet), 0.875, 1.125)
    if (inlet, outlet) == ("continuous", "absorbing"):
        x, status = 0.0, ParticleStatus.ACTIVE
        assert found.generation[0] == 1
    np.testing.assert_array_equal(found.positions[0], [x, 0.5, 0.5])
    assert found.status[0] == status
    assert bool(found.alive[0]) == (status == ParticleStatus.ACTIVE)


@pytest.mark.parametrize("outlet", OUTLETS)
@pytest.mark.parametrize(
    ("inlet", "x", "status"),
    [
        ("continuous", SETBACK, ParticleStatus.ACTIVE),
        ("none", 0.0, ParticleStatus.ABSORBED),
        ("reflective", 0.125, ParticleStatus.ACTIVE),
        ("periodic", 0.875, ParticleStatus.ACTIVE),
    ],
)
def test_every_inlet_beside_every_outlet(inlet, outlet, x, status):
    found = along(make(inlet, outlet), 0.125, -0.125)
    np.testing.assert_allclose(found.positions[0], [x, 0.5, 0.5], rtol=1e-6)
    assert found.status[0] == status
    assert found.generation[0] == 0
    assert bool(found.alive[0]) == (status == ParticleStatus.ACTIVE)


@pytest.mark.parametrize(("inlet", "outlet"), COMBINATIONS)
@pytest.mark.parametrize("flow_direction", ["positive", "negative"])
def test_whoever_is_left_is_inside(inlet, outlet, flow_direction):
    rng = np.random.default_rng(3)
    before = rng.uniform(0, 1, (200, 3)).astype(np.float32)
    after = before + rng.normal(0, 2, (200, 3)).astype(np.float32)
    limit = make(inlet, outlet, flow_direction=flow_direction)
    found = cross(limit, before, after)
    assert np.all((found.positions >= 0) & (found.positions <= 1))
    inside = np.all((after >= 0) & (after < 1), 1)
    np.testing.assert_array_equal(found.positions[inside], after[inside])
    assert np.isfinite(found.exit_time)[~np.asarray(found.alive)].all()


@pytest.mark.parametrize(("inlet", "outlet"), COMBINATIONS)
def test_the_other_direction_is_the_mirror_image(inlet, outlet):
    rng = np.random.default_rng(4)
    flip = lambda x: np.stack([1 - x[:, 0], x[:, 1], x[:, 2]], 1)
    # Sixteenths, so that the mirror image has no rounding.
    before = rng.integers(1, 16, (100, 3)).astype(np.float32) / 16
    after = before + rng.integers(-32, 33, (100, 3)).astype(np.float32) / 16
    forward = cross(make(inlet, outlet), before, after)
    limit = make(inlet, outlet, flow_direction="negative")
    backward = cross(limit, flip(before), flip(after))
    # A repeating axis has its near end at lo, either way.
    edge = np.any(np.mod(after[:, :1], 1) == 0, 1) & (after[:, 0] != before[:, 0])
    keep = ~edge if "periodic" in (inlet, outlet) else np.ones(100, bool)
    np.testing.assert_allclose(
        flip(np.asarray(backward.positions))[keep],
        np.asarray(forward.positions)[keep],
        atol=1e-6,
    )
    np.testing.assert_array_equal(backward.status[keep], forward.status[keep])
    np.testing.assert_array_equal(backward.generation[keep], forward.generation[keep])


def test_the_exit_is_on_the_plane_when_it_was_crossed():
    before = np.array([[0.5, 0.9, 0.5]], np.float32)
    after = np.array([[1.5, 1.5, 0.5]], np.float32)
    found = cross(make("none", "absorbing"), before, after, start=2.0, end=4.0)
    np.testing.assert_allclose(found.positions, [[1.0, 0.8, 0.5]], rtol=1e-6)
    assert found.positions[0, 0] == 1
    np.testing.assert_allclose(found.exit_time, [3.0], rtol=1e-6)


def test_a_way_mirrored_first_leaves_later():
    found = along(make("reflective", "absorbing"), 0.25, -1.75)
    # A quarter to the mirror, then the whole channel, of a way of two.
    np.testing.assert_allclose(found.exit_time, [1.25 / 2], rtol=1e-6)
    np.testing.assert_allclose(found.positions, [[1.0, 0.5, 0.5]])
    assert found.status[0] == ParticleStatus.EXITED


def test_a_channel_repeats_only_where_an_end_does():
    assert make("continuous", "absorbing").period == (0, 0, 0)
    assert make("periodic", "absorbing").period == (1, 0, 0)
    ends = jnp.array([[-0.25, 5.0, 5.0], [1.25, 5.0, 5.0]])
    np.testing.assert_array_equal(
        make("periodic", "absorbing").wrap(ends)[:, 0], [0.75, 1.25]
    )
    np.testing.assert_array_equal(
        make("reflective", "periodic").wrap(ends)[:, 0], [-0.25, 0.25]
    )
    assert make("none", "reflective").wrap(ends) is ends


def test_dead_slots_stay_dead():
    limit = make("continuous", "absorbing")
    points = np.array([[np.nan] * 3, [1.5, 0.5, 0.5]], np.float32)
    found = np.asarray(limit(points))
    assert np.isnan(found[0]).all()
    assert found[1, 0] == 0


def test_plane_channels_leave_the_third_axis_alone():
    limit = channel_boundary([0, 2, 0, 1], "x", concentrations={"y": 3})
    points = np.array([[2.5, 0.4, 7.0], [1.0, 1.25, -7.0]], np.float32)
    np.testing.assert_array_equal(limit(points), [[0, 0.5, 7], [1, 0.75, -7]])


def test_gradients_pass_through_a_channel():
    limit = channel_boundary(BOX, "x", "reflective", "absorbing")
    slope = jax.grad(lambda x: jnp.sum(limit(x)))(jnp.array([[-0.5, 0.5, 1.5]]))
    np.testing.assert_array_equal(slope, [[-1, 1, -1]])


LO, HI = np.array([0.0, -1.0, 2.0]), np.array([4.0, 3.0, 2.5])
POINTS = jnp.asarray(np.random.default_rng(0).uniform(LO, HI, (2000, 3)), np.float32)


@eqx.filter_jit
def enter(entry, leaving, draw):
    return entry.positions(leaving, draw)


def make_draw(count=2000, step=0, seed=0):
    slots = jnp.arange(count, dtype=np.int32)
    return Draw(noise_key(seed), slots, jnp.asarray(step, np.int32))


def make_random(*, gaussian=False, seed=0):
    plane = np.asarray(LO[0])
    return RandomEntry(plane, 0, LO, HI, make_salt(seed), (1, 2), gaussian)


def test_a_lattice_stays_a_lattice_to_the_last_bit():
    nodes = np.linspace(LO[1], HI[1], 13)
    entry = GridEntry(np.asarray(LO[0]), 0, {1: nodes})
    seeds = np.full((13, 3), 2.2, np.float32)
    seeds[:, 1] = nodes
    found = np.asarray(enter(entry, jnp.asarray(seeds), make_draw(13)))
    np.testing.assert_array_equal(found[:, 1:], seeds[:, 1:])
    np.testing.assert_array_equal(found[:, 0], 0)


def test_even_chance_covers_the_face():
    found = np.asarray(enter(make_random(), POINTS, make_draw()))
    np.testing.assert_array_equal(found[:, 0], 0)
    for axis in (1, 2):
        share = (found[:, axis] - LO[axis]) / (HI[axis] - LO[axis])
        assert stats.kstest(share, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(found[:, 1:].T)[0, 1]) < 0.08


def test_gaussian_chance_has_a_sixth_of_the_width():
    entry = make_random(gaussian=True)
    found = np.asarray(enter(entry, POINTS, make_draw()))
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
        np.asarray(enter(make_random(seed=a), POINTS, make_draw(seed=b, step=c)))
        for a, b, c in [(0, 0, 0), (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    ]
    np.testing.assert_array_equal(numbers[0], numbers[1])
    for other in numbers[2:]:
        assert np.all(other[:, 1] != numbers[0][:, 1])


def test_generators_get_uniform_numbers_of_their_slots():
    entry = generated_entry(lambda numbers: 2 * numbers, 0)
    found = np.asarray(enter(entry, POINTS, make_draw()))
    assert found.shape == (2000, 3)
    for column in found.T:
        assert stats.kstest(column / 2, "uniform").pvalue > 1e-3
    assert np.abs(np.corrcoef(found.T) - np.eye(3)).max() < 0.08
    some = enter(entry, POINTS[:10], make_draw(10))
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
    expected = enter(compiled, POINTS[:5], make_draw(5))
    np.testing.assert_array_equal(enter(entry, POINTS[:5], make_draw(5)), expected)


def test_generators_that_answer_otherwise_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 2\).*\(N, 3\)"):
        generated_entry(lambda numbers: numbers[:, :2], 0)
    with pytest.raises(TypeError, match=r"it is called with uniform numbers \(N, 3\)"):
        generated_entry(lambda count: np.zeros((count, 3)), 0)


def test_ends_are_faces_or_coordinates():
    box, forward = channel_ends(BOX, 0, "min", "max")
    np.testing.assert_array_equal([box.lo, box.hi], BOX)
    assert forward
    box, forward = channel_ends(BOX, 0, 1.75, "min")
    assert (box.lo[0], box.hi[0], forward) == (0.0, 1.75, False)
    np.testing.assert_array_equal(box_bounds(BOX).hi, BOX[1])


def test_counts_come_by_name_or_in_order():
    assert lattice_counts({"y": 4, "z": 5}, (1, 2)) == {1: 4, 2: 5}
    assert lattice_counts((9, 4, 5), (1, 2)) == {1: 4, 2: 5}
    assert lattice_counts((9, 4), (1,)) == {1: 4}


@pytest.mark.parametrize(
    "counts", [None, {"x": 4, "y": 3}, (9, 4), {"y": 0, "z": 1}, {"y": 2.5, "z": 1}]
)
def test_a_grid_needs_a_count_for_every_axis_of_the_face(counts):
    with pytest.raises(ValueError, match=r"concentrations.*counts per axis"):
        lattice_counts(counts, (1, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: channel_ends(BOX, 0, "min", "min"), "both at x = 0"),
        (lambda: channel_ends(BOX, 0, 1.0, 1.0), "both at x = 1"),
        (lambda: channel_ends(BOX, 0, "left", "max"), "inlet 'left'.*'min'"),
        (lambda: channel_ends(BOX, 0, "min", np.inf), "outlet inf"),
        (lambda: channel_boundary([0, 1, 0, 1], "z"), "both at z = 0"),
        (lambda: channel_boundary(BOX, "w"), "x, y, z"),
        (lambda: channel_boundary(BOX, -1), "x, y, z"),
        (lambda: channel_boundary(BOX, "x", "open"), "inlet 'open'"),
        (lambda: channel_boundary(BOX, "x", "none", "none"), "outlet 'none'"),
        (lambda: make("continuous", "absorbing", flow_direction="up"), "'up'"),
        (lambda: make("continuous", "absorbing", inlet_distribution="even"), "'even'"),
    ],
)
def test_wrong_channels_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
