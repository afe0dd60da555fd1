"""Oracle: what the page claims must be in it, and true of the run it came from."""

import numpy as np
import pytest

from jaxarc import demo
from jaxarc.learning.training import make_agent
from jaxarc.tasks.parsers import open_dataset
from jaxrig.progress import Meter
from jaxrig.report import Figure, Player, Table
from report_parts import every_part

pytestmark = pytest.mark.slow  # many programs to compile


@pytest.fixture(scope="module")
def tasks():
    return open_dataset("AGI1", split="train")


def test_the_steps_solve_both_tasks(tasks):
    test = demo.solve(tasks, demo.MIRRORED, demo.MIRRORED_STEPS, mode=1, pair=0)
    assert test.done
    assert test.frame.similarity == 1.0
    demonstration = demo.solve(
        tasks, demo.ENCLOSED, demo.ENCLOSED_STEPS, mode=0, pair=4
    )
    similarity = [frame.similarity for frame in demonstration.frames]
    assert similarity == sorted(similarity)
    assert similarity[-1] == 1.0
    with pytest.raises(AssertionError, match="did not solve 00d62c1b"):
        demo.solve(tasks, demo.ENCLOSED, demo.ENCLOSED_STEPS[:-1], mode=0, pair=4)


def test_the_agent_learns_on_every_task_with_small_grids(tasks):
    agent = make_agent(demo.LEARNER)
    packed = tasks.tasks
    ends = np.cumsum(2 * packed.counts.sum(axis=1))[:-1]
    sides = [int(grids.max()) for grids in np.split(packed.sizes, ends)]
    small = sum(side <= demo.SIDE for side in sides)
    assert agent.env.params.buffer.pairs.shape[0] == small
    assert agent.env.observation_space().shape == (demo.SIDE, demo.SIDE, 2)


def test_the_whole_section(monkeypatch):
    monkeypatch.setattr(demo, "ENVIRONMENTS", 4)
    monkeypatch.setattr(demo, "STEPS", 5)
    monkeypatch.setattr(demo, "UPDATES", 30)
    section = demo.arc_section(Meter())
    parts = list(every_part(section.parts))
    (claims,) = [part for part in parts if isinstance(part, Table)]
    assert claims.rows[2][1:] == ("1,000+", "4")
    players = [part for part in parts if isinstance(part, Player)]
    assert [len(player.frames) for player in players] == [6, 6]
    assert any(isinstance(part, Figure) for part in parts)
