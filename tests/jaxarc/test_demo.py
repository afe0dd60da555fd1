"""Oracle: what the page claims must be in it, and true of the run it came from."""

import numpy as np
import pytest

from jaxarc import demo
from jaxarc.learning.training import make_agent
from jaxarc.registration import make
from jaxarc.rollouts import random_rollout
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


def test_steps_that_solve_nothing_are_not_shown(tasks):
    with pytest.raises(AssertionError, match="did not solve 00d62c1b"):
        demo.solve(tasks, demo.ENCLOSED, demo.ENCLOSED_STEPS[:-1], mode=0, pair=4)


def test_episodes_can_be_played(tasks):
    env, _ = make("AGI1-00d62c1b")
    results = [random_rollout(env, "point", 2, 20)]
    parts = list(every_part(demo.episode_parts(tasks, results)))
    players = [part for part in parts if isinstance(part, Player)]
    assert [len(player.frames) for player in players] == [6, 6]
    assert any(isinstance(part, Figure) for part in parts)


@pytest.mark.parametrize(
    ("form", "size"), [("point", 24_000), ("bbox", 32_000), ("mask", 3_616_000)]
)
def test_history_takes_what_was_promised(tasks, form, size):
    assert demo.history_bytes(tasks, form) == size


def test_the_agent_learns_on_every_task_with_small_grids(tasks):
    agent = make_agent(demo.LEARNER)
    packed = tasks.tasks
    ends = np.cumsum(2 * packed.counts.sum(axis=1))[:-1]
    sides = [int(grids.max()) for grids in np.split(packed.sizes, ends)]
    small = sum(side <= demo.SIDE for side in sides)
    assert agent.env.params.buffer.pairs.shape[0] == small
    assert agent.env.observation_space().shape == (demo.SIDE, demo.SIDE, 2)


def test_agents_have_a_row_each():
    env, _ = make("AGI1-00d62c1b")
    results = [random_rollout(env, "point", 2, 20)]
    (table,) = (part for part in demo.agent_parts(results) if isinstance(part, Table))
    assert table.rows[0][:1] == ("point",)
    assert table.rows[0][2] == results[0].episodes


def test_the_whole_section(monkeypatch):
    monkeypatch.setattr(demo, "ENVIRONMENTS", 4)
    monkeypatch.setattr(demo, "STEPS", 5)
    monkeypatch.setattr(demo, "UPDATES", 30)
    section = demo.arc_section(Meter())
    tables = [part for part in every_part(section.parts) if isinstance(part, Table)]
    assert [len(table.rows) for table in tables] == [3, 6]
