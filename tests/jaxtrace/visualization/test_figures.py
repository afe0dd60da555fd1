"""Figures are written whole and stay out of pyplot unless pyplot is to show them."""

import pytest

pytest.importorskip("matplotlib")
from matplotlib import pyplot

from jaxtrace.visualization import figures


@pytest.fixture
def shown(monkeypatch):
    """As in a window: what pyplot is asked to show."""
    calls = []
    monkeypatch.setattr(figures, "can_show", lambda: True)
    monkeypatch.setattr(pyplot, "show", lambda: calls.append(pyplot.get_fignums()))
    yield calls
    pyplot.close("all")


def test_without_a_window_pyplot_knows_of_no_figure():
    figure = figures.open_axes(None, (2, 2), show=True).figure
    figures.finish(figure.add_subplot(), None, show=True)
    assert pyplot.get_fignums() == []


def test_with_a_window_the_figure_is_shown(shown):
    figure = figures.new_figure((2, 2), show=True)
    figures.finish(figure.add_subplot(), None, show=True)
    assert shown == [[figure.number]]


def test_what_is_not_to_be_shown_is_not(shown):
    figure = figures.new_figure((2, 2), show=False)
    figures.finish(figure.add_subplot(), None, show=True)
    assert shown == []


def test_given_axes_are_used():
    axes = figures.new_figure(None, show=False).add_subplot()
    assert figures.open_axes(axes, None, show=True) is axes


@pytest.mark.parametrize(
    ("ending", "opening"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("SVG", b"<?xml")]
)
def test_the_ending_decides_the_format(tmp_path, ending, opening):
    path = tmp_path / "made" / f"a.{ending}"
    figure = figures.new_figure((1, 1), show=False)
    assert figures.save_figure(figure, path) == path
    assert path.read_bytes().startswith(opening)
    assert list(path.parent.iterdir()) == [path]


def test_unknown_endings_are_refused(tmp_path):
    figure = figures.new_figure((1, 1), show=False)
    with pytest.raises(ValueError, match=r"'a\.xyz'.*png"):
        figures.save_figure(figure, tmp_path / "a.xyz")
