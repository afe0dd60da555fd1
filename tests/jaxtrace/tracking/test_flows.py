"""Ready fields against their formulas, and the bounds they are given."""

import numpy as np
import pytest

from jaxtrace.fields.analytic import FLOWS
from jaxtrace.tracking.flows import (
    create_saddle_field,
    create_simple_field_from_function,
    create_uniform_field,
    create_vortex_field,
    make_flow,
    within,
)

POINTS = np.array([[0.5, 0.25, 0.0], [-1.0, 2.0, 3.0]], np.float32)


def test_uniform():
    found = create_uniform_field((1.0, -2.0)).sample_at_positions(POINTS, 3.0)
    np.testing.assert_allclose(found, [[1, -2, 0], [1, -2, 0]])


def test_a_velocity_has_two_or_three_components():
    with pytest.raises(ValueError, match="two or three components"):
        create_uniform_field((1.0,))


def test_saddle():
    found = create_saddle_field((0.5, 1.0), 2.0).sample_at_positions(POINTS)
    np.testing.assert_allclose(found, [[0, 1.5, 0], [-3, -2, 0]])


def test_far_from_its_core_a_vortex_has_its_circulation():
    field = create_vortex_field((0.5, 0.25), strength=4.0, core=0.1)
    radius = 2.0
    point = [[0.5 + radius, 0.25, 0.0]]
    found = np.asarray(field.sample_at_positions(np.array(point, np.float32)))
    np.testing.assert_allclose(found, [[0, 4 / (2 * np.pi * radius), 0]], rtol=1e-5)


def test_a_vortex_needs_a_core():
    with pytest.raises(ValueError, match="core=0"):
        create_vortex_field(core=0.0)


def test_bounds_are_answered_and_change_no_velocity():
    free = create_simple_field_from_function(lambda x, t: x * 2 + t)
    boxed = within(free, [-1, 1, -2, 2])
    low, high = boxed.get_spatial_bounds()
    np.testing.assert_array_equal([low, high], [[-1, -2, 0], [1, 2, 0]])
    np.testing.assert_array_equal(
        boxed.sample_at_positions(POINTS, 1.0), free.sample_at_positions(POINTS, 1.0)
    )
    assert not np.isfinite(free.get_spatial_bounds()).any()
    assert boxed.get_time_bounds() == free.get_time_bounds()


@pytest.mark.parametrize("name", FLOWS)
def test_every_flow_by_name(name):
    assert isinstance(make_flow(name), FLOWS[name])


def test_an_unknown_flow_or_parameter_is_refused():
    with pytest.raises(ValueError, match="double_gyre"):
        make_flow("gyre")
    with pytest.raises(TypeError, match="did you mean 'amplitude'"):
        make_flow("double_gyre", amplitudes=1)
