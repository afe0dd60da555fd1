"""Files have the format of their names, and folders are made."""

import sys

import numpy as np
import pytest

from acbo.pictures.files import save_graph, save_svg
from jaxrig.report.images import png_size

PROBS = np.array([[0.0, 0.9], [0.0, 0.0]])


def test_svg(tmp_path):
    path = save_graph(tmp_path / "deep" / "g.svg", ("X", "Y"), PROBS, "Y")
    assert path.read_text().startswith("<svg")
    assert save_svg(tmp_path / "a" / "b.svg", "<svg/>").read_text() == "<svg/>"


@pytest.mark.slow
def test_png(tmp_path):
    pytest.importorskip("matplotlib")
    path = save_graph(tmp_path / "deep" / "g.png", ("X $", "Y"), PROBS, "Y")
    width, height = png_size(path.read_bytes())
    assert width > height > 100


def test_without_matplotlib_the_way_out_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="PNG needs matplotlib"):
        save_graph(tmp_path / "g.png", ("X", "Y"), PROBS)
    assert list(tmp_path.iterdir()) == []


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"use \.svg or \.png"):
        save_graph(tmp_path / "g.pdf", ("X", "Y"), PROBS)
