"""Curvilinear grids on the sphere against closed forms, over seam, fold and pole."""

import jax
import numpy as np
import pytest

from jaxtrace.fields.curvilinear import CurvilinearGrid, make_curvilinear_field
from jaxtrace.fields.quads import close_columns, grid_angles, make_quads, unit_vectors
from jaxtrace.sphere import EARTH_RADIUS, great_circle
from jaxtrace.tracking.time_loop import simulate
from trace_ocean import solid, tilted

DAY = 86400.0


def on_nodes(lon, lat, speed=1.0, tilt=1.0):
    u, v = solid(lon, lat, speed, tilt)
    values = np.stack([u, v, np.zeros_like(u)], -1)[:, :, None]
    grid = CurvilinearGrid(lon, lat, np.zeros(1), EARTH_RADIUS)
    return make_curvilinear_field(grid, values)


@jax.jit
def look(field, points):
    """Return velocities and cells of points."""
    return field.velocity(points, field.instant(0.0), field.start(points))


def test_solid_rotation_is_second_order_on_a_deformed_grid():
    draw = np.random.default_rng(0)
    lon, lat = draw.uniform(-180, 180, 400), np.degrees(np.arcsin(draw.uniform(-1, 1)))
    points = np.stack([lon, np.full(400, lat), np.zeros(400)], 1)
    points[0, 1] = 90.0
    errors = []
    with jax.enable_x64(True):
        for rows in (30, 60):
            field = on_nodes(*tilted(rows))
            velocity, cells = look(field, points)
            inside = np.asarray(cells) >= 0
            found = np.asarray(velocity)[inside, :2]
            exact = np.stack(solid(*points[inside, :2].T), 1)
            errors.append(np.abs(found - exact).max())
            assert inside.mean() > 0.98
    assert errors[1] < 1e-3
    assert 3.2 < errors[0] / errors[1] < 5


def test_particles_pass_the_seam_and_the_poles():
    with jax.enable_x64(True):
        speed = 2 * np.pi * EARTH_RADIUS / (12 * DAY)
        field = on_nodes(*tilted(45), speed, np.pi / 2)
        seeds = np.array([[170.0, 30, 0], [-100, -60, 0], [45, 88, 0], [0, 90, 0]])
        run = jax.jit(lambda s: simulate(field, s, [0.0, 12 * DAY], substeps=96))
        ends = np.asarray(run(seeds).positions)[-1]
    # One circuit of 40,030 km: a 4-degree grid is second order of 0.1 % off.
    assert great_circle(ends, seeds).max() < 60e3


def test_folds_and_repeated_columns_are_joined():
    # A tripolar cap: the last row runs to and fro along one line.
    columns, rows = 16, 5
    half = np.linspace(-1, 1, columns // 2 + 1)
    x = np.concatenate([half, half[::-1][1:]]) * 0.2
    front = np.concatenate([np.ones(columns // 2), -np.ones(columns // 2 + 1)])
    front[[0, columns // 2, -1]] = 0
    y = np.linspace(-0.3, 0, rows)[:, None] * front
    points = np.stack([np.broadcast_to(x, y.shape), y, np.ones_like(y)], -1)
    points /= np.linalg.norm(points, axis=-1, keepdims=True)
    quads = make_quads(points, np.float64)
    beyond = np.asarray(quads.neighbors).reshape(rows, columns + 1, 4)
    top = (rows - 2) * (columns + 1)
    mirrored = top + columns - 1 - np.arange(columns)
    assert beyond[rows - 2, :columns, 3].tolist() == mirrored.tolist()
    assert close_columns(unit_vectors(*tilted(8))) == (1, False)
    assert close_columns(unit_vectors(*tilted(8, closed=False))) == (0, True)
    lon, lat = tilted(8)
    twice = np.concatenate([lon, lon[:, 1:2]], 1), np.concatenate([lat, lat[:, 1:2]], 1)
    assert close_columns(unit_vectors(*twice)) == (2, False)
    seam = np.asarray(make_quads(unit_vectors(lon, lat), np.float64).neighbors)
    seam = seam.reshape(*lon.shape, 4)
    assert (seam[:-1, 0, 0] == seam[:-1, -3, 1]).all()


def test_cells_without_corners_are_left_out():
    lon, lat = tilted(8)
    lon[2, 3] = np.nan
    quads = make_quads(unit_vectors(lon, lat), np.float32)
    assert {(2, 3), (1, 2)}.isdisjoint(
        {divmod(int(i), lon.shape[1]) for i in np.asarray(quads.tree.items) if i >= 0}
    )
    with pytest.raises(ValueError, match="no cell with an area"):
        make_quads(np.full((3, 3, 3), np.nan), np.float32)
    angles = grid_angles(*np.meshgrid(np.arange(5.0), np.arange(4.0)))
    np.testing.assert_allclose(angles, 0, atol=1e-3)
