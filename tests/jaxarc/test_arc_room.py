"""The ARC room of the studio: filters, steps of the environment, and what is kept."""

import io

import numpy as np
import pytest

pytest.importorskip("starlette")

from jaxarc import studio
from jaxarc.recording import load_recording, run_again
from jaxarc.tasks import open_dataset
from jaxrig.studio.jobs import Hub, Jobs
from jaxrig.studio.rooms import Desk, Workspace

TASK = "27a77e38"
SUBMIT, RESIZE = 34, 33


@pytest.fixture(scope="module")
def raw():
    return open_dataset("AGI1").get_raw_task(TASK)


@pytest.fixture
def desk(tmp_path):
    return Desk("arc", Workspace(tmp_path), Jobs(Hub()))


def test_a_game_is_played_kept_and_exported(desk, raw, tmp_path):
    given, wanted = raw.test[0]
    facts = studio.open_game(desk, {"dataset": "AGI1", "task": TASK})
    game = {"game": facts["game"]}
    assert facts["grid"] == ["".join(map(str, row)) for row in given]
    wrong = studio.step(desk, game | {"operation": SUBMIT})
    (cell,) = np.argwhere(given != wanted).tolist()
    assert wrong["wrong"] == {"size": None, "cells": [cell]}
    with pytest.raises(ValueError, match="ended"):
        studio.step(desk, game | {"operation": 3})
    studio.undo(desk, game)
    before = studio.step(desk, game | {"operation": 28, "box": [0, 0, 1, 2]})
    assert [len(before["clipboard"]), len(before["clipboard"][0])] == [2, 3]
    back = studio.undo(desk, game)
    assert (back["steps"], back["redo"], back["clipboard"]) == (0, 1, None)
    assert studio.redo(desk, game) == before
    fill = {"operation": int(wanted[tuple(cell)]), "box": cell * 2}
    left = studio.steps_left(desk, game)
    assert [one["operation"] for one in left] == [fill["operation"], SUBMIT]
    assert left[0]["box"] == cell * 2
    studio.step(desk, game | fill)
    assert studio.step(desk, game | {"operation": SUBMIT})["solved"]
    saved = load_recording(tmp_path / f"games/{facts['game']}.json")
    assert len(run_again(saved, saved.load_task())) == 4
    assert [one["solved"] for one in studio.games(desk, {})] == [True]
    solved = [one for one in studio.tasks(desk, {"dataset": "AGI1"}) if one["solved"]]
    assert [one["id"] for one in solved] == [TASK]
    held = np.load(io.BytesIO(studio.export(desk, {}).content))
    assert held["observations"].shape == (3, 30, 30)
    assert held["actions"].tolist()[1] == [fill["operation"], *cell, *cell]
    assert held["dones"].tolist() == [False, False, True]
    # The last observation is the one that was submitted: the answer.
    last = held["observations"][-1][: wanted.shape[0], : wanted.shape[1]]
    np.testing.assert_array_equal(last, wanted)


def test_wrong_requests_are_refused_in_words(desk):
    begin = {"dataset": "AGI1", "task": TASK}
    game = {"game": studio.open_game(desk, begin)["game"]}
    for call, request, words in (
        (studio.step, game | {"operation": 99}, "operations are 0 to"),
        (studio.step, game | {"operation": "3"}, "operation is '3'"),
        (studio.step, game | {"operation": 37}, "a game is about one test"),
        (studio.step, game | {"operation": 3, "box": [0, 0, 0, 40]}, "outside"),
        (studio.step, game | {"operation": 3, "box": [1]}, "four whole numbers"),
        (studio.undo, game, "no step to undo"),
        (studio.redo, game, "no step to redo"),
        (studio.open_game, {"game": "../../etc/passwd"}, "not the name of a game"),
        (studio.open_game, begin | {"pair": 7}, "has 1 tests"),
        (studio.open_game, begin | {"pair": "x"}, "a whole number"),
        (studio.task, begin | {"task": "00000000"}, "not one of"),
        (studio.tasks, {"dataset": "nothing"}, "not known"),
        (studio.export, {}, "no saved game"),
    ):
        with pytest.raises(ValueError, match=words):
            call(desk, request)


def test_filters_say_what_the_grids_are(desk, raw):
    (found,) = (t for t in studio.tasks(desk, {"dataset": "AGI1"}) if t["id"] == TASK)
    grids = [grid for pair in (*raw.train, *raw.test) for grid in pair]
    assert found["side"] == max(max(grid.shape) for grid in grids)
    assert found["colors"] == max(int(grid.max()) for grid in grids) + 1
    assert found["change"] == "same size"
    pictures = studio.thumbnails(desk, {"dataset": "AGI1", "ids": [TASK]})
    assert pictures[TASK][1][0] == "".join(map(str, raw.train[0][1][0]))
