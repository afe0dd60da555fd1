"""Scattered points against SciPy's own interpolation and nearest neighbors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import ConvexHull, KDTree

from jaxtrace.fields.mesh import MeshField
from jaxtrace.fields.unstructured import NearestField, make_scattered_field, triangulate
from trace_meshes import boundary_faces
from trace_series import SLOPE, answer, ask

pytestmark = pytest.mark.slow  # compiles programs of its own


def cloud(count=150, seed=0):
    return np.random.default_rng(seed).random((count, 3)).astype(np.float32)


def test_linear_fields_are_exact_in_the_hull():
    points = cloud()
    field = make_scattered_field(points, points @ SLOPE + 1, dtype=np.float32)
    assert isinstance(field, MeshField)
    x = np.random.default_rng(1).random((2000, 3)).astype(np.float32)
    velocity, cell_hint = ask(field, x)
    inside = np.asarray(cell_hint) >= 0
    expected = LinearNDInterpolator(points, points @ SLOPE + 1)(x)
    assert np.mean(inside == np.isfinite(expected[:, 0])) > 0.999
    np.testing.assert_allclose(velocity[inside], (x @ SLOPE + 1)[inside], atol=1e-4)


def test_points_in_a_plane_make_triangles():
    points = cloud() * [1, 0, 1] + [0, 3, 0]
    values = np.random.default_rng(2).standard_normal(points.shape)
    field = make_scattered_field(points, values, dtype=np.float32)
    x = np.random.default_rng(1).random((2000, 3)).astype(np.float32)
    velocity, cell_hint = ask(field, x)
    inside = np.asarray(cell_hint) >= 0
    expected = LinearNDInterpolator(points[:, [0, 2]], values)(x[:, [0, 2]])
    known = inside & np.isfinite(expected[:, 0])
    assert known.mean() > 0.8
    np.testing.assert_allclose(velocity[known], expected[known], atol=1e-3)


def test_points_on_a_lattice_leave_no_holes():
    axes = [np.linspace(0, 1, n) for n in (5, 6, 4)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    field = make_scattered_field(points, points @ SLOPE, dtype=np.float32)
    assert isinstance(field, MeshField)
    x = np.random.default_rng(1).random((2000, 3)).astype(np.float32)
    velocity, cell_hint = ask(field, x)
    assert np.all(np.asarray(cell_hint) >= 0)
    np.testing.assert_allclose(velocity, x @ SLOPE, atol=3e-6)
    assert boundary_faces(field).areas.sum() == pytest.approx(6, rel=1e-5)


def test_the_nearest_point_is_the_nearest():
    points = cloud(500)
    values = np.arange(1500.0).reshape(500, 3)
    field = make_scattered_field(
        points, values, spatial_interpolation="nearest", dtype=np.float32
    )
    assert isinstance(field, NearestField)
    x = np.random.default_rng(1).uniform(-0.5, 1.5, (2000, 3)).astype(np.float32)
    velocity, cell_hint = ask(field, x)
    _, expected = KDTree(points.astype(float)).query(x.astype(float))
    np.testing.assert_array_equal(cell_hint, expected)
    np.testing.assert_array_equal(velocity, values[expected])
    again, _ = ask(field, x, cell_hint=jnp.flip(cell_hint))
    np.testing.assert_array_equal(again, velocity)


def test_nearest_points_in_time():
    points = cloud(500)
    values = np.stack([points, 3 * points])
    field = make_scattered_field(
        points, values, times=[0.0, 2.0], spatial_interpolation="nearest"
    )
    velocity, _ = ask(field, points[:7], 1.0)
    np.testing.assert_allclose(velocity, 2 * points[:7], rtol=1e-6)
    instant = jax.tree.map(jnp.asarray, field.instant(np.float64(1.0)))
    still, instant = field.at_instant(instant, 1000)
    x = jnp.asarray(points[:7])
    np.testing.assert_allclose(
        answer(still, x, instant, still.start(x))[0], velocity, rtol=1e-6
    )
    assert field.get_time_bounds() == (0.0, 2.0)
    np.testing.assert_allclose(field.get_spatial_bounds()[0], points.min(0))


def test_places_that_are_no_numbers_do_not_hold_the_others_up():
    points = cloud(500)
    field = make_scattered_field(points, points, spatial_interpolation="nearest")
    x = np.concatenate([points[:1], [[np.nan, 0, 0]]])
    velocity, _ = ask(field, x)
    np.testing.assert_array_equal(velocity[0], points[0])


def test_points_that_span_nothing_are_refused():
    line = np.linspace(0, 1, 9)[:, None] * [[1.0, 0.0, 0.0]]
    with pytest.raises(ValueError, match="lie on a line"):
        make_scattered_field(line, line)
    slanted = np.linspace(0, 1, 9)[:, None] * [[1.0, 1.0, 1.0]]
    with pytest.raises(ValueError, match="span no area or volume"):
        make_scattered_field(slanted, slanted)
    with pytest.raises(ValueError, match="choose one of linear, nearest"):
        make_scattered_field(line, line, spatial_interpolation="cubic")


def test_cells_fill_the_hull():
    points = cloud().astype(float)
    cells = triangulate(points, np.float64)
    edges = points[cells[:, 1:]] - points[cells[:, :1]]
    volume = np.abs(np.linalg.det(edges)).sum() / 6
    assert volume == pytest.approx(ConvexHull(points).volume, rel=1e-6)
