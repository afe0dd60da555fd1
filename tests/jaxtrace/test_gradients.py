"""Gradients of whole runs: against finite differences, and what they cost in memory."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtrace as jt
from jaxtrace import tracking
from trace_meshes import SIX, flat, lattice, mixed, split, warp

SIZE = np.array([2.0, 1.0, 1.0])
SLICES = np.linspace(0, 1, 3)
FRAMES = np.linspace(0, 1, 6)


def waves(points):
    x, y, z = points.T
    rows = [
        [1 + np.sin(3 * y + t), np.cos(2 * x * z - t), np.sin(x + y)] for t in SLICES
    ]
    return 0.3 * np.stack(rows).swapaxes(1, 2)


def make_field(kind):
    points, cells = lattice((5, 4, 4), SIZE)
    if kind == "grid":
        return jt.TimeSeriesField(waves(points), SLICES, points)
    if kind == "mixed":
        points, rows, codes = mixed()
        points = warp(points, 0.03) * SIZE
    else:
        code, pattern = {
            "tetra": (10, SIX),
            "hexahedron": (12, [range(8)]),
        }[kind]
        points = warp(points, 0.06)
        rows = split(cells, [list(row) for row in pattern])
        codes = np.full(len(rows), code)
    connectivity, offsets = flat(rows)
    return jt.TimeSeriesField(
        waves(points),
        SLICES,
        points,
        connectivity=connectivity,
        cell_types=codes,
        cell_offsets=offsets,
        spatial_interpolation="elements",
    )


def boundary_of(name):
    if name == "walls":
        return tracking.wall_boundary("reflect")
    return jt.reflective_boundary([[0, 0, 0], SIZE.tolist()])


# The gradient of a whole run takes half a minute or more to compile; test_simulate has
# those of shorter runs on grids, and test_mesh those of single look-ups.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "limit"),
    [("grid", "box"), ("tetra", "walls"), ("hexahedron", "box"), ("mixed", "box")],
)
def test_seeds_and_values(double, kind, limit):
    """Along random directions, in places away from the kinks of the interpolant."""
    field, boundary = make_field(kind).frozen, boundary_of(limit)
    rng = np.random.default_rng(4)
    seeds = jnp.asarray(rng.uniform(0.1, 0.9, (6, 3)) * SIZE)
    weights = jnp.asarray(rng.normal(size=(6, 3)))

    def reached(seeds, values):
        changed = eqx.tree_at(lambda f: f.values, field, values)
        paths = jt.simulate(changed, seeds, FRAMES, boundary=boundary)
        return jnp.sum(paths.positions[-1] * weights)

    known: Any = field
    given = (seeds, jnp.asarray(known.values))
    way = tuple(jnp.asarray(rng.normal(size=a.shape)) for a in given)
    go, slopes = jax.jit(reached), jax.jit(jax.grad(reached, (0, 1)))(*given)
    for index in (0, 1):
        ends = []
        for sign in (1, -1):
            shifted = list(given)
            shifted[index] = given[index] + sign * 1e-7 * way[index]
            ends.append(float(go(*shifted)))
        found = float(jnp.sum(slopes[index] * way[index]))
        assert found == pytest.approx((ends[0] - ends[1]) / 2e-7, rel=1e-6)
        assert abs(found) > 0.1


def peak(function, *arguments):
    """The bytes a compiled program needs, with what it takes and gives."""
    found = jax.jit(function).lower(*arguments).compile().memory_analysis()
    assert found is not None
    return (
        found.temp_size_in_bytes
        + found.argument_size_in_bytes
        + found.output_size_in_bytes
        - found.alias_size_in_bytes
    )


@pytest.mark.slow
@pytest.mark.parametrize("what", ["seeds", "values"])
def test_a_long_gradient_takes_at_most_twice_the_memory_of_its_run(what):
    rng = np.random.default_rng(0)
    axes = [np.linspace(0, 2, 32), np.linspace(0, 1, 32), np.linspace(0, 1, 20)]
    values = rng.normal(scale=0.1, size=(40, 32, 32, 20, 3)).astype(np.float32)
    slices, frames = np.linspace(0, 4, 40), np.linspace(0, 4, 241)
    x, y, z = axes
    field = jt.StructuredGridSampler(values, x, y, z, times=slices).frozen
    box = jt.reflective_boundary([[0, 0, 0], [2, 1, 1]])
    seeds = jnp.asarray(rng.random((7500, 3)), np.float32)

    def run(seeds, values):
        changed = eqx.tree_at(lambda f: f.values, field, values)
        return jt.simulate(changed, seeds, frames, boundary=box).positions

    def reached(seeds, values):
        return jnp.sum(run(seeds, values)[-1])

    given = seeds, jnp.asarray(field.values)
    gradient = jax.value_and_grad(reached, ["seeds", "values"].index(what))
    assert peak(gradient, *given) <= 2 * peak(run, *given)
