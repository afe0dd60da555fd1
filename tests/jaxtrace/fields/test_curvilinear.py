"""Curvilinear grids on the sphere against closed forms, over seam, fold and pole."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxtrace.fields.coast import let_slip
from jaxtrace.fields.curved_grid import CurvilinearGrid
from jaxtrace.fields.curvilinear import make_curvilinear_field
from jaxtrace.fields.quads import close_columns, grid_angles, make_quads, unit_vectors
from jaxtrace.sphere import EARTH_RADIUS, great_circle
from trace_ocean import follow, solid, tilted

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
            velocity, cells = look(on_nodes(*tilted(rows)), points)
            inside = np.asarray(cells) >= 0
            exact = np.stack(solid(*points[inside, :2].T), 1)
            found = np.asarray(velocity)[inside, :2]
            errors.append(np.abs(found - exact).max())
            assert inside.mean() > 0.98
    assert errors[1] < 1e-3
    assert 3.2 < errors[0] / errors[1] < 5


def test_particles_pass_the_seam_and_the_poles():
    with jax.enable_x64(True):
        speed = 2 * np.pi * EARTH_RADIUS / (12 * DAY)
        field = on_nodes(*tilted(45), speed, np.pi / 2)
        seeds = np.array([[170.0, 30, 0], [-100, -60, 0], [45, 88, 0], [0, 90, 0]])
        ends = follow(field, seeds, (0.0, 12 * DAY), 288)[0][-1]
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


def warped(rows=4, columns=5, seed=0):
    """Return flat corners of convex quadrilaterals of all kinds."""
    y, x = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    draw = np.random.default_rng(seed).uniform(-0.3, 0.3, (2, rows, columns))
    turn = np.array([[0.8, -0.9], [0.7, 1.1]])
    return np.einsum("ab,bji->aji", turn, np.stack([x, y]) + draw)


def through_faces(x, y, velocity):
    """Return the components of a uniform flow normal to first faces along i and j."""
    values = np.zeros((*x.shape, 1, 3))
    for part, axis, sign in ((0, 0, 1), (1, 1, -1)):
        dx, dy = np.diff(x, axis=axis), np.diff(y, axis=axis)
        normal = sign * (velocity[0] * dy - velocity[1] * dx) / np.hypot(dx, dy)
        where = [slice(None), slice(None)]
        where[axis] = slice(-1)
        values[(*where, 0, part)] = normal
    return values


def in_cell(x, y, j, i, xi, eta):
    """Return a point of a cell by its coordinates."""
    weights = ((1 - xi) * (1 - eta), xi * (1 - eta), (1 - xi) * eta, xi * eta)
    corners = ((j, i), (j, i + 1), (j + 1, i), (j + 1, i + 1))
    pairs = list(zip(weights, corners, strict=True))
    return [sum(w * a[c] for w, c in pairs) for a in (x, y)]


def test_transports_are_exact_in_flat_quadrilaterals():
    x, y = warped()
    grid = CurvilinearGrid(x, y, np.zeros(1), faces=True)
    draw = np.random.default_rng(1)
    coordinates = draw.uniform(0.01, 0.99, (40, 2))
    coordinates[:10, 0], coordinates[10:20, 1] = 1, 0  # on faces
    j, i = draw.integers(0, 3, 40), draw.integers(0, 4, 40)
    rows = [in_cell(x, y, *at) for at in zip(j, i, *coordinates.T, strict=True)]
    points = np.pad(np.array(rows), ((0, 0), (0, 1)))
    uniform = through_faces(x, y, (1.3, -0.4))
    random = draw.normal(size=uniform.shape)
    dx, dy = np.diff(x, axis=0), np.diff(y, axis=0)
    with jax.enable_x64(True):
        field = make_curvilinear_field(grid, uniform)
        hints = (j * 5 + i).astype(np.int32)
        velocity = np.asarray(by_hint(field, points, hints))
        np.testing.assert_allclose(velocity[:, :2], [[1.3, -0.4]] * 40, atol=1e-14)
        inner = coordinates[:, 0] < 1
        field = make_curvilinear_field(grid, random)
        found = np.asarray(by_hint(field, points, hints))
        apart = np.zeros((2, 40))
        for axis in range(2):
            step = np.eye(3)[axis] * 1e-6
            ends = [by_hint(field, points + s * step, hints)[:, axis] for s in (1, -1)]
            apart[axis] = (np.asarray(ends[0]) - np.asarray(ends[1])) / 2e-6
    lengths = np.hypot(dx, dy)
    for row in np.flatnonzero(~inner):
        at = j[row], i[row] + 1
        normal = np.array([dy[at], -dx[at]]) / lengths[at]
        np.testing.assert_allclose(found[row, :2] @ normal, random[(*at, 0, 0)])
    flux = random[..., 0, :2] * grid.spacing()[::-1].transpose(1, 2, 0)
    for row in range(20, 40):
        a, b = j[row], i[row]
        total = flux[a, b + 1, 0] - flux[a, b, 0] + flux[a + 1, b, 1] - flux[a, b, 1]
        xi, eta = coordinates[row]
        corner = lambda dj, di, a=a, b=b: np.array(
            [x[a + dj, b + di], y[a + dj, b + di]]
        )
        across = (1 - eta) * (corner(0, 1) - corner(0, 0))
        across += eta * (corner(1, 1) - corner(1, 0))
        along = (1 - xi) * (corner(1, 0) - corner(0, 0))
        along += xi * (corner(1, 1) - corner(0, 1))
        area = across[0] * along[1] - across[1] * along[0]
        np.testing.assert_allclose(apart[:, row].sum(), total / area, atol=1e-7)


@jax.jit
def by_hint(field, points, hints):
    return field.velocity(points, field.instant(0.0), hints)[0]


def staircase(size=24):
    """Return a basin with a staircase coast: corners, face speeds, dry cells."""
    lon, lat = np.meshgrid(np.arange(size + 1) * 0.1, 40 + np.arange(size + 1) * 0.1)
    j, i = np.indices((size, size))
    dry = (i + j < size // 2) | (i == 0) | (j == 0) | (i == size - 1) | (j == size - 1)
    wet = np.zeros((size + 1, size + 1), bool)
    wet[1:-1, 1:-1] = ~(dry[1:, 1:] | dry[:-1, 1:] | dry[1:, :-1] | dry[:-1, :-1])
    psi = np.random.default_rng(3).normal(size=wet.shape) * 4000 * wet
    grid = CurvilinearGrid(lon, lat, np.zeros(1), EARTH_RADIUS, faces=True)
    columns, rows = grid.spacing()
    values = np.zeros((*psi.shape, 1, 3))
    values[:-1, :, 0, 0] = -np.diff(psi, axis=0) / rows[:-1]
    values[:, :-1, 0, 1] = np.diff(psi, axis=1) / columns[:, :-1]
    land = np.pad(dry, ((0, 1), (0, 1)), constant_values=True)[..., None]
    return dataclasses.replace(grid, land=land), values, dry


@pytest.mark.parametrize(
    ("dtype", "integrator"),
    [("float32", "euler"), pytest.param("float64", "rk2", marks=pytest.mark.slow)],
)
def test_nothing_crosses_a_staircase_coast_in_many_steps(dtype, integrator):
    grid, values, dry = staircase()
    draw = np.random.default_rng(4)
    j, i = np.nonzero(~dry)
    start = draw.integers(0, j.size, 1250)
    seeds = np.zeros((1250, 3))
    seeds[:, 0] = (i[start] + draw.uniform(0, 1, 1250)) * 0.1
    seeds[:, 1] = 40 + (j[start] + draw.uniform(0, 1, 1250)) * 0.1
    with jax.enable_x64(dtype == "float64"):
        field = make_curvilinear_field(grid, values.astype(dtype))
        clock, seeds = np.linspace(0, 6e5, 21), seeds.astype(dtype)
        ends = follow(field, seeds, clock, 20, integrator)[0].astype(np.float64)
    # In float32 a place counts as within its cell up to 16 roundings of a unit vector,
    # 1.1e-4 degrees.
    slack = 1e-9 if dtype == "float64" else 1.2e-4
    corners = np.zeros(ends.shape[:2], bool)
    for dx, dy in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
        column = np.floor((ends[..., 0] + dx * slack) / 0.1).astype(int)
        row = np.floor((ends[..., 1] + dy * slack - 40) / 0.1).astype(int)
        corners |= ~dry[row, column]
    assert corners.all()
    moved = great_circle(ends[-1], seeds) / 1e4
    assert np.median(moved) > 0.5


def turned_coast(layered):
    """Return a turned grid of which two sides that meet and the floor are land."""
    i, j = np.meshgrid(np.arange(6.0), np.arange(5.0))
    lon = 10 + 0.01 * (i * np.cos(TURN) - j * np.sin(TURN))
    lat = 0.01 * (i * np.sin(TURN) + j * np.cos(TURN))
    z = np.array([-30.0, -20, -10, 0])
    values = np.zeros((5, 6, 4, 3))
    along, across = 1.0, 0.4
    values[1:, 1:, 1:] = [
        along * np.cos(TURN) - across * np.sin(TURN),
        along * np.sin(TURN) + across * np.cos(TURN),
        0.5,
    ]
    grid = CurvilinearGrid(
        lon, lat, z, EARTH_RADIUS, land=values[..., 0] == 0, layered=layered
    )
    return make_curvilinear_field(grid, values), grid


TURN = np.radians(30)


@pytest.mark.parametrize(
    ("layered", "slip", "a", "b"), [(False, "partial", 0.5, 0.5), (True, "free", 1, 0)]
)
def test_the_flow_slips_along_a_turned_coast(layered, slip, a, b):
    field, grid = turned_coast(layered)
    xi = np.array([1.5, 2.5, 3.5, 2.5, 0.3])
    eta = np.array([0.1, 0.5, 0.9, 0.5, 0.6])
    x = xi * np.cos(TURN) - eta * np.sin(TURN)
    y = xi * np.sin(TURN) + eta * np.cos(TURN)
    z = np.array([-15.0, -5, -15, -29, -15])
    points = np.stack([10 + 0.01 * x, 0.01 * y, z], 1).astype(np.float32)
    found = np.asarray(look(let_slip(field, grid.land, slip), points)[0])
    along = found[:, 0] * np.cos(TURN) + found[:, 1] * np.sin(TURN)
    across = found[:, 1] * np.cos(TURN) - found[:, 0] * np.sin(TURN)
    # (a + b eta) / eta times eta along a wall; what goes through it vanishes there.
    # In the last cell there are walls on two sides.
    one, other = a + b * eta, 0.4 * eta
    one[4], other[4] = xi[4] * one[4], eta[4] * 0.4 * (a + b * xi[4])
    # Beside the floor that is land: 0.1 of the way up to the next level.
    floor = 0 if layered else a + b * 0.1
    one[3], other[3] = floor * one[3], floor * other[3]
    np.testing.assert_allclose(along, one, atol=5e-4)
    np.testing.assert_allclose(across, other, atol=5e-4)
    if layered:
        return
    # Upward goes along the coast, and through the floor.
    rise = 0.5 * (a + b * eta) * [1, 1, 1, 0.1, a + b * xi[4]]
    np.testing.assert_allclose(found[:, 2], rise, rtol=2e-3)
    with pytest.raises(ValueError, match="needs a grid on a sphere with land"):
        let_slip(dataclasses.replace(field, vectors=False), grid.land, "free")
