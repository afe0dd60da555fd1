"""Unstructured fields: given values, or values at each call."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.analytic import as_field
from jaxtrace.fields.unstructured import UnstructuredField, UnstructuredMesh
from trace_meshes import lattice
from trace_series import TIMES, cloud, growing, linear, places, tetra_mesh

POINTS, TETS = tetra_mesh()
MESH = UnstructuredMesh(POINTS, TETS, "tetra")


@pytest.mark.slow  # compiles a program of its own
def test_nodal_values_are_given_at_each_call():
    field = UnstructuredField(MESH)
    x = places()
    for scale in (1.0, -2.0):
        found = field.sample(x, scale * linear(POINTS))
        assert np.allclose(found, scale * linear(x), atol=1e-5)
    on_device = field.sample(x, jnp.asarray(linear(POINTS), np.float32))
    assert np.allclose(on_device, linear(x), atol=1e-5)
    flat_values = field.sample(x, linear(POINTS)[:, :2])
    assert np.allclose(flat_values[:, :2], linear(x)[:, :2], atol=1e-5)


@pytest.mark.slow  # compiles a program of its own
def test_nodal_values_have_gradients():
    field = UnstructuredField(MESH)
    x = jnp.asarray(places(4), np.float32)
    total = lambda nodal: field.sample(x, nodal)[:, 0].sum()
    weights = jax.grad(total)(jnp.zeros((48, 3)))
    assert np.isclose(weights[:, 0].sum(), 4, atol=1e-4)
    assert np.all(np.asarray(weights[:, 1:]) == 0)


@pytest.mark.slow  # compiles a program of its own
def test_a_field_without_values_is_no_field_of_its_own():
    with pytest.raises(ValueError, match="has no values"):
        UnstructuredField(MESH).sample_at_positions(places(), 0.0)
    with pytest.raises(ValueError, match="nodal values of shape"):
        UnstructuredField(MESH).sample(places(), jnp.zeros((47, 3)))
    with pytest.raises(ValueError, match="values of 47 nodes for 48"):
        UnstructuredField(MESH).sample(places(), np.zeros((47, 3)))


@pytest.mark.slow  # compiles a program of its own
def test_values_make_a_field_that_trackers_take():
    steady = UnstructuredField(MESH, linear(POINTS))
    x = places()
    assert np.allclose(steady.sample(x), linear(x), atol=1e-5)
    assert np.allclose(steady(x, 7.0), linear(x), atol=1e-5)
    moving = UnstructuredField(MESH, growing(POINTS), TIMES)
    found = as_field(moving).sample_at_positions(x, 1.7)
    assert np.allclose(found, 2.7 * linear(x), atol=3e-5)
    assert moving.get_time_bounds() == (0.0, 3.0)
    other = moving.sample(x, linear(POINTS))
    assert np.allclose(other, linear(x), atol=1e-5)


@pytest.mark.slow  # compiles a program of its own
def test_nodes_alone_are_enough():
    points = cloud()
    field = UnstructuredField(UnstructuredMesh(points), linear(points))
    assert np.allclose(field.sample(places()), linear(places()), atol=1e-4)
    nearest = UnstructuredField(
        UnstructuredMesh(points), linear(points), spatial_interpolation="nearest"
    )
    assert np.allclose(nearest.sample(points), linear(points), atol=1e-5)


@pytest.mark.parametrize(
    ("elements", "options", "message"),
    [
        ([[0, 1, 2, 3, 4]], {}, "has 5 nodes, but a tetra"),
        ([[0, 1, 2, 3]], {"order": 3}, "'order-3 tetra': choose one of"),
        ([[0, 1, 2, 3]], {"etype": "blob"}, "'blob': choose one of"),
        ([0, 1, 2, 3], {"etype": None}, "needs the offsets and types"),
    ],
)
def test_wrong_meshes_are_refused(elements, options, message):
    points, _ = lattice((2, 2, 2))
    with pytest.raises(ValueError, match=message):
        UnstructuredField(
            UnstructuredMesh(points, elements, **{"etype": "tetra", **options})
        )


@pytest.mark.slow  # compiles a program of its own
def test_mixed_elements_come_with_their_types():
    points, cells = lattice((2, 2, 2))
    mesh = UnstructuredMesh(points, cells.ravel(), cell_types=[12], cell_offsets=[0, 8])
    assert UnstructuredField(mesh).contains([[0.5, 0.5, 0.5]]).all()
