"""The page plays the particles and says what the run was."""

import numpy as np

from jaxrig.report import Points, Table
from jaxtrace.analysis.statistics import analyze_trajectory_results
from jaxtrace.bounds import box_bounds
from jaxtrace.workflow.densities import estimate
from jaxtrace.workflow.page import (
    figure_parts,
    moving_section,
    rate_rows,
    write_page,
)
from jaxtrace.workflow.tables import Density
from trace_records import absorbing_channel, recycling_channel

BOX = box_bounds([[0, -1, -1], [1, 1, 1]])
TIMES = np.linspace(0, 2, 9)
STARTS = np.linspace(0, 0.9, 5)
CLOUD = np.random.default_rng(0).uniform(0, 1, (40, 3)).astype(np.float32)


def test_particles_play_over_the_density_of_their_plane():
    paths = recycling_channel(1.0, 1.0, STARTS, TIMES)
    maps, _ = estimate(Density(resolution=12), CLOUD, BOX, "xy")
    section = moving_section(paths, BOX, "xy", maps)
    (points,) = (part for part in section.parts if isinstance(part, Points))
    assert points.positions.shape == (9, 5, 2)
    assert points.background is not None
    other = moving_section(paths, BOX, "xz", maps)
    (points,) = (part for part in other.parts if isinstance(part, Points))
    assert points.background is None


def test_figures_count_what_became_of_particles():
    paths = absorbing_channel(1.0, 1.0, STARTS, np.linspace(0, 0.5, 6))
    statistics, _ = analyze_trajectory_results(paths, verbose=False)
    lengths, fates = figure_parts(paths, statistics)
    assert isinstance(lengths, Table)
    assert isinstance(fates, Table)
    left = int((STARTS + 0.5 >= 1).sum())
    assert fates.rows == (("active", 5 - left), ("exited", left))
    again = recycling_channel(1.0, 1.0, STARTS, TIMES)
    statistics, _ = analyze_trajectory_results(again, verbose=False)
    _, fates = figure_parts(again, statistics)
    assert isinstance(fates, Table)
    assert "entered later" in [row[0] for row in fates.rows]


def test_a_whole_page(tmp_path):
    paths = recycling_channel(1.0, 1.0, STARTS, TIMES)
    statistics, _ = analyze_trajectory_results(paths, verbose=False)
    path = write_page(
        tmp_path / "report.html",
        "A channel",
        paths,
        BOX,
        "xy",
        [],
        statistics,
        {"tracking": 0.5},
        ["a note"],
    )
    page = path.read_text()
    assert "<h1>A channel</h1>" in page
    assert "<canvas" in page
    assert "a note" in page
    assert ("seconds: tracking", 0.5) in rate_rows(paths, {"tracking": 0.5})
