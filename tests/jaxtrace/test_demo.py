"""What the demo shows is true of its runs: the mesh, the flow and the figures."""

import numpy as np
import pytest

from jaxrig.progress import Meter
from jaxrig.report import Points, Table
from jaxtrace import demo
from report_parts import every_part


def test_the_mesh_is_the_channel_without_the_cylinder():
    points, cells = demo.cylinder_mesh()
    a, b, c = (points[cells[:, i], :2] for i in range(3))
    area = np.abs(np.linalg.det(np.stack([b - a, c - a], 1))).sum() / 2
    low, high = demo.CHANNEL_BOX[:, :2]
    exact = np.prod(high - low) - np.pi * demo.CYLINDER**2
    assert area == pytest.approx(exact, rel=2e-3)


@pytest.mark.slow
def test_the_flow_goes_around_the_cylinder():
    field = demo.channel_field()
    angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    normal = np.stack([np.cos(angle), np.sin(angle), np.zeros(60)], 1)
    points = (demo.CYLINDER * normal).astype(np.float32)
    through = (np.asarray(field.sample_at_positions(points, 0.0)) * normal).sum(1)
    assert np.abs(through).max() < 0.05 * demo.SPEED


@pytest.mark.slow
def test_the_whole_section(monkeypatch):
    monkeypatch.setattr(demo, "GYRE_PARTICLES", 500)
    monkeypatch.setattr(demo, "GYRE_FRAMES", 31)
    monkeypatch.setattr(demo, "CHANNEL_FRAMES", 61)
    monkeypatch.setattr(demo, "FTLE_NODES", (20, 10))
    section = demo.trace_section(Meter())
    assert isinstance(section.hero, Points)
    assert section.hero.positions.shape[1] == 500
    parts = list(every_part(section.parts))
    kinds = [type(part) for part in parts]
    assert kinds.count(Points) == 1
    (table,) = (part for part in parts if isinstance(part, Table))
    assert [row[1] for row in table.rows] == [500, 1728, 7500]


@pytest.mark.slow
def test_particles_of_the_channel_stay_out_of_the_cylinder(monkeypatch):
    monkeypatch.setattr(demo, "CHANNEL_FRAMES", 121)
    found = demo.run_channel(Meter()).trajectory
    radius = np.hypot(found.positions[..., 0], found.positions[..., 1])
    assert radius.min() > 0.9 * demo.CYLINDER
    assert found.generation[-1].sum() > 0
    assert demo.Run("x", found, 2.0, 0.0).rate == found.N * (found.T - 1) / 2
