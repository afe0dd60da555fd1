"""Flows with known answers, as the tests of other trackers set them up."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

from jaxtrace.fields.analytic import ABCFlow, DoubleGyre, MovingEddy, UniformFlow
from jaxtrace.fields.curved_grid import CurvilinearGrid
from jaxtrace.fields.curvilinear import make_curvilinear_field
from jaxtrace.fields.grid import make_grid_field
from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.tracking.boundaries.box import box_boundary
from jaxtrace.tracking.simulation import simulate
from trace_meshes import plane_lattice
from trace_runs import end, grid_of

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def frames(length, dt):
    return np.linspace(0, length, round(length / dt) + 1)


def triangles(count, size, function):
    """A square around the origin in triangles, with the values of a flow."""
    points, quads = plane_lattice((count + 1, count + 1), (size, size))
    points = points - np.array([size / 2, size / 2, 0.0])
    cells = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    return points, cells, function(points)


def turn(rate, rise=0.0):
    """Solid rotation with an axial speed, as an array function."""

    def flow(positions, t=0.0):
        x, y = positions[:, 0], positions[:, 1]
        return np.stack([-rate * y, rate * x, np.full(len(x), rise)], 1)

    return flow


def test_uniform():
    seeds = np.array([[1.0, 2.0, 3.0], [-5.0, 0.0, 1.0]])
    velocity = np.array([0.3, -0.2, 0.1])
    found = end(UniformFlow(*velocity), seeds, frames(2 * HOUR, 15 * MINUTE))
    np.testing.assert_allclose(found, seeds + 2 * HOUR * velocity, atol=1e-5)


@pytest.mark.parametrize("name", ["euler", "rk4"])
@pytest.mark.slow  # compiles a program of its own
def test_uniform_on_triangles(name):
    velocity = np.array([1e-3, 5e-4, 0.0])
    points, cells, values = triangles(8, 20.0, lambda p: 0 * p + velocity)
    field = make_mesh_field(points, cells, values, kind="triangle", dtype=np.float64)
    seeds = np.array([[0.1, 0.2, 0.0], [-6.0, 3.0, 0.0]])
    found = end(field, seeds, frames(HOUR, 5 * MINUTE), integrator=name)
    np.testing.assert_allclose(found, seeds + HOUR * velocity, atol=1e-5)


def test_solid_rotation_on_a_grid():
    rate, length = 2 * np.pi / DAY, 10 * MINUTE
    axis = np.linspace(-30.0, 30.0, 200)
    field = grid_of(turn(rate), [axis, axis, np.zeros(1)])
    seeds = np.array([[10.0, 0.0, 0.0], [0.0, -20.0, 0.0]])
    found = end(field, seeds, frames(length, 30.0))
    angle = rate * length
    c, s = np.cos(angle), np.sin(angle)
    expected = seeds @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.slow  # compiles a program of its own
def test_solid_rotation_on_triangles():
    rate = 2 * np.pi / HOUR
    points, cells, values = triangles(40, 8.0, turn(rate))
    field = make_mesh_field(points, cells, values, kind="triangle", dtype=np.float64)
    found = end(field, [[2.0, 0.0, 0.0]], [0.0, HOUR], substeps=240)
    np.testing.assert_allclose(found, [[2.0, 0.0, 0.0]], atol=1e-6)


def test_helix():
    rate, rise = 2 * np.pi / HOUR, 0.005
    axis = np.linspace(-3.0, 3.0, 7)
    field = grid_of(turn(rate, rise), [axis, axis, np.array([0.0, 30.0])])
    found = end(field, [[2.0, 0.0, 1.0]], [0.0, HOUR], substeps=240)
    np.testing.assert_allclose(found, [[2.0, 0.0, 1.0 + rise * HOUR]], atol=1e-6)


def eddy_path(flow, start, every, dt, name):
    """The path through 691 slices of a flow that is the same everywhere, 24 frames."""
    times = every * np.arange(691)
    at = jnp.zeros((691, 3))
    values = np.asarray(flow.sample_at_positions(at, jnp.asarray(times)))
    field = make_grid_field(values[:, None, None, None], [np.zeros(1)] * 3, times)
    found = simulate(field, [[*start, 0.0]], dt * np.arange(24), integrator=name)
    return np.asarray(found.positions)[:, 0]


@pytest.mark.parametrize(
    ("name", "rtol"), [("euler", 1e-2), ("rk2", 1e-4), ("rk4", 1e-5)]
)
def test_moving_eddy(name, rtol):
    mean, initial, f, t = 0.04, 0.3, 1e-4, HOUR
    start = np.array([12000.0, 12500.0])
    flow = MovingEddy(mean, initial, f)
    found = eddy_path(flow, start, MINUTE, 30 * MINUTE, name)[2, :2]
    swing = (initial - mean) / f
    way = [mean * t + swing * np.sin(f * t), -swing * (1 - np.cos(f * t))]
    np.testing.assert_allclose(found, start + way, rtol=rtol)
    if name == "rk4":  # what is left is that of slices a minute apart
        np.testing.assert_allclose(found, start + way, rtol=1e-7)


@pytest.mark.parametrize(
    ("name", "rtol"), [("euler", 1e-1), ("rk2", 3e-3), ("rk4", 1e-5), ("rk45", 1e-5)]
)
def test_decaying_moving_eddy(name, rtol):
    mean, initial, f, t = 0.04, 0.3, 1e-4, 23 * HOUR
    decay, mean_decay = 1 / (2.89 * DAY), 1 / (28.9 * DAY)
    flow = MovingEddy(mean, initial, f, decay, mean_decay)
    found = eddy_path(flow, (1e4, 1e4), 2 * MINUTE, HOUR, name)[-1]
    ratio, fade = decay / f, np.exp(-decay * t)
    swing = (initial - mean) * f / (f * f + decay * decay)
    s, c = np.sin(f * t), np.cos(f * t)
    x = mean / mean_decay * (1 - np.exp(-mean_decay * t))
    x += swing * (ratio + fade * (s - ratio * c))
    y = -swing * (1 - fade * (c + ratio * s))
    np.testing.assert_allclose(found, [1e4 + x, 1e4 + y, 0.0], rtol=rtol)


WIDTH, HEIGHT = 100e3, 50e3
RADIUS = 0.32 * WIDTH / 2


def peninsula(positions, t):
    x, y = positions[:, 0] - WIDTH / 2, positions[:, 1]
    r2 = x * x + y * y
    u = 1 - RADIUS**2 * (x * x - y * y) / r2**2
    return np.stack([u, -2 * RADIUS**2 * x * y / r2**2, 0 * x], 1)


def peninsula_stream(positions):
    x, y = positions[..., 0] - WIDTH / 2, positions[..., 1]
    return RADIUS**2 * y / (x * x + y * y) - y


def through_faces(stream, x_axis, y_axis):
    """Return a C-grid: velocities through faces, from a stream function at corners."""
    x, y = np.meshgrid(x_axis, y_axis)
    grid = CurvilinearGrid(x, y, np.zeros(1), faces=True)
    columns, rows = grid.spacing()
    psi, values = stream(x, y), np.zeros((*x.shape, 1, 3))
    values[:-1, :, 0, 0] = -np.diff(psi, axis=0) / rows[:-1]
    values[:, :-1, 0, 1] = np.diff(psi, axis=1) / columns[:, :-1]
    return make_curvilinear_field(grid, values)


def bilinear(stream, x_axis, y_axis):
    """Return the stream function that a C-grid has in its cells."""
    psi = stream(*np.meshgrid(x_axis, y_axis, indexing="ij"))
    return RegularGridInterpolator((x_axis, y_axis), psi)


@pytest.mark.parametrize(
    ("kind", "name", "rtol"),
    [
        *(("A", "rk2", 2e-2), ("A", "rk4", 1e-2)),
        pytest.param("A", "rk45", 1e-2, marks=pytest.mark.slow),
        pytest.param("C", "rk4", 1e-2, marks=pytest.mark.slow),
        pytest.param("C", "rk45", 1e-2, marks=pytest.mark.slow),
    ],
)
def test_peninsula(kind, name, rtol):
    """The stream function is conserved along the way past the cape."""
    axes = [np.linspace(0, WIDTH, 100), np.linspace(100.0, HEIGHT, 50), np.zeros(1)]
    stream_at = lambda x, y: peninsula_stream(np.stack([x, y], -1))
    if kind == "A":
        field = grid_of(peninsula, axes)
    else:
        field = through_faces(stream_at, *axes[:2])
    seeds = np.zeros((8, 3))
    seeds[:, 0] = 3e3
    seeds[:, 1] = np.linspace(20e3, 40e3, 8)
    found = simulate(
        field, seeds, frames(23 * HOUR, 30 * MINUTE), integrator=name, boundary=None
    ).positions
    inside = np.asarray(found)[:, :, 0] < WIDTH
    assert np.asarray(found)[-1, :, 0].min() > WIDTH * 0.6
    stream = peninsula_stream(np.asarray(found))
    error = np.abs(stream / stream[:1] - 1)[inside]
    assert error.max() < rtol
    if kind == "C":  # its own stream function, to the error of the steps
        own = bilinear(stream_at, *axes[:2])
        there = np.asarray(found)[..., :2].clip(0, [WIDTH, HEIGHT])
        kept = np.abs(own(there) / own(there[:1]) - 1)[inside]
        assert kept.max() < 5e-3


def stommel(scale=0.05, size=1e7):
    """Velocity and stream function of the western boundary current."""
    eps = 1 / (11.6 * DAY) / (2e-11 * size)

    def stream(x, y):
        x, y = x / size, y / size
        return scale * size * (1 - np.exp(-x / eps) - x) * np.pi * np.sin(np.pi * y)

    def flow(positions, t):
        x, y = positions[:, 0] / size, positions[:, 1] / size
        shape = (1 - np.exp(-x / eps) - x) * np.pi
        slope = (np.exp(-x / eps) / eps - 1) * np.pi
        u = -scale * shape * np.pi * np.cos(np.pi * y)
        return np.stack([u, scale * slope * np.sin(np.pi * y), 0 * x], 1)

    return stream, flow


@pytest.mark.parametrize("kind", ["A", pytest.param("C", marks=pytest.mark.slow)])
def test_stommel_gyre(kind):
    stream, flow = stommel()
    axis = np.linspace(0, 1e7, 200)
    if kind == "A":
        field = grid_of(flow, [axis, axis, np.zeros(1)])
    else:
        field = through_faces(stream, axis, axis)
    seeds = np.zeros((6, 3))
    seeds[:, 0] = np.linspace(1e5, 1e6, 6)
    seeds[:, 1] = 5e6
    found, other = (
        np.asarray(
            simulate(field, seeds, frames(DAY, 30 * MINUTE), integrator=n).positions
        )
        for n in ("rk4", "rk45")
    )
    assert np.linalg.norm(found[-1] - seeds, axis=1).min() > 1e3
    values = stream(found[..., 0], found[..., 1])
    still = np.broadcast_to(values[0], values.shape)
    np.testing.assert_allclose(values, still, rtol=1e-3 if kind == "A" else 2e-3)
    np.testing.assert_allclose(other, found, rtol=1e-3)
    if kind == "C":
        own = bilinear(stream, axis, axis)(found[..., :2])
        # Steps of half an hour that end beyond a face, where the flow has a kink.
        np.testing.assert_allclose(own, np.broadcast_to(own[0], own.shape), rtol=3e-5)


def test_periodic_channel():
    """Twice through a channel of length 2: a path of 4, and back at the start."""
    seeds = np.array([[0.5, 0.5, 0.0], [1.9, 0.2, 0.0]])
    box = box_boundary([[0, 0, 0], [2, 1, 0]], "periodic")
    times = np.linspace(0, 40, 41)
    found = np.asarray(
        simulate(
            UniformFlow(0.1, 0, 0), seeds, times, boundary=box, integrator="euler"
        ).positions
    )
    np.testing.assert_allclose(found[-1], seeds, atol=1e-12)
    steps = np.diff(found[:, :, 0], axis=0)
    steps -= 2 * np.round(steps / 2)
    np.testing.assert_allclose(np.abs(steps).sum(0), 4.0, atol=1e-12)


GYRE = {
    (0.5, 0.5): (0.0505505306, 0.1110201488, 0.2268844590),
    (1.2, 0.3): (1.2011275652, 0.9590826449, 0.2774016857),
}


def test_double_gyre_ends_and_stretching():
    """End points, and the growth rate of the longest axis, to ten digits."""

    def flow_map(x):
        place = jnp.concatenate([x, jnp.zeros(1)])[None]
        paths = simulate(DoubleGyre(), place, [0.0, 10.0], substeps=500)
        return (end := paths.positions[-1, 0, :2]), end

    slopes = jax.jit(jax.vmap(jax.jacfwd(flow_map, has_aux=True)))
    gradients, found = slopes(jnp.asarray(list(GYRE)))
    np.testing.assert_allclose(found, [e[:2] for e in GYRE.values()], atol=1e-9)
    stretching = np.log(np.linalg.svd(gradients, compute_uv=False)[:, 0]) / 10
    np.testing.assert_allclose(stretching, [e[2] for e in GYRE.values()], atol=1e-9)


def test_double_gyre_with_adaptive_steps():
    seeds = np.array([[*seed, 0.0] for seed in GYRE])
    found = end(DoubleGyre(), seeds, [0.0, 10.0], tolerance=1e-13)
    np.testing.assert_allclose(found[:, :2], [e[:2] for e in GYRE.values()], atol=1e-9)


def test_abc_flow():
    found = end(ABCFlow(), [[1.0, 2.0, 3.0]], [0.0, 5.0], substeps=1000)
    expected = [[-0.1753854765, 1.3434368178, 13.3032383754]]
    np.testing.assert_allclose(found, expected, atol=1e-9)
