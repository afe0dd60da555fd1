"""Densities, pictures, pages, exponents and trials say what the run was."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jaxrig.report import Points, Table
from jaxrig.report.images import png_size
from jaxtrace.analysis.statistics import analyze_trajectory_results
from jaxtrace.bounds import box_bounds
from jaxtrace.fields.grid import make_grid_field
from jaxtrace.io import write_grid
from jaxtrace.workflow import results
from jaxtrace.workflow.case import read_case
from jaxtrace.workflow.densities import estimate, flow_slab, plane_slab
from jaxtrace.workflow.results import (
    Outcome,
    compute_ftle,
    draw,
    figure_parts,
    moving_section,
    plane_axes,
    save_ftle,
    write_page,
)
from jaxtrace.workflow.selftest import TRIALS
from jaxtrace.workflow.tables import Density, Pictures
from trace_records import absorbing_channel, recycling_channel

BOX = box_bounds([[0, 0, 0], [2, 1, 1]])
CLOUD = (
    np.random.default_rng(0)
    .uniform([0.7, 0.3, 0.3], [1.3, 0.7, 0.7], (400, 3))
    .astype(np.float32)
)


@pytest.mark.parametrize("normalize", [True, "count", "relative"])
def test_on_a_sphere_a_density_is_per_square_meter(normalize):
    draw_ = np.random.default_rng(2)
    lat = np.degrees(np.arcsin(draw_.uniform(-1, 1, 4000)))
    places = np.stack([draw_.uniform(-180, 180, 4000), lat, 0 * lat], 1)
    globe, table = box_bounds([-180, 180, -90, 90]), Density(kde_normalize=normalize)
    (one,), notes = estimate(table, places, globe, "xy", radius=10.0)
    area = 4 * np.pi * 10.0**2
    area = {True: area, "count": area / 4000, "relative": 1.0}[normalize]
    # Even per area: as dense at the poles as at the equator, across the date line too.
    np.testing.assert_allclose(one.values * area, 1, atol=0.25)
    np.testing.assert_allclose(one.values[:, 0], one.values[:, -1], rtol=1e-3)
    assert one.method == "kde"
    assert "per area" in notes[0]


@pytest.mark.parametrize("plane", ["xy", "xz", "yz"])
def test_each_method_gives_a_density_of_one_particle(plane):
    table = Density(resolution=81, plane=plane)
    maps, notes = estimate(table, CLOUD, BOX, plane)
    assert [one.method for one in maps] == ["kde", "sph"]
    assert notes == []
    for one in maps:
        cell = np.diff(one.x[0]).mean() * np.diff(one.y[:, 0]).mean()
        assert one.values.sum() * cell == pytest.approx(1, abs=0.02)
        assert one.particles == 400
        assert one.facts()["highest"] == pytest.approx(one.values.max())


def test_a_slab_takes_only_what_is_near():
    table = Density(methods=("kde",))
    maps, _ = estimate(table, CLOUD, BOX, "yz", slab=(1.3, 0.2))
    near = np.abs(CLOUD[:, 0] - 1.3) <= 0.1
    assert maps[0].particles == near.sum() < 400


def test_absorbed_particles_do_not_count():
    gone = CLOUD.copy()
    gone[:100] = np.nan
    maps, _ = estimate(Density(methods=("kde",)), gone, BOX, "xy")
    assert maps[0].particles == 300


@pytest.mark.parametrize(
    ("positions", "box", "words"),
    [
        (CLOUD[:1], BOX, "1 particles are left"),
        (CLOUD, box_bounds([0, 2, 0, 0]), "the domain is flat"),
        (CLOUD * [1, 0, 1], BOX, "lie on a line"),
    ],
)
def test_without_a_map_there_is_a_reason(positions, box, words):
    maps, notes = estimate(Density(), np.asarray(positions, np.float32), box, "xy")
    assert maps == []
    assert len(notes) == 1
    assert words in notes[0]


def test_too_few_neighbors_are_said():
    table = Density(sph_adaptive=True, sph_n_neighbors=50)
    maps, notes = estimate(table, CLOUD[:20], BOX, "xy")
    assert [one.method for one in maps] == ["kde"]
    assert "lower sph_n_neighbors" in notes[0]


def test_slabs_scale_with_the_domain():
    assert plane_slab(Density(), BOX) is None
    assert plane_slab(Density(slab_position=0.5), BOX) == (0.5, pytest.approx(0.1))
    own = Density(slab_position=0.5, slab_thickness=0.01)
    assert plane_slab(own, BOX) == (0.5, 0.01)
    assert flow_slab(Density(), None, BOX) == pytest.approx((1.4, 0.2))
    assert flow_slab(Density(), 1.0, BOX) == pytest.approx((1.0, 0.2))
    assert flow_slab(Density(), None, box_bounds([0, 0, 0, 1])) is None


pytest.importorskip("matplotlib")
STARTS = np.linspace(0, 0.9, 5)
PATHS = recycling_channel(1.0, 1.0, STARTS, np.linspace(0, 2, 9))
STATISTICS = analyze_trajectory_results(PATHS)[0]


def test_all_pictures_are_drawn(tmp_path):
    maps, _ = estimate(Density(resolution=12), CLOUD, BOX, "xy")
    cuts, _ = estimate(Density(resolution=12), CLOUD, BOX, "yz", (1.0, 0.4))
    files = draw(Pictures(), tmp_path, PATHS, BOX, maps, cuts)
    assert [path.name for path in files] == [
        "final_particles.png",
        "trajectories.png",
        "density_kde.png",
        "density_sph.png",
        "slice_yz_kde.png",
        "slice_yz_sph.png",
    ]
    for path in files:
        assert min(png_size(path.read_bytes())) > 100


def test_particles_play_over_the_density_of_their_plane():
    maps, _ = estimate(Density(resolution=12), CLOUD, BOX, "xy")
    section = moving_section(PATHS, BOX, "xy", maps)
    points = section.hero
    assert isinstance(points, Points)
    assert points.positions.shape == (9, 5, 2)
    assert points.background is not None
    other = moving_section(PATHS, BOX, "xz", maps)
    assert isinstance(other.hero, Points)
    assert other.hero.background is None


def test_figures_count_what_became_of_particles():
    paths = absorbing_channel(1.0, 1.0, STARTS, np.linspace(0, 0.5, 6))
    statistics, _ = analyze_trajectory_results(paths)
    lengths, fates = figure_parts(paths, statistics)
    assert isinstance(lengths, Table)
    assert isinstance(fates, Table)
    left = int((STARTS + 0.5 >= 1).sum())
    assert fates.rows == (("active", 5 - left), ("exited", left))
    _, fates = figure_parts(PATHS, STATISTICS)
    assert isinstance(fates, Table)
    assert "entered later" in [row[0] for row in fates.rows]


def test_a_whole_page(tmp_path):
    plan: Any = SimpleNamespace(domain=BOX, field=None)
    outcome = Outcome(plan, PATHS, notes=["a note"], seconds={"tracking": 0.5})
    case = read_case({**SADDLE, "output": {"folder": str(tmp_path)}})
    page = write_page(case, outcome, [], STATISTICS).read_text()
    assert "<h1>5 particles in saddle</h1>" in page
    for words in ("<canvas", "a note", "seconds: tracking"):
        assert words in page


SADDLE = {
    "flow": {"name": "saddle", "rate": 0.5},
    "particles": {"bounds": [-1, 1, -2, 2]},
    "time": {"time_span": [1.0, 3.0]},
    "ftle": {"resolution": 9, "dt": 0.05},
}


def test_a_saddle_stretches_at_its_rate():
    found = compute_ftle(read_case(SADDLE))
    assert (found.t0, found.T) == (1.0, 2.0)
    assert found.values.shape == (5, 9)
    np.testing.assert_allclose(found.values, 0.5, rtol=1e-4)


def test_the_table_says_when_where_and_how_long():
    table = {"t0": 0.0, "T": -1.0, "bounds": [0, 1, 0, 1], "resolution": 4, "dt": 0.1}
    found = compute_ftle(read_case({**SADDLE, "ftle": table}))
    assert (found.t0, found.T) == (0.0, -1.0)
    np.testing.assert_array_equal(found.x[[0, -1]], [0, 1])
    np.testing.assert_allclose(found.values, 0.5, rtol=1e-4)
    with pytest.raises(ValueError, match=r"ftle\.T is 0"):
        compute_ftle(read_case({**SADDLE, "ftle": {"T": 0.0}}))


def test_exponents_of_a_sea_are_those_of_its_surface(monkeypatch):
    asked, axes = [], (np.arange(3.0), np.arange(3.0), np.array([-4e3, -10.0]))
    values = np.zeros((3, 3, 2, 3), np.float32)
    for radius in (None, 6.4e6):
        field = make_grid_field(values, axes, radius=radius)
        monkeypatch.setattr(results, "make_field", lambda case, f=field: (f, ()))
        still = lambda *given, level, **rest: asked.append(level) or np.zeros((2, 2))
        monkeypatch.setattr(results, "ftle", still)
        assert compute_ftle(read_case(SADDLE)).level == asked[-1]
    assert asked == [-2005.0, -10.0]


def test_a_span_beyond_the_data_is_refused(tmp_path):
    axes = (np.linspace(0, 1, 3),) * 2
    for time in (0.0, 1.0):
        path = tmp_path / f"flow_{time}.vti"
        write_grid(path, axes, np.ones((3, 3, 3)), "velocity", time)
    case = {"data": {"pattern": str(tmp_path / "*.vti")}, "ftle": {"T": 9.0}}
    with pytest.raises(ValueError, match=r"ftle\.T is 0 to 9, but the data"):
        compute_ftle(read_case(case))


def test_axes_are_as_dense_along_both():
    x, y = plane_axes(box_bounds([0, 3, 0, 1]), 31)
    assert (x.size, y.size) == (31, 11)
    with pytest.raises(ValueError, match="flat along x or y"):
        plane_axes(box_bounds([0, 1, 2, 2]), 5)


def test_arrays_and_picture(tmp_path):
    pytest.importorskip("matplotlib")
    found = compute_ftle(read_case(SADDLE))
    arrays, picture = save_ftle(found, tmp_path / "deep")
    with np.load(arrays) as saved:
        np.testing.assert_array_equal(saved["ftle"], found.values)
        assert saved["T"] == 2.0
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.name)
def test_trials_pass(trial):
    assert trial.run() <= trial.allowed
