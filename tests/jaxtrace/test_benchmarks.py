"""Benchmarks measure what they say: sizes, items, and fields that are right."""

import numpy as np
import pytest

from jaxtrace.benchmarks import (
    BOX,
    box_tetrahedra,
    grid_gyre,
    lattice_nodes,
    mesh_gyre,
    track_benchmark,
)
from jaxtrace.fields.analytic import DoubleGyre
from jaxtrace.tracking.boundary import reflective_boundary


def test_tetrahedra_fill_the_box():
    shape = (4, 3, 5)
    _, points = lattice_nodes(shape)
    corners = points.reshape(-1, 3)[box_tetrahedra(shape)]
    sides = corners[:, 1:] - corners[:, :1]
    volumes = np.abs(np.linalg.det(sides)) / 6
    assert volumes.min() > 0
    assert volumes.sum() == pytest.approx(np.prod(BOX[1] - BOX[0]))


@pytest.mark.parametrize("make", [grid_gyre, mesh_gyre])
@pytest.mark.slow
def test_fields_are_the_double_gyre(make):
    field = make((33, 17, 2), 9)
    points = np.array([[0.31, 0.42, 0.5], [1.7, 0.9, 0.2]], np.float32)
    exact = DoubleGyre().sample_at_positions(points, 1.3)
    np.testing.assert_allclose(field.sample_at_positions(points, 1.3), exact, atol=5e-3)


def test_a_measurement_counts_particle_steps():
    found = track_benchmark(
        lambda: grid_gyre((5, 4, 3), 3),
        {"mirror": lambda: reflective_boundary(BOX)},
        {"grid": [5, 4, 3]},
        particles=20,
        frames=6,
        repeats=2,
    )
    (one,) = found
    assert (one.case, one.items, one.unit) == ("mirror", 100, "particle-steps")
    assert one.shapes == {"grid": [5, 4, 3], "particles": 20, "frames": 6}
    assert len(one.timing.seconds) == 2
    assert one.state_bytes > 3 * 60 * 3 * 4
