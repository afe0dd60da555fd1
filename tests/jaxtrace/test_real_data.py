"""Real solver output, tracked by files read and integrated independently in NumPy."""

import itertools

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

import jaxtrace as jt
from jaxtrace import tracking
from jaxtrace.types import ParticleStatus
from trace_files import data_folder, unpack_vessels

pytestmark = pytest.mark.slow  # whole programs, many of them


def rk4(velocity, seeds, times, wrap=lambda x: x):
    """Classic Runge-Kutta in float64, one step per frame."""
    frames = [np.asarray(seeds, np.float64)]
    for t, after in itertools.pairwise(times):
        x, dt = frames[-1], after - t
        a = velocity(wrap(x), t)
        b = velocity(wrap(x + dt / 2 * a), t + dt / 2)
        c = velocity(wrap(x + dt / 2 * b), t + dt / 2)
        d = velocity(wrap(x + dt * c), after)
        frames.append(wrap(x + dt / 6 * (a + 2 * b + 2 * c + d)))
    return np.stack(frames)


def read_dump(path):
    """Time, nodes and velocities of a Nek5000 dump, straight from its bytes."""
    raw = path.read_bytes()
    words = raw[:132].split()
    nodes, count = int(words[2]) * int(words[3]), int(words[5])
    body = np.frombuffer(raw, "<f4", offset=136 + 4 * count)
    x, u = body[: 4 * nodes * count].reshape(2, count, 2, nodes).astype(float)
    return float(words[7]), *(a.swapaxes(1, 2).reshape(-1, 2) for a in (x, u))


def eddy_reference():
    """The box, and the velocity of the eddy: bilinear in space, linear in time.

    The nodes of all elements together are those of a rectilinear grid, on the edges
    of elements several times.
    """
    dumps = sorted(data_folder("nek5000_eddy").glob("*.f000*"))
    times, slices = [], []
    exact = [np.zeros(113), np.zeros(113)]
    for dump in dumps:
        time, points, values = read_dump(dump)
        axes = [np.unique(points[:, i].round(4)) for i in (0, 1)]
        assert [len(axis) for axis in axes] == [113, 113]
        place = [np.searchsorted(a, points[:, i].round(4)) for i, a in enumerate(axes)]
        grid, share = np.zeros((113, 113, 2)), np.zeros((113, 113, 1))
        np.add.at(grid, tuple(place), values)
        np.add.at(share, tuple(place), 1)
        # The nodes themselves, which rounding has only told apart.
        for i in (0, 1):
            exact[i][place[i]] = points[:, i]
        times.append(time)
        slices.append(grid / share)
    at = RegularGridInterpolator((times, *exact), np.stack(slices))

    def velocity(x, t):
        when = np.full((len(x), 1), np.clip(t, times[0], times[-1]))
        flat = at(np.concatenate([when, x[:, :2]], 1))
        return np.concatenate([flat, np.zeros((len(x), 1))], 1)

    return exact[0][-1], velocity


def eddy(**options):
    return jt.load_optimized_dataset(
        data_folder("nek5000_eddy") / "eddy_uv.nek5000", **options
    )


def eddy_seeds(size, count=200):
    seeds = np.zeros((count, 3))
    seeds[:, :2] = np.random.default_rng(0).uniform(0, size, (count, 2))
    return seeds


@pytest.mark.parametrize(
    "scheme", ["auto", pytest.param("elements", marks=pytest.mark.slow)]
)
def test_the_eddy_in_double_precision(double, scheme):
    """Ten times the record's length, so that many cross the periodic box."""
    size, velocity = eddy_reference()
    seeds, times = eddy_seeds(size), np.linspace(0, 1, 101)
    box = jt.periodic_boundary([[0, 0], [size, size]])
    field = eddy(dtype="float64", spatial_interpolation=scheme)
    found = jt.create_tracker("rk4", field, box).track_particles(seeds, (0, 1), 101)
    expected = rk4(velocity, seeds, times, lambda x: np.mod(x, [size, size, 1]))
    assert found.positions.dtype == np.float64
    apart = np.abs(found.positions - expected)
    apart = np.minimum(apart, size - apart)
    assert apart.max() < 1e-6
    crossed = np.abs(np.diff(found.positions, axis=0)).max((0, 2)) > size / 2
    assert crossed.sum() > 20


def test_the_eddy_in_single_precision():
    size, velocity = eddy_reference()
    seeds, times = eddy_seeds(size) * 0.5 + [1.5, 1.5, 0.0], np.linspace(0, 0.1, 11)
    found = jt.create_tracker("rk4", eddy(), None).track_particles(seeds, (0, 0.1), 11)
    expected = rk4(velocity, seeds, times)
    assert found.positions.dtype == np.float32
    assert np.abs(expected[-1] - seeds).max() > 0.2
    np.testing.assert_allclose(found.positions, expected, atol=1e-4)


class Vessels:
    """The vessels as unit cubes of a lattice, from the pieces alone."""

    def __init__(self, file):
        pyvista = pytest.importorskip("pyvista")
        pieces = [pyvista.read(f) for f in sorted(file.with_suffix("").glob("*.vtu"))]
        centers = np.concatenate([p.cell_centers().points for p in pieces])
        values = np.concatenate([p.cell_data["velocity"] for p in pieces])
        self.cubes = np.floor(centers).astype(int)
        self.low = self.cubes.min(0)
        shape = np.ptp(self.cubes, axis=0) + 1
        self.there = np.zeros(shape, bool)
        self.there[tuple((self.cubes - self.low).T)] = True
        # At a node, the mean of the cubes around it.
        total, count = np.zeros((*(shape + 1), 3)), np.zeros((*(shape + 1), 1))
        for corner in np.ndindex(2, 2, 2):
            place = tuple((self.cubes - self.low + corner).T)
            np.add.at(total, place, values.astype(np.float64))
            np.add.at(count, place, 1)
        self.nodes = total / np.where(count, count, 1)

    def inside(self, x, room):
        """Whether places, or others that lie within `room` of them, are in a cube."""
        found = np.zeros(x.shape[:-1], bool)
        for shift in np.ndindex(3, 3, 3):
            moved = np.where(np.isnan(x), -1, x + room * (np.array(shift) - 1))
            cube = np.floor(moved).astype(int) - self.low
            near = np.all((cube >= 0) & (cube < self.there.shape), -1)
            cube = np.clip(cube, 0, np.array(self.there.shape) - 1)
            found |= near & self.there[tuple(np.moveaxis(cube, -1, 0))]
        return found

    def velocity(self, x, t):
        """Trilinear in the cube of a place; nothing outside all of them."""
        x = x - self.low
        cube = np.floor(np.where(np.isnan(x), -1, x)).astype(int)
        cube = np.clip(cube, 0, np.array(self.there.shape) - 1)
        part = x - cube
        found = np.zeros_like(x)
        for corner in np.ndindex(2, 2, 2):
            share = np.where(corner, part, 1 - part).prod(-1, keepdims=True)
            found += share * self.nodes[tuple((cube + corner).T)]
        held = np.all((part >= 0) & (part <= 1), -1) & self.there[tuple(cube.T)]
        return np.where(held[:, None], found, np.nan)

    def seeds(self, count, seed=0):
        rng = np.random.default_rng(seed)
        picked = self.cubes[rng.integers(0, len(self.cubes), count)]
        return picked + rng.uniform(0.01, 0.99, (count, 3))


@pytest.fixture(scope="module")
def vessels(tmp_path_factory):
    file = unpack_vessels(tmp_path_factory.mktemp("vessels"))
    return file, Vessels(file)


@pytest.mark.slow
def test_the_vessels_in_double_precision(double, vessels):
    file, lattice = vessels
    seeds, times = lattice.seeds(300), np.linspace(0, 50, 26)
    field = jt.load_optimized_dataset(file, dtype="float64", outside="nan")
    found = jt.create_tracker("rk4", field, None).track_particles(seeds, (0, 50), 26)
    expected = rk4(lattice.velocity, seeds, times)
    assert np.isfinite(expected[-1, :, 0]).sum() > 200
    assert np.nanmax(np.linalg.norm(expected[-1] - seeds, axis=1)) > 10
    np.testing.assert_allclose(found.positions, expected, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [None, 0.3], ids=["still", "noisy"])
@pytest.mark.parametrize("condition", ["reflect", "slide", "stick", "absorb"])
def test_nobody_leaves_the_vessels_through_a_wall(vessels, condition, noise):
    """Steps of up to several cubes, at every frame of every particle."""
    file, lattice = vessels
    field = jt.load_optimized_dataset(file)
    seeds = lattice.seeds(2000).astype(np.float32)
    tracker = jt.create_tracker(
        "rk4",
        field,
        tracking.wall_boundary(condition),
        motion=noise and tracking.Diffusion(noise),
    )
    found = tracker.track_particles(seeds, (0, 400), 101)
    inside = lattice.inside(found.positions.astype(np.float64), 1e-5)
    assert np.all(inside[found.alive])
    assert np.all(np.isnan(found.positions[~found.alive]))
    assert found.alive.all() == (condition != "absorb")
    ended = found.status != ParticleStatus.ACTIVE
    assert (ended.mean() > 0.2) == (condition in ("stick", "absorb"))
