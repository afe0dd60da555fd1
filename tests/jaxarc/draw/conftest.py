"""A small task with a missing answer, an episode, and SVG read back into cells."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from arc_samples import padded
from helpers import small_heap
from jaxarc.draw.episodes import EpisodeFrame
from jaxarc.types import JaxArcTask

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def little_garbage():
    """Managers of memory collect garbage when they end: let it be little."""
    with small_heap():
        yield


@pytest.fixture
def pairs():
    rng = np.random.default_rng(0)
    shapes = [((3, 4), (2, 2)), ((5, 2), (5, 6))]
    return [tuple(rng.integers(0, 10, size) for size in pair) for pair in shapes]


@pytest.fixture
def task(pairs):
    """Two demonstrations and one test whose output is not known."""
    given, wanted = zip(*pairs, strict=True)
    inputs, outputs = (padded(grids, 3, 6, 7) for grids in (given, wanted))
    tests, answers = padded([given[0]], 1, 6, 7), padded([], 1, 6, 7)
    return JaxArcTask(*inputs, *outputs, 2, *tests, *answers, 1)


@pytest.fixture
def frames():
    target = np.arange(6).reshape(2, 3)
    episode = [EpisodeFrame(np.zeros((2, 3), int), target=target, similarity=1 / 6)]
    for cell in range(1, 6):
        grid = np.where(np.arange(6).reshape(2, 3) <= cell, target, 0)
        selection = np.arange(6).reshape(2, 3) == cell
        similarity = float((grid == target).mean())
        episode.append(EpisodeFrame(grid, selection, cell, 0.5, similarity, target))
    return episode


class Picture:
    """What a reader of the SVG text finds in it."""

    def __init__(self, svg):
        self.root = ElementTree.fromstring(svg)
        self.texts = [node.text for node in self.root.iter(f"{SVG}text")]

    def cells(self, side):
        """Values of each grid in the picture, by the corners of its squares."""
        grids = []
        for group in self.root.iter(f"{SVG}g"):
            paths = [p for p in group if "data-value" in p.attrib]
            found = {
                (round(float(y) / side), round(float(x) / side)): int(
                    path.attrib["data-value"]
                )
                for path in paths
                for x, y in re.findall(r"M([\d.]+) ([\d.]+)", path.attrib["d"])
            }
            if found:
                rows, columns = np.max(list(found), axis=0) + 1
                grid = [[found[r, c] for c in range(columns)] for r in range(rows)]
                grids.append(np.array(grid))
        return grids

    def marks(self, kind):
        return [n for n in self.root.iter() if n.attrib.get("data-mark") == kind]


@pytest.fixture
def read_svg():
    return Picture
