import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.tracking.boundaries.channel import SETBACK
from jaxtrace.tracking.boundaries.inlet import INLETS, OUTLETS, channel_boundary
from jaxtrace.types import ParticleStatus
from trace_boundaries import BOX, cross

pytestmark = pytest.mark.slow  # compiles many programs

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


def test_only_recycling_channels_recycle():
    assert make("continuous", "absorbing").recycles
    assert not make("continuous", "reflective").recycles


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
