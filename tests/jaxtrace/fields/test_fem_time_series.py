"""Time series on elements, by their documented names."""

import numpy as np
import pytest

from jaxtrace.fields.time_series import (
    FEMTimeSeriesField,
)
from trace_meshes import SIX, lattice, split
from trace_series import TIMES, growing, linear, places, tetra_mesh


@pytest.mark.slow
def test_elements_are_used_even_where_nodes_form_a_grid():
    points, cells = lattice((4, 4, 4), (2.0, 1.0, 0.5))
    tets = split(cells, SIX)
    data = np.random.default_rng(0).standard_normal((4, len(points), 3))
    field = FEMTimeSeriesField(data, TIMES, points, tets)
    assert field.interpolation_scheme == "tetrahedra"
    center = points[tets].mean(1)
    found = field.sample_at_positions(center, 0.0)
    assert np.allclose(found, data[0][tets].mean(1), atol=1e-5)


@pytest.mark.slow
def test_linear_fields_are_exact_at_any_scale():
    points, tets = tetra_mesh()
    for scale in (1e-6, 1.0):
        field = FEMTimeSeriesField(growing(points), TIMES, points * scale, tets)
        found = field.sample_at_positions(places() * scale, 1.7)
        assert np.allclose(found, 2.7 * linear(places()), atol=5e-5)
        pair = np.array([[3.0, 0, 0], [1, 0.5, 0.25]]) * scale
        assert field.contains(pair).tolist() == [False, True]


@pytest.mark.slow
def test_outside_follows_the_policy():
    points, tets = tetra_mesh()
    x = places(5) + np.array([2.5, 0, 0])
    near = FEMTimeSeriesField(growing(points), TIMES, points, tets)
    expected = linear(np.minimum(x, [2.0, 1, 0.5]))
    assert np.allclose(near.sample_at_positions(x, 0.0), expected, atol=1e-4)
    none = FEMTimeSeriesField(growing(points), TIMES, points, tets, outside="zero")
    assert np.all(np.asarray(none.sample_at_positions(x, 0.0)) == 0)
