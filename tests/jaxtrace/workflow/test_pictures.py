"""The pictures asked for are drawn, and no others."""

import numpy as np
import pytest

from jaxrig.report.images import png_size
from jaxtrace.bounds import box_bounds
from jaxtrace.workflow.densities import estimate
from jaxtrace.workflow.pictures import draw
from jaxtrace.workflow.tables import Density, Pictures
from trace_records import recycling_channel

pytest.importorskip("matplotlib")
BOX = box_bounds([[0, 0, 0], [1, 1, 1]])
PATHS = recycling_channel(1.0, 1.0, np.linspace(0, 0.9, 5), np.linspace(0, 2, 9))
CLOUD = np.random.default_rng(0).uniform(0, 1, (40, 3)).astype(np.float32)


def drawn(folder, which):
    maps, _ = estimate(Density(resolution=12), CLOUD, BOX, "xy")
    cuts, _ = estimate(Density(resolution=12), CLOUD, BOX, "yz")
    table = Pictures(which=which)
    return draw(table, folder, PATHS, BOX, maps, cuts, 0.7)


def test_all_of_them(tmp_path):
    files = drawn(tmp_path, ("particles", "trajectories", "density", "slice"))
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


def test_none_and_one(tmp_path):
    assert drawn(tmp_path, ()) == []
    assert [path.name for path in drawn(tmp_path, ("particles",))] == [
        "final_particles.png"
    ]
