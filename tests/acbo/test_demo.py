"""What the demo shows is true of its runs."""

import numpy as np
import pytest

from acbo import demo
from acbo.evaluation.report import EPISODES, Cell, Report, Result
from causal_policies import small_policy
from jaxrig.progress import Meter
from jaxrig.report import Figure, Player, Table
from report_parts import every_part


def test_regret_is_that_of_the_report():
    random = np.random.default_rng(0)
    cell = Cell("er1", 5, 20, 10)
    results = []
    for name, scale in (("policy", 0.1), ("exact Thompson", 0.2), ("random", 1.0)):
        curve = scale * random.random((20, 3))
        scores = {"simple_regret": curve[:, -1]}
        results.append(Result(cell, name, EPISODES, scores, {"simple_regret": curve}))
    report = Report(tuple(results), ("random",), 0, {})
    (table,) = [p for p in demo.regret_parts(report) if isinstance(p, Table)]
    assert [row[0] for row in table.rows] == ["policy", "exact Thompson", "random"]
    assert table.rows[0][1] == pytest.approx(results[0].scores["simple_regret"].mean())
    assert table.rows[0][3] == "below 0.0001"
    assert table.rows[2][3] == ""


@pytest.mark.slow
def test_the_whole_section(monkeypatch):
    monkeypatch.setattr(demo, "load_policy", small_policy)
    monkeypatch.setattr(demo, "MODELS", 4)
    monkeypatch.setattr(demo, "STEPS", 2)
    monkeypatch.setattr(demo, "GRAPHS", 2)
    section = demo.causal_section(Meter())
    parts = list(every_part(section.parts))
    kinds = [type(part) for part in parts]
    assert kinds.count(Figure) == 3
    assert kinds.count(Table) == 2
    (player,) = (part for part in parts if isinstance(part, Player))
    assert len(player.frames) == 3
    rates = [part for part in parts if isinstance(part, Table)][-1]
    assert rates.rows[2][2] == "1"
