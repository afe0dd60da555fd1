"""Mesh fields against shape functions written naively, at places inside and out."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.cells import VTK_CODES
from jaxtrace.fields.mesh import make_mesh_field
from trace_meshes import (
    SIX,
    TWO,
    flat,
    lattice,
    mixed,
    places,
    plane_lattice,
    pyramids,
    quadratic,
    split,
    warp,
)
from trace_series import TRACED, answer, ask, linear

COUNT = 600  # places asked for at a time: one shape, one program


def mesh(name, size=(4, 5, 4)):
    """Points, rows of cells and VTK codes of a named mesh."""
    points, cells = lattice(size, (2.0, 1.0, 0.5))
    step = np.array([2.0, 1.0, 0.5]) / (np.array(size) - 1)
    moved = warp(points, 0.2 * step)
    if name == "tetra":
        return moved, split(cells, SIX), 10
    if name == "hexahedron":
        return moved, cells, 12
    if name == "straight":
        return points, cells, 12
    if name == "wedge":
        return moved, split(cells, TWO), 13
    if name == "pyramid":
        return *pyramids(moved, cells), 14
    if name == "quadratic_tetra":
        return *quadratic(points, split(cells, SIX)), 24
    flat_points, quads = plane_lattice(size[:2], (2.0, 1.0))
    shift = np.where([True, True, False], 0.2 * step, 0)
    flat_points = warp(flat_points, shift)
    if name == "quad":
        return flat_points, quads, 9
    triangles = split(quads, [[0, 1, 2], [0, 2, 3]])
    if name == "triangle":
        return flat_points, triangles, 5
    return *quadratic(flat_points, triangles), 22


# Much like others, or in a mixture below.
ALONE = ["straight", "wedge", "pyramid", "quadratic_triangle", "triangle", "quad"]
NAMES = ["tetra", "hexahedron", "quadratic_tetra"]
NAMES += [pytest.param(name, marks=pytest.mark.slow) for name in ALONE]
# What takes Newton's method; tetrahedra go the same way without it.
SEARCHED = ["hexahedron", pytest.param("tetra", marks=pytest.mark.slow)]
KIND = {v: k for k, v in VTK_CODES.items()}


@pytest.mark.parametrize("name", NAMES)
def test_inside_every_cell_the_shape_functions_answer(name):
    points, cells, code = mesh(name)
    values = np.random.default_rng(0).standard_normal(points.shape)
    field = make_mesh_field(points, cells, values, kind=KIND[code], dtype=np.float32)
    x, expected, _ = places(points, cells, [code] * len(cells), values, COUNT)
    velocity, cell_hint = ask(field, x)
    assert np.all(np.asarray(cell_hint) >= 0)
    np.testing.assert_allclose(velocity, expected, atol=2e-4)
    field = eqx.tree_at(
        lambda f: f.values, field, jnp.asarray(linear(points)[None], np.float32)
    )
    np.testing.assert_allclose(ask(field, x)[0], linear(x), rtol=0, atol=3e-6)


def mixed_plane():
    """Quads, then triangles, the last two of them quadratic."""
    points, quads, _ = mesh("quad")
    triangles = split(quads[6:], [[0, 1, 2], [0, 2, 3]])
    points, last = quadratic(points, triangles[-2:])
    rows = [*quads[:6], *triangles[:-2], *last]
    return points, rows, [9] * 6 + [5] * (len(triangles) - 2) + [22] * 2


@pytest.mark.parametrize(("plane", "walls"), [(False, 2 * 9 + 2 * 9 + 72), (True, 14)])
def test_cells_of_all_kinds_together(plane, walls):
    points, rows, codes = mixed_plane() if plane else mixed()
    points = points if plane else warp(points, 0.03)
    connectivity, offsets = flat(rows)
    values = np.random.default_rng(0).standard_normal(points.shape)
    field = make_mesh_field(
        points, connectivity, values, offsets=offsets, types=codes, dtype=np.float32
    )
    assert field.locator.records.mixed
    assert len(field.locator.walls.cells) == walls
    x, expected, _ = places(points, rows, codes, values, 150)
    velocity, cell_hint = ask(field, x)
    assert np.all(np.asarray(cell_hint) >= 0)
    np.testing.assert_allclose(velocity, expected, atol=2e-4)


def tetra_field(values=linear, **options):
    points, cells, _ = mesh("tetra")
    options.setdefault("dtype", np.float32)
    if callable(values):
        values = values(points)
    return make_mesh_field(points, cells, values, kind="tetra", **options)


def around(count=600, seed=0):
    """Places in and around the box that the meshes fill."""
    rng = np.random.default_rng(seed)
    x = rng.uniform([-1, -0.5, -0.5], [3, 1.5, 1], (count, 3)).astype(np.float32)
    inside = np.all((x >= 0) & (x <= [2, 1, 0.5]), axis=1)
    return x, inside


BEYOND = {
    "nearest_element": lambda x, inside: linear(np.clip(x, 0, [2, 1, 0.5])),
    "zero": lambda x, inside: np.where(inside[:, None], linear(x), 0.0),
    "nan": lambda x, inside: np.where(inside[:, None], linear(x), np.nan),
    "extrapolate": lambda x, inside: linear(x),
}


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("hexahedron", "nearest_element"),
        ("tetra", "nearest_element"),
        ("tetra", "nan"),
        ("tetra", "extrapolate"),
        pytest.param("tetra", "zero", marks=pytest.mark.slow),  # NaN, but for the value
    ],
)
def test_outside_the_rule_answers(name, rule):
    points, cells, _ = mesh(name)
    options = {"kind": name, "outside": rule, "dtype": np.float32}
    field = make_mesh_field(points, cells, linear(points), **options)
    x, inside = around()
    velocity, cell_hint = ask(field, x)
    np.testing.assert_array_equal(np.asarray(cell_hint) >= 0, inside)
    np.testing.assert_allclose(velocity, BEYOND[rule](x, inside), atol=3e-5)


def test_remembering_changes_nothing_but_the_work():
    points, _, _ = mesh("tetra")
    values = np.random.default_rng(3).standard_normal(points.shape)
    field = tetra_field(values)
    x, _ = around()
    fresh, home = ask(field, x)
    stale, cell_hint = ask(field, x, cell_hint=home[::-1])
    inside = np.asarray(home) >= 0
    np.testing.assert_array_equal(np.asarray(cell_hint) >= 0, inside)
    np.testing.assert_allclose(stale[inside], fresh[inside], atol=1e-4)
    # Outside, two points of the mesh may be equally close to rounding.
    np.testing.assert_allclose(stale, fresh, atol=2e-3)


def test_a_particle_that_is_no_number_harms_no_other():
    x, _ = around()
    x[5], x[6, 1], x[7] = np.nan, np.inf, 1e30
    velocity, cell_hint = ask(tetra_field(), x)
    assert np.all(np.asarray(cell_hint)[5:8] < 0)
    fine = np.delete(np.arange(len(x)), [5, 6, 7])
    expected = linear(np.clip(x[fine], 0, [2, 1, 0.5]))
    np.testing.assert_allclose(velocity[fine], expected, atol=3e-5)


def test_no_particles_are_no_trouble():
    field, nobody = tetra_field(), jax.ShapeDtypeStruct((0, 3), np.float32)
    instant = jax.tree.map(jnp.asarray, field.instant(np.float64(0)))
    look = lambda x: field.velocity(x, instant, field.start(x))
    velocity, cell_hint = jax.eval_shape(look, nobody)
    assert velocity.shape == (0, 3)
    assert cell_hint.shape == (0,)


def record(points):
    """Four slices of a field that is linear in space and time."""
    return np.stack([linear(points) * (1 + t) for t in (0.0, 1.0, 2.0, 4.0)])


def test_slices_are_blended_in_time():
    field = tetra_field(record, times=[0.0, 1.0, 2.0, 4.0])
    x = np.clip(around()[0], 0, [2, 1, 0.5])
    np.testing.assert_allclose(ask(field, x, 2.5)[0], 3.5 * linear(x), atol=3e-5)
    np.testing.assert_allclose(ask(field, x, 9.0)[0], 5 * linear(x), atol=3e-5)
    times = np.random.default_rng(0).uniform(0, 4, len(x))  # each particle's own
    expected = linear(x) * (1 + times[:, None])
    np.testing.assert_allclose(ask(field, x, times)[0], expected, atol=5e-5)
    assert field.get_time_bounds() == (0.0, 4.0)


def test_blending_beforehand_gives_the_same():
    field = tetra_field(record, times=[0.0, 1.0, 2.0, 4.0])
    x, _ = around()
    instant = jax.tree.map(jnp.asarray, field.instant(np.float64(2.5)))
    still: Any
    still, instant = field.at_instant(instant, len(x))
    assert still.values.shape[0] == 1
    velocity, _ = answer(still, jnp.asarray(x), instant, still.start(jnp.asarray(x)))
    np.testing.assert_allclose(velocity, ask(field, x, 2.5)[0], atol=2e-5)
    assert field.at_instant(instant, 3)[0] is field


@pytest.mark.parametrize("name", SEARCHED)
def test_gradients_are_those_of_the_interpolant(name):
    points, cells, code = mesh(name)
    values = np.random.default_rng(0).standard_normal(points.shape)
    field = make_mesh_field(points, cells, values, kind=KIND[code], dtype=np.float32)
    x = jnp.asarray(around()[0])
    rng = np.random.default_rng(1)
    towards = jnp.asarray(rng.standard_normal(x.shape), np.float32)
    push = jnp.asarray(rng.standard_normal(x.shape), np.float32)

    @jax.jit
    def slopes(field, x):
        instant = field.instant(jnp.float32(0))
        velocity = lambda x: field.velocity(x, instant, field.start(x))[0]
        _, forward = jax.linearize(velocity, x)
        (back,) = jax.linear_transpose(forward, x)(push)
        return forward(towards), back

    forward, back = slopes(field, x)
    step = 1e-3
    up, down = (ask(field, x + s * step * towards)[0] for s in (1, -1))
    off = np.abs((up - down) / (2 * step) - forward).max(1)
    # Where a step leaves the cell, the interpolant has a kink.
    assert np.mean(off < 0.1) > 0.95
    np.testing.assert_allclose(
        (back * towards).sum(1), (forward * push).sum(1), rtol=1e-3, atol=1e-2
    )


@pytest.mark.slow  # a weight times a value; the weights are tested above
def test_gradients_reach_the_values():
    field = tetra_field()
    x = jnp.asarray([[1.0, 0.4, 0.2], [0.2, 0.9, 0.1]], np.float32)
    instant = jax.tree.map(jnp.asarray, field.instant(np.float64(0)))

    def total(values):
        bound = eqx.tree_at(lambda f: f.values, field, values)
        return bound.velocity(x, instant, bound.start(x))[0][:, 0].sum()

    shares = jax.jit(jax.grad(total))(field.values)
    assert float(shares[0, :, 0].sum()) == pytest.approx(2, abs=1e-5)
    np.testing.assert_allclose(shares[0, :, 1:], 0)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_scale_and_distance_from_zero_do_not_matter(scale):
    points, cells, code = mesh("tetra")
    shift = 100 * scale
    points = np.float32(points * scale + shift).astype(float)
    slope = lambda x: (x - shift) / scale
    field = make_mesh_field(
        points, cells, slope(points), kind="tetra", dtype=np.float32
    )
    x, _, _ = places(points, cells, [code] * len(cells), points, COUNT)
    x = np.float32(x)
    velocity, cell_hint = ask(field, x)
    assert np.all(np.asarray(cell_hint) >= 0)
    np.testing.assert_allclose(velocity, slope(x.astype(float)), atol=2e-6)


@pytest.mark.parametrize("name", SEARCHED)
def test_float64_is_exact_to_its_own_rounding(name):
    with jax.enable_x64():
        points, cells, code = mesh(name)
        values = linear(points)
        field = make_mesh_field(points, cells, values, kind=KIND[code])
        x, _, _ = places(points, cells, [code] * len(cells), values, COUNT)
        velocity, cell_hint = ask(field, x, dtype=np.float64)
        assert velocity.dtype == np.float64
        assert np.all(np.asarray(cell_hint) >= 0)
        np.testing.assert_allclose(velocity, linear(x), rtol=0, atol=1e-13)


@pytest.mark.slow  # a program of its own; grids are tested with the tracker
def test_wide_positions_over_narrow_tables_keep_their_dtype():
    with jax.enable_x64():
        x, inside = around()
        velocity, cell_hint = ask(tetra_field(), x, dtype=np.float64)
        assert velocity.dtype == np.float64
        np.testing.assert_array_equal(np.asarray(cell_hint) >= 0, inside)


def test_planes_ignore_the_third_coordinate():
    points, cells, _ = mesh("triangle")
    x = np.array([[0.3, 0.4, 7.0], [1.7, 0.9, -2.0]])
    turned = make_mesh_field(
        points[:, [0, 2, 1]], cells, linear(points), dtype=np.float32
    )
    found, _ = ask(turned, x[:, [0, 2, 1]])
    np.testing.assert_allclose(found, linear(x * [1, 1, 0]), rtol=1e-5, atol=1e-6)


def test_bounds_are_those_of_the_nodes_in_use():
    points, cells, _ = mesh("tetra")
    points = np.concatenate([points, [[99.0, 99.0, 99.0]]])
    field = make_mesh_field(points, cells, linear(points), dtype=np.float32)
    low, high = field.get_spatial_bounds()
    np.testing.assert_allclose(low, 0)
    np.testing.assert_allclose(high, [2, 1, 0.5])
    assert field.get_time_bounds() == (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outside": "somewhere"}, "choose one of nearest_element"),
        ({"values": np.zeros((5, 3))}, "values of 5 nodes"),
        ({"values": np.zeros(5)}, "values of shape"),
        ({"times": [0.0, 1.0]}, "1 slices and 2 times"),
        ({"dtype": np.float64}, "jax_enable_x64"),
        ({"values": record(mesh("tetra")[0])}, "4 slices and no times"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    points, cells, _ = mesh("tetra")
    given = {"values": linear(points), "kind": "tetra"} | change
    with pytest.raises(ValueError, match=message):
        make_mesh_field(points, cells, **given)


def test_one_program_serves_all_fields_and_a_constant_one_stays_so_to_the_bit():
    x, _ = around()
    ask(tetra_field(), x)
    count = len(TRACED)
    velocity, _ = ask(tetra_field(lambda points: np.full(points.shape, 0.1)), x)
    assert len(TRACED) == count
    assert np.all(velocity == np.float32(0.1))
