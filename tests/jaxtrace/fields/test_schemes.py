"""Which scheme nodes get, and that values go in and come out unchanged."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.clock import make_clock
from jaxtrace.fields.schemes import (
    AmongPoints,
    Elements,
    OnElements,
    OnGrid,
    choose_scheme,
)
from trace_meshes import SIX, lattice, plane_lattice, quadratic, split
from trace_series import cloud, grid_points, growing, linear, places, tetra_mesh

CLOCK = make_clock([0.0, 0.5, 2, 3], "linear", "constant")


def choose(points, cells=None, choice="auto", outside=None):
    elements = None if cells is None else Elements(np.asarray(cells))
    return choose_scheme(points, elements, choice, outside)


def test_each_kind_of_node_list_gets_the_best_it_allows():
    assert choose(grid_points()).name == "trilinear"
    assert choose(*tetra_mesh()).name == "tetrahedra"
    assert choose(cloud()).name == "delaunay"
    assert choose(cloud(), choice="nearest").name == "nearest"
    points, cells = lattice((3, 3, 3))
    assert choose(points, cells).name == "trilinear"
    assert choose(points, cells, "elements").name == "hexahedra"
    assert choose(*plane_lattice((3, 3)), "elements").name == "quads"


def test_a_grid_with_cells_missing_keeps_its_hole():
    points, cells = lattice((4, 4, 4))
    holed = np.delete(cells, 13, 0)
    assert isinstance(choose(points, cells), OnGrid)
    assert isinstance(choose(points, holed), OnElements)


def test_quadratic_cells_on_a_grid_stay_quadratic():
    points, cells = lattice((3, 3, 3))
    assert choose(*quadratic(points, split(cells, SIX))).name == "quadratic tetras"


def test_mixed_cells_are_named():
    points, cells = lattice((3, 2, 2))
    tets = split(cells[:1], SIX)
    flat = np.concatenate([tets.ravel(), cells[1]])
    offsets = np.append(4 * np.arange(7), 32)
    types = np.array([10] * 6 + [12])
    scheme = choose_scheme(points, Elements(flat, types, offsets), "elements", None)
    assert scheme.name == "tetrahedra + hexahedra"


CASES = {
    "grid": (grid_points(), None, "auto"),
    "ordered": (grid_points(shuffle=False), None, "auto"),
    "mesh": (*tetra_mesh(), "auto"),
    "cloud": (cloud(), None, "auto"),
    "nearest": (cloud(), None, "nearest"),
}


@pytest.mark.parametrize("device", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_values_come_back_in_the_order_of_the_nodes(name, device):
    points, cells, choice = CASES[name]
    scheme = choose(points, cells, choice)
    values = growing(points).astype(np.float32)
    given = jnp.asarray(values) if device else values
    field = scheme.build(given, CLOCK)
    assert np.array_equal(scheme.unpack(field.values), values)
    other = scheme.replace(field, 2 * given)
    assert np.array_equal(scheme.unpack(other.values), 2 * values)
    x = places()
    if choice == "auto":
        found = other.sample_at_positions(x, 1.25)
        assert np.allclose(found, 2 * 2.25 * linear(x), atol=1e-4)


def test_a_repeating_grid_gives_back_each_node_once():
    points = grid_points()
    scheme = choose(points, outside="periodic")
    values = growing(points).astype(np.float32)
    field = scheme.build(values, CLOCK)
    assert np.array_equal(scheme.unpack(field.values), values)


def test_new_values_keep_the_mesh_unless_nodes_coincide():
    tree = lambda field: field.locator.tree.boxes
    points, cells = tetra_mesh()
    values = growing(points)
    scheme = choose(points, cells)
    field = scheme.build(values, CLOCK)
    assert tree(scheme.replace(field, 3 * values)) is tree(field)
    doubled = np.concatenate([points, points[:1]])
    values = growing(doubled)
    scheme = choose(doubled, cells)
    field = scheme.build(values, CLOCK)
    assert tree(scheme.replace(field, values)) is tree(field)
    assert tree(scheme.replace(field, 3 * values)) is not tree(field)


def test_what_lies_outside_has_the_same_names_for_all():
    points, cells = tetra_mesh()
    assert choose(points, cells, outside="clamp").outside == "nearest_element"
    assert choose(grid_points(), outside="nearest_element").outside == "clamp"
    assert choose(points, cells, outside="nan").outside == "nan"
    with pytest.raises(ValueError, match="outside 'periodic': for these nodes choose"):
        choose(points, cells, outside="periodic")
    with pytest.raises(ValueError, match="choose one of nearest_element"):
        choose(cloud(), choice="nearest", outside="zero")


def test_wrong_choices_are_refused():
    with pytest.raises(ValueError, match="choose one of auto, elements, nearest"):
        choose(cloud(), choice="best")
    with pytest.raises(ValueError, match="needs their connectivity"):
        choose(cloud(), choice="elements")
    assert isinstance(choose(cloud()), AmongPoints)
