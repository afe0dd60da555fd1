"""Pictures show each particle, path and value at its place, and files are whole."""

import sys

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.image import imread

from jaxtrace.analysis import KDEEstimator
from jaxtrace.fields.grid import make_grid_field
from jaxtrace.plot import inputs
from jaxtrace.plot.inputs import DPI, choose, color_values, new_axes
from jaxtrace.plot.pictures import (
    plot_density_2d,
    plot_field_2d,
    plot_particles,
    plot_trajectory,
)
from jaxtrace.sphere import EARTH_RADIUS
from jaxtrace.trajectory import Trajectory
from trace_records import absorbing_channel, recycling_channel, uniform

RED = (1.0, 0.0, 0.0)
POINTS = np.array([[0.2, 0.3, 0.9], [0.7, 0.8, 0.1], [0.5, 0.1, 0.5]])
FLOW = uniform([0.3, 0.1, 0.2], POINTS, np.linspace(0, 4, 21), period=(1, 1, 1))


def is_red(axes, path, points):
    """Whether the saved picture is red at these points of the axes."""
    pixels = imread(path)[..., :3]
    axes.figure.draw_without_rendering()
    columns, rows = (axes.transData.transform(points) * DPI / axes.figure.dpi).T
    found = pixels[len(pixels) - 1 - rows.astype(int), columns.astype(int)]
    return (np.abs(found - RED) < 0.05).all(axis=1)


@pytest.mark.parametrize(
    ("plane", "axes"), [("xy", [0, 1]), ("xz", [0, 2]), ("yz", [1, 2])]
)
def test_dots_are_drawn_where_the_particles_are(tmp_path, plane, axes):
    path = tmp_path / "dots.png"
    bounds = [0, 1, 0, 1, 0, 1]
    drawn = plot_particles(POINTS, plane, bounds, "red", s=60, alpha=1, save_path=path)
    assert is_red(drawn, path, POINTS[:, axes]).all()
    assert not is_red(drawn, path, POINTS[:, axes] + [0.1, 0.05]).any()
    assert (drawn.get_xlabel(), drawn.get_ylabel()) == tuple(plane)
    assert drawn.get_xlim() == drawn.get_ylim() == (0, 1)
    assert pyplot.get_fignums() == []


def test_dots_in_space_fill_the_picture(tmp_path):
    path = tmp_path / "space.png"
    drawn = plot_particles(
        POINTS, "xyz", color="red", s=80, alpha=1, elev=10, azim=30, save_path=path
    )
    assert (drawn.elev, drawn.azim, drawn.get_zlabel()) == (10, 30, "z")
    red = (np.abs(imread(path)[..., :3] - RED) < 0.05).all(axis=-1)
    assert 100 < red.sum() < red.size / 20
    (dots,) = drawn.collections
    np.testing.assert_allclose(np.array(dots._offsets3d).T, POINTS)


def test_absent_particles_are_skipped():
    record = absorbing_channel(1.0, 1.0, [0.0, 0.9, 0.3], [0.0, 0.5])
    (dots,) = plot_particles(record).collections
    np.testing.assert_allclose(dots.get_offsets(), [[0.5, 0.0], [0.8, 0.0]])


def test_values_color_their_particles_and_get_a_bar():
    points = POINTS.copy()
    points[1] = np.nan
    drawn = plot_particles(points, color=np.array([1.0, 2.0, 4.0]))
    np.testing.assert_allclose(drawn.collections[0].get_array(), [1.0, 4.0])
    assert len(drawn.figure.axes) == 2


def test_variables_color_particles_over_land():
    land = np.zeros((5, 4, 1), bool)
    land[1:3, 1:3] = True
    axes = (np.arange(5.0), np.arange(4.0), np.zeros(1))
    flow = np.ones((5, 4, 1, 2), np.float32)
    field = make_grid_field(flow, axes, radius=EARTH_RADIUS, land=land)
    positions = np.array([[[0.5, 0.5, 0], [3.5, 2.5, 0]]] * 3)
    positions[1:, :, 0] += 0.25
    positions[2, 1] = np.nan
    age = np.array([[1.0, 2.0], [2.0, 5.0], [3.0, np.nan]])
    paths = Trajectory(positions, [0.0, 1.0, 2.0], variables={"age": age})
    drawn = plot_particles(paths, field=field, color="age", show=False)
    mesh, edges, dots = drawn.collections
    # One cell has land at every corner: its four sides are the coast.
    assert mesh.get_array().count() == 1
    assert len(edges.get_segments()) == 4
    assert {tuple(map(tuple, s)) for s in edges.get_segments()} >= {((1, 1), (1, 2))}
    np.testing.assert_array_equal(dots.get_array(), [3.0])
    assert drawn.figure.axes[-1].get_ylabel() == "age"
    # A path keeps the color of the last value that its particle had.
    lines = plot_trajectory(paths, color="age", show=False).collections[0]
    assert len(np.unique(lines.get_colors(), axis=0)) == 2
    np.testing.assert_array_equal(color_values(paths, "age", -1)[0], [3.0, 5.0])
    fast, name = color_values(paths, "speed", 1)
    assert (name, fast[0]) == ("speed", 0.0)
    with pytest.raises(ValueError, match=r"'heat' is no color .* have speed, age: sam"):
        plot_particles(paths, color="heat", show=False)


def test_thinning_keeps_what_it_says():
    points = np.arange(30.0).reshape(10, 3)
    (dots,) = plot_particles(points, every_kth=3, max_points=2).collections
    chosen = choose(10, 3, 2)
    np.testing.assert_allclose(dots.get_offsets(), points[chosen, :2])


@pytest.mark.parametrize("frame", [-1, 4, 0])
def test_paths_lead_to_the_dots(frame):
    drawn = plot_trajectory(FLOW, frame_index=frame, plane="xz")
    *lines, dots = drawn.collections
    np.testing.assert_allclose(dots.get_offsets(), FLOW.positions[frame][:, [0, 2]])
    steps = [np.diff(part, axis=0) for line in lines for part in line.get_segments()]
    assert all(np.allclose(step, [0.06, 0.04]) for step in steps)
    assert drawn.get_title() == f"t = {FLOW.times[frame]:.4g}"
    whole = np.floor(POINTS + FLOW.times[:, None, None] * [0.3, 0.1, 0.2])
    wraps = (np.diff(whole, axis=0) != 0).any(axis=-1)[: range(21)[frame]]
    assert sum(map(len, steps)) == (~wraps).sum()


def test_no_line_crosses_the_domain_when_particles_are_recycled():
    record = recycling_channel(0.5, 1.0, [0.0, 0.3], np.linspace(0, 4, 41))
    lines = plot_trajectory(record).collections[0]
    assert max(np.diff(part[:, 0]).max() for part in lines.get_segments()) < 0.06
    assert min(np.diff(part[:, 0]).min() for part in lines.get_segments()) > 0


def test_a_line_has_the_color_of_its_dot():
    drawn = plot_trajectory(FLOW[:4], particle_indices=[2, 0], alpha=0.7)
    lines, dots = drawn.collections
    np.testing.assert_allclose(lines.get_colors(), dots.get_facecolors())


@pytest.mark.parametrize("color", ["red", RED, [RED] * 3, np.array([0.0, 1.0, 2.0])])
def test_colors_of_paths(color):
    drawn = plot_trajectory(FLOW[:4], color=color, particle_indices=[0, 1])
    lines, _ = drawn.collections
    assert len(lines.get_colors()) == 2
    if not isinstance(color, np.ndarray):
        np.testing.assert_allclose(lines.get_colors()[:, :3], [RED] * 2)


def test_paths_in_space(tmp_path):
    path = tmp_path / "paths.png"
    drawn = plot_trajectory(FLOW, plane="xyz", color="red", save_path=path, elev=5)
    assert drawn.elev == 5
    red = (imread(path)[..., 0] > imread(path)[..., 1] + 0.2).sum()
    assert red > 500
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("plane", ["xy", "xyz"])
def test_given_axes_and_arrays_are_used(plane):
    projection = "3d" if plane == "xyz" else None
    axes = new_axes(3 if projection else 2, (3, 3))
    options = {"plane": plane, "title": "mine", "every_kth": 2}
    assert plot_trajectory(FLOW.positions, FLOW.times, ax=axes, **options) is axes
    assert axes.get_title() == "mine"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"plane": "zz"}, ValueError, "plane"),
        ({"frame_index": 21}, IndexError, "21 frames"),
        ({"particle_indices": [3]}, IndexError, "3 particles"),
        ({"color": [0.0, 1.0]}, ValueError, "color has 2"),
        ({"wrong": 1}, TypeError, "wrong"),
    ],
)
def test_refusals(options, error, message):
    with pytest.raises(error, match=message):
        plot_trajectory(FLOW, **options)


def test_a_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for plot in (plot_particles, plot_trajectory):
        with pytest.raises(RuntimeError, match=r"matplotlib.*pip install"):
            plot(POINTS[None])


X, Y = np.meshgrid(np.linspace(0, 2, 21), np.linspace(0, 1, 11))


@pytest.mark.slow
def test_a_density_as_its_estimator_returns_it(tmp_path):
    points = np.random.default_rng(0).normal(size=(50, 3))
    path = tmp_path / "density.png"
    grid = KDEEstimator(points, resolution=20).evaluate_2d()
    drawn = plot_density_2d(*grid, title="KDE", save_path=path)
    (mesh,) = drawn.collections
    np.testing.assert_allclose(np.ravel(mesh.get_array()), np.ravel(grid[2]))
    assert drawn.get_title() == "KDE"
    assert drawn.figure.axes[1].get_ylabel() == "density"
    assert len(np.unique(imread(path).reshape(-1, 4), axis=0)) > 50
    assert pyplot.get_fignums() == []


def test_a_field_goes_across_by_its_first_index():
    values = np.zeros((5, 3))
    values[4, 0] = 1.0
    axes = plot_field_2d(values, (np.arange(5), np.arange(3)), "xz", label="FTLE")
    (mesh,) = axes.collections
    np.testing.assert_allclose(mesh.get_array(), values.T)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "z")
    assert axes.figure.axes[1].get_ylabel() == "FTLE"


def test_values_that_are_not_finite_are_left_blank():
    values = np.ones((3, 3))
    values[1, 1] = np.nan
    (mesh,) = plot_field_2d(values, (range(3), range(3))).collections
    assert mesh.get_array().mask.sum() == 1
    assert mesh.norm.vmin < 1 < mesh.norm.vmax


def test_contours_end_at_the_percentiles():
    density = np.arange(X.size, dtype=float).reshape(X.shape)
    axes = plot_density_2d(X, Y, density, "yz", levels=10, cutoff=(0, 50))
    (contours,) = axes.collections
    np.testing.assert_allclose(contours.levels, np.linspace(0, 115, 11))
    assert contours.extend == "max"
    assert axes.get_xlabel() == "y"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot_density_2d(X, Y, X[:3]), "one 2-D shape"),
        (lambda: plot_density_2d(X, Y, X, cutoff=(50, 50)), "cutoff"),
        (lambda: plot_density_2d(X, Y, X, levels=0), "levels"),
        (lambda: plot_density_2d(X, Y, X * np.nan), "finite"),
        (lambda: plot_density_2d(X, Y, X, plane="zz"), "plane"),
        (lambda: plot_field_2d(X, (range(3), range(3))), "this grid needs"),
        (lambda: plot_field_2d(X, (range(3),)), "two"),
    ],
)
def test_refusals_of_maps(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.fixture
def shown(monkeypatch):
    """As in a window: what pyplot is asked to show."""
    calls = []
    monkeypatch.setattr(inputs, "can_show", lambda: True)
    monkeypatch.setattr(pyplot, "show", lambda: calls.append(pyplot.get_fignums()))
    yield calls
    pyplot.close("all")


@pytest.mark.parametrize("show", [True, False])
def test_a_figure_is_shown_if_asked_and_there_is_a_window(shown, show, monkeypatch):
    with inputs.picture(figsize=(2, 2), show=show) as drawn:
        assert shown == []
    assert shown == ([[drawn.figure.number]] if show else [])
    pyplot.close("all")
    monkeypatch.setattr(inputs, "can_show", lambda: False)
    with inputs.picture(figsize=(2, 2), show=show):
        assert pyplot.get_fignums() == []


@pytest.mark.parametrize(
    ("ending", "opening"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("SVG", b"<?xml")]
)
def test_the_ending_decides_the_format(tmp_path, ending, opening):
    path = tmp_path / "made" / f"a.{ending}"
    figure = inputs.new_axes(2, (1, 1)).figure
    assert inputs.save_figure(figure, path) == path
    assert path.read_bytes().startswith(opening)
    assert list(path.parent.iterdir()) == [path]


def test_unknown_endings_are_refused(tmp_path):
    figure = inputs.new_axes(2, (1, 1)).figure
    with pytest.raises(ValueError, match=r"'a\.xyz'.*png"):
        inputs.save_figure(figure, tmp_path / "a.xyz")
