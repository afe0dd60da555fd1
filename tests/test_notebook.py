"""Notebooks show our objects as pages of their own, drawn from the objects."""

import html
import re

import jax
import numpy as np
import pytest

from acbo.named.tables import Experiments
from acbo.posterior.distribution import create_parent_set_posterior
from acbo.posterior.order_chains import GraphPosterior
from jaxarc.config import JaxArcConfig
from jaxarc.envs.functional import batch_reset
from jaxarc.recording import TaskPlayer, player_config
from jaxarc.tasks import open_dataset
from jaxrig.notebook import Shown
from jaxtrace.fields import DoubleGyre, Rotation
from jaxtrace.trajectory import Trajectory

TASK = "6d0aefbc"


def page_of(shown: Shown) -> str:
    """Return the page inside the frame, as a browser reads the attribute."""
    frame = re.fullmatch(r'<iframe srcdoc="([^"]*)".*</iframe>', shown._repr_html_())
    assert frame
    page = html.unescape(frame.group(1))
    assert page.startswith("<!doctype html>")
    assert page.count("<script>") == 1
    return page


@pytest.fixture(scope="module")
def tasks():
    return open_dataset("AGI1", split="train")


def test_a_task_shows_all_its_pairs(tasks):
    task = tasks.get_task_by_id(TASK)
    page = page_of(task)
    assert all(f"Train {n}" in page for n in (1, 2, 3, 4))
    assert "Test 1" in page
    stack = jax.tree.map(lambda x: np.stack([x, x]), task)
    assert "A stack of 2 tasks" in page_of(stack)


def test_a_state_and_an_episode_show_their_grids(tasks):
    task, config = tasks.get_task_by_id(TASK), player_config(tasks.config)
    player = TaskPlayer(task, TASK, config)
    player.step(0, (0, 0, 0, 0))
    assert "After 1 steps." in page_of(player.state)
    assert "2 / 2" in page_of(player)
    keys = jax.random.split(jax.random.key(0), 3)
    states, _ = batch_reset(keys, JaxArcConfig(), task)
    assert "A batch of 3 states" in page_of(states)


def test_a_trajectory_plays_and_counts():
    turn = np.linspace(0, 1, 5)[:, None]
    paths = np.stack(
        [np.cos(turn) * [1, 2], np.sin(turn) * [1, 2], 0 * turn * [1, 2]], -1
    )
    page = page_of(Trajectory(paths, turn[:, 0]))
    assert 'data-frames="5" data-points="2"' in page
    assert re.search(r"in the domain at the end</td><td[^>]*>2<", page)
    paths[:, 1] = np.nan  # a seed that is nowhere
    assert re.search(
        r"mean path length</td><td[^>]*>0\.9", page_of(Trajectory(paths, turn[:, 0]))
    )
    for frames, particles in ((0, 2), (3, 0)):
        none = Trajectory(np.zeros((frames, particles, 3)), np.arange(float(frames)))
        assert re.search(r"in the domain at the end</td><td[^>]*>0<", page_of(none))


def test_a_field_shows_its_domain_and_its_speed():
    page = page_of(DoubleGyre())
    assert "DoubleGyre" in page
    assert "0 to 2" in page
    assert "image/png" in page
    # Known everywhere: there is no domain to draw, and it says so.
    assert "<td>x</td><td>all</td>" in page_of(Rotation())


def test_posteriors_show_probabilities():
    sets = [frozenset(), frozenset({"a"})]
    posterior = create_parent_set_posterior("y", sets, np.array([0.25, 0.75]))
    assert "Causes of y" in page_of(posterior)
    assert "0.75" in page_of(posterior)
    probs = np.array([[0, 0.9], [0.1, 0]])
    graphs = np.zeros((4, 2, 2), bool)
    rest = np.zeros((2, 2)), np.array([[1], [0]]), np.array([[0.9, 0.1], [0.1, 0.9]])
    assert "0.90" in page_of(GraphPosterior(("a", "b"), graphs, probs, *rest))
    names = tuple(f"v{n}" for n in range(13))
    many = np.zeros((13, 13))
    many[2, 5] = 0.7
    graphs = np.zeros((1, 13, 13), bool)
    rest = np.zeros((13, 13)), np.zeros((13, 0), int), np.ones((13, 1))
    listed = page_of(GraphPosterior(names, graphs, many, *rest))
    assert re.search("<td>v2</td><td>v5</td><td[^>]*>0.7<", listed)


def test_a_table_marks_what_was_set():
    values, marks = np.array([[1.5, 2.0], [3.0, 4.0]]), np.eye(2, dtype=bool)[::-1]
    marks[0] = False
    seen = Experiments(values, marks, ("a", "y"), "y", {"a": (0, 1)}, "MAXIMIZE")
    page = page_of(seen)
    assert "[3]" in page
    assert "[1.5]" not in page
    assert "maximize" in page
