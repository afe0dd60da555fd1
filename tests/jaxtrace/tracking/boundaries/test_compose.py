import jax.numpy as jnp
import numpy as np

from jaxtrace.tracking.boundaries.base import compose_boundaries
from jaxtrace.tracking.boundaries.box import box_boundary
from jaxtrace.tracking.boundaries.inlet import channel_boundary
from jaxtrace.tracking.boundaries.solids import spherical_boundary
from jaxtrace.types import ParticleStatus
from trace_boundaries import BOX, cross

UNIT = [[0] * 3, [1] * 3]


def along(axis, rule):
    return box_boundary(UNIT, [rule if a == axis else "open" for a in "xyz"])


def test_boundaries_act_from_left_to_right():
    double = lambda x: 2 * x
    shift = lambda x: x + 1
    points = np.array([[1.0, 2.0, 3.0]], np.float32)
    np.testing.assert_array_equal(
        compose_boundaries(double, shift)(points), [[3, 5, 7]]
    )
    np.testing.assert_array_equal(
        compose_boundaries(shift, double)(points), [[4, 6, 8]]
    )
    np.testing.assert_array_equal(compose_boundaries()(points), points)


def test_three_axes_in_a_row_are_one_box():
    rng = np.random.default_rng(0)
    points = rng.uniform(-3, 4, (100, 3)).astype(np.float32)
    row = compose_boundaries(
        along("x", "periodic"), along("y", "reflective"), along("z", "absorbing")
    )
    box = box_boundary(UNIT, ["periodic", "reflective", "absorbing"])
    np.testing.assert_array_equal(row(points), box(points))
    stage = jnp.asarray(points)
    np.testing.assert_array_equal(row.wrap(stage), box.wrap(stage))
    assert row.period == box.period


def test_a_way_that_wrapped_ends_where_it_leaves():
    row = compose_boundaries(along("x", "periodic"), along("y", "absorbing"))
    before = np.array([[0.9, 0.5, 0.5]], np.float32)
    after = np.array([[1.3, 1.5, 0.5]], np.float32)
    found = cross(row, before, after)
    np.testing.assert_allclose(found.positions[:, 1:], [[1.0, 0.5]])
    # Half way it was at 1.1, which is 0.1 once wrapped.
    np.testing.assert_allclose(found.positions[0, 0] % 1, 0.1, rtol=1e-5)


def test_a_newcomer_does_not_cross_on_its_way_in():
    inlet = channel_boundary(BOX, "x", concentrations=(2, 5, 3))
    row = compose_boundaries(inlet, spherical_boundary((0, 0.5, 0.5), 0.4, "absorbing"))
    before = np.array([[1.9, 0.5, 0.5]], np.float32)
    after = np.array([[2.1, 0.5, 0.5]], np.float32)
    found = cross(row, before, after)
    assert row.recycles
    assert found.generation[0] == 1
    np.testing.assert_array_equal(found.positions, [[0, 0.5, 0.5]])
    assert found.status[0] == ParticleStatus.ACTIVE


def test_the_first_value_for_the_gone_counts():
    plain = box_boundary(UNIT, "reflective")
    marked = box_boundary(UNIT, "absorbing", -1.0)
    assert compose_boundaries(plain, marked).fill == -1
    assert np.isnan(compose_boundaries(plain).fill)
