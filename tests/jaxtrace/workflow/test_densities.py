"""Maps integrate to one over the domain; where there is none, a sentence says why."""

import numpy as np
import pytest

from jaxtrace.bounds import box_bounds
from jaxtrace.workflow.densities import (
    estimate,
    flow_slab,
    plane_slab,
    save_maps,
)
from jaxtrace.workflow.tables import Density

BOX = box_bounds([[0, 0, 0], [2, 1, 1]])
CLOUD = (
    np.random.default_rng(0)
    .uniform([0.7, 0.3, 0.3], [1.3, 0.7, 0.7], (400, 3))
    .astype(np.float32)
)


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


def test_maps_are_saved_by_name(tmp_path):
    maps, _ = estimate(Density(resolution=10), CLOUD, BOX, "xy")
    with np.load(save_maps(maps, tmp_path / "density.npz")) as found:
        assert set(found) == {
            f"{method}_xy_{part}"
            for method in ("kde", "sph")
            for part in ("x", "y", "density")
        }
        np.testing.assert_array_equal(found["kde_xy_density"], maps[0].values)
