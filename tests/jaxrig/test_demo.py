"""Oracle: what the page claims must be in it, and true of the run it came from."""

import re

from jaxrig import demo
from jaxrig.demo import batching_parts, guard_parts, learner_parts
from jaxrig.progress import Meter
from jaxrig.report import Code, Player, Table, Text


def test_the_guard_shows_the_real_message():
    code = next(p for p in guard_parts() if isinstance(p, Code))
    assert "start: float32[]" in code.text
    assert "int32[]" in code.text


def test_every_chunk_size_compiles_once_and_gives_the_same_bits(monkeypatch):
    monkeypatch.setattr(demo, "ITEMS", 1000)
    monkeypatch.setattr(demo, "CHUNKS", (64, 300, 1000))
    table = next(p for p in batching_parts() if isinstance(p, Table))
    assert [(row[0], row[3], row[4]) for row in table.rows] == [
        (64, 1, True),
        (300, 1, True),
        (1000, 1, True),
    ]


def test_the_learner_comes_within_two_percent_of_the_optimum():
    text, _, player = learner_parts(Meter())
    assert isinstance(text, Text)
    shares = [float(s) for s in re.findall(r"([\d.]+)%", text.text)]
    assert len(shares) == 3
    assert all(98.0 <= share <= 100.0 for share in shares)
    assert isinstance(player, Player)
    assert len(player.frames) == len(player.captions) == demo.UPDATES // 2 + 1
