"""Which scheme nodes get, and that values go in and come out unchanged."""

import pickle

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxtrace.fields.clock import make_clock
from jaxtrace.fields.interpolation import choose_scheme, fills, find_tensor_grid
from jaxtrace.fields.time_series import TimeSeriesField
from jaxtrace.fields.topology import Elements
from trace_meshes import SIX, TWO, lattice, plane_lattice, quadratic, split
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
    assert choose(points, cells).name == "trilinear"
    assert choose(points, holed).name == "hexahedra"
    # Quadratic cells say something else between the nodes of a grid.
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


@pytest.mark.parametrize("name", CASES)
def test_values_come_back_in_the_order_of_the_nodes(name):
    points, cells, choice = CASES[name]
    scheme = choose(points, cells, choice)
    values = growing(points).astype(np.float32)
    for array in (values, jnp.asarray(values)):
        field = scheme.build(array, CLOCK)
        assert np.array_equal(scheme.unpack(field.values), values)
        other = scheme.replace(field, 2 * array)
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


def test_new_values_keep_the_mesh():
    points, cells = tetra_mesh()
    values = growing(points)
    scheme = choose(points, cells)
    field = scheme.build(values, CLOCK)
    other = scheme.replace(field, 3 * values)
    assert other.locator.tree.boxes is field.locator.tree.boxes


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


THREE = [[0, 1, 2, 3, 6], [0, 4, 5, 1, 6], [0, 3, 7, 4, 6]]  # pyramids of a box


def points_of(axes):
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)


@st.composite
def grids(draw, least=1):
    """Axes of any size, scale, offset and stretching, and a random generator."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    scale = 10.0 ** draw(st.integers(-9, 9))
    axes = []
    for _ in range(3):
        count = draw(st.integers(least, 6))
        offset = draw(st.sampled_from([0.0, -1.0, 5.0]))
        axes.append(scale * (offset + np.cumsum(rng.uniform(0.05, 1, count))))
    return axes, rng


@given(grids(), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=40)
def test_any_grid_is_found_in_any_order(grid, dtype):
    axes, rng = grid
    axes = [axis.astype(dtype) for axis in axes]
    points = points_of(axes)
    shuffled = points[rng.permutation(len(points))]
    found = find_tensor_grid(shuffled)
    assert found is not None
    assert found.order is not None
    assert found.shape == tuple(axis.size for axis in axes)
    for axis, known in zip(found.axes, axes, strict=True):
        assert np.array_equal(axis, known.astype(np.float64))
    assert np.array_equal(shuffled[found.order], points)
    assert np.array_equal(found.order[found.ranks], np.arange(len(points)))
    assert found.sorted == bool(np.array_equal(found.order, np.arange(len(points))))


@given(grids(least=2))
@settings(max_examples=40)
def test_rounding_of_each_coordinate_does_not_hide_a_grid(grid):
    axes, rng = grid
    points = points_of(axes)
    noise = rng.uniform(-1, 1, points.shape) * np.finfo(np.float32).eps
    noisy = (points * (1 + noise))[rng.permutation(len(points))]
    for listed in (noisy, noisy.astype(np.float32)):
        found = find_tensor_grid(listed)
        assert found is not None
        assert found.shape == tuple(axis.size for axis in axes)


@given(grids(least=2), st.sampled_from(["missing", "extra", "double", "jitter"]))
@settings(max_examples=40)
def test_what_is_not_quite_a_grid_is_none(grid, fault):
    axes, rng = grid
    points = points_of(axes)
    spacing = min(np.diff(axis).min() for axis in axes)
    at = rng.integers(len(points))
    spoilt = {
        "missing": np.delete(points, at, 0),
        "extra": np.concatenate([points, points[at : at + 1] + spacing / 3]),
        "double": np.concatenate([points, points[at : at + 1]]),
        "jitter": points + rng.uniform(-0.01, 0.01, points.shape) * spacing,
    }[fault]
    assert find_tensor_grid(spoilt[rng.permutation(len(spoilt))]) is None


def test_a_node_that_stands_in_for_another_is_noticed():
    points = points_of([np.arange(3.0)] * 3)
    points[4] = points[5]  # as many points as nodes, all coordinates known
    assert find_tensor_grid(points) is None


X, Y = np.linspace(0, 1, 4), np.array([0.0, 0.1, 5])


@pytest.mark.parametrize(
    "axes",
    [
        [X, Y, [0.5]],
        [[2.0], X, Y],
        [X, [0.0], [0.0]],
        [[1.0], [2.0], [3.0]],
        [1e6 + 1e-3 * np.arange(5), np.arange(4.0), np.arange(3.0)],  # far from 0
        [np.arange(4.0), np.arange(4.0), 1e-9 * np.arange(3)],  # thin layers
    ],
)
def test_planes_lines_points_and_fine_layers_are_grids(axes):
    found = find_tensor_grid(points_of(axes))
    assert found is not None
    assert found.shape == tuple(len(axis) for axis in axes)


def test_a_plane_may_be_flat_to_the_rounding_of_its_extent():
    points = points_of([np.linspace(0, 1, 5), np.linspace(0, 1, 4), np.zeros(1)])
    points[:, 2] = np.random.default_rng(0).uniform(-1e-8, 1e-8, 20)
    found = find_tensor_grid(points)
    assert found is not None
    assert found.shape == (5, 4, 1)


def test_scattered_points_and_no_points_are_none():
    rng = np.random.default_rng(0)
    assert find_tensor_grid(rng.uniform(0, 1, (1000, 3))) is None
    assert find_tensor_grid(np.zeros((0, 3))) is None
    assert find_tensor_grid(np.full((1, 3), np.nan)) is None


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [("hexahedron", None), ("tetra", SIX), ("wedge", TWO), ("pyramid", THREE)],
)
def test_cells_that_cover_a_grid_fill_it(kind, pattern):
    points, cells = lattice((4, 3, 3), ratio=3.0)
    rows = cells if pattern is None else split(cells, pattern)
    found = find_tensor_grid(points)
    assert found is not None
    assert fills(found, {kind: rows})
    assert not fills(found, {kind: rows[1:]})


def test_plane_cells_fill_a_plane_of_any_direction():
    points, quads = plane_lattice((5, 4))
    triangles = split(quads, [[0, 1, 2], [0, 2, 3]])
    for order in ([0, 1, 2], [2, 0, 1]):
        found = find_tensor_grid(points[:, order])
        assert found is not None
        assert fills(found, {"quad": quads})
        assert fills(found, {"triangle": triangles[:8], "quad": quads[4:]})
        assert not fills(found, {"triangle": triangles[:-1]})


def test_cells_over_several_boxes_or_of_higher_order_do_not_count():
    points, cells = lattice((3, 2, 2))
    found = find_tensor_grid(points)
    assert found is not None
    wide = np.concatenate([cells[:1, [0, 3, 7, 4]], cells[1:, [1, 2, 6, 5]]], 1)
    assert not fills(found, {"hexahedron": wide[:, [0, 4, 5, 1, 3, 7, 6, 2]]})
    assert not fills(found, {"quadratic_tetra": np.zeros((1, 10), int)})
    assert not fills(found, {"triangle": cells[:, :3]})


@pytest.mark.parametrize("cells", [None, np.array([[0, 1, 2, 3]])])
def test_a_field_survives_pickling(cells: np.ndarray | None):
    points = np.random.default_rng(0).random((6, 3)).astype(np.float32)
    field = TimeSeriesField(points[None], [0.0], points, connectivity=cells)
    back = pickle.loads(pickle.dumps(field))
    assert back.interpolation_scheme == field.interpolation_scheme
    np.testing.assert_array_equal(back.data, field.data)
