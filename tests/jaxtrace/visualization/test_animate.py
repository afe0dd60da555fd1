"""A Plotly figure holds every frame asked for, and its page needs no network."""

import sys

import numpy as np
import pytest

pytest.importorskip("plotly")

from jaxtrace.visualization.animate import (
    animate_trajectory_plotly_2d,
    animate_trajectory_plotly_3d,
    save_html,
)
from trace_records import absorbing_channel, uniform

FLOW = uniform([1, 0.5, 0.2], np.eye(3), np.linspace(0, 1, 7))


def test_frames_hold_the_positions_of_the_plane():
    figure = animate_trajectory_plotly_2d(FLOW, plane="yz", frame_stride=3)
    assert len(figure.frames) == 3
    for frame, index in zip(figure.frames, (0, 3, 6), strict=True):
        np.testing.assert_allclose(frame.data[0].x, FLOW.positions[index, :, 1])
        np.testing.assert_allclose(frame.data[0].y, FLOW.positions[index, :, 2])
    np.testing.assert_allclose(figure.data[0].x, FLOW.positions[0, :, 1])
    assert [step.label for step in figure.layout.sliders[0].steps][-1] == "t = 1"
    assert figure.layout.xaxis.title.text == "y"
    assert figure.layout.yaxis.scaleanchor == "x"


def test_axes_hold_every_frame():
    figure = animate_trajectory_plotly_3d(FLOW.positions, FLOW.times, every_kth=2)
    for axis, name in enumerate("xyz"):
        low, high = figure.layout.scene[f"{name}axis"].range
        assert low < FLOW.positions[..., axis].min()
        assert high > FLOW.positions[..., axis].max()
    np.testing.assert_allclose(figure.frames[2].data[0].z, FLOW.positions[2, ::2, 2])


def test_absent_particles_are_gaps():
    record = absorbing_channel(1.0, 1.0, [0.0, 0.9], [0.0, 0.5])
    figure = animate_trajectory_plotly_2d(record, max_points=2)
    np.testing.assert_array_equal(figure.frames[1].data[0].x, [0.5, np.nan])


def test_style_reaches_the_figure():
    figure = animate_trajectory_plotly_2d(
        FLOW, marker_size=5, marker_color="red", width=300, height=200, title="A"
    )
    assert (figure.data[0].marker.size, figure.data[0].marker.color) == (5, "red")
    layout = figure.layout
    assert (layout.width, layout.height, layout.title.text) == (300, 200, "A")


def test_the_page_brings_its_own_script(tmp_path):
    path = save_html(animate_trajectory_plotly_3d(FLOW), tmp_path / "out" / "a.html")
    page = path.read_text()
    assert 'src="http' not in page.split("<script", 1)[0]
    assert "<script src=" not in page
    assert len(page) > 1_000_000


def test_a_missing_plotly_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(RuntimeError, match=r"plotly.*pip install"):
        animate_trajectory_plotly_2d(FLOW)
