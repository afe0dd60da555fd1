"""The ARC room of the studio: browse tasks, play them by hand, keep the games.

A game is one episode of the environment on one test of a task; every step is written to
the studio's folder as a recording, which `jaxrig arc replay` shows as well.
"""

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxarc.bits import PADDING
from jaxarc.draw.cells import read_cells
from jaxarc.learning.planner import plan
from jaxarc.learning.solver import load_solver, predict
from jaxarc.ops.operations import FIRST_CONTROL, get_operation_name
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.recording import (
    Box,
    TaskPlayer,
    load_recording,
    play_recording,
    player_config,
    save_recording,
)
from jaxarc.state import ArcEnvState
from jaxarc.tasks.parsers import TaskParser, open_dataset
from jaxarc.tasks.sources import DATASETS, dataset_kind
from jaxrig.studio.jobs import Job
from jaxrig.studio.rooms import Desk, Download, Room, required

GAMES = "games"
MOST_THUMBNAILS = 100
TESTING = 1  # the mode of an episode on test pairs
ATTEMPTS = 2  # as in the rules of ARC
_GAME_NAME = re.compile(r"[A-Za-z0-9]+-[\w.-]{1,60}-t(\d{1,2})-\d{1,4}")


@dataclass(eq=False)
class Game:
    """A player on a task, the steps taken back, and the answer it is compared with."""

    name: str
    dataset: str
    player: TaskPlayer
    answer: np.ndarray | None
    undone: list[tuple[int, ...]] = field(default_factory=list)

    @property
    def solved(self) -> bool:
        """Return whether the last submission was right."""
        return bool(self.player.solved[self.player.pair])


def datasets(desk: Desk, request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the data sets that are embedded or lie in the folder."""
    return [
        {
            "name": kind,
            "title": DATASETS[kind].title,
            "tasks": len(_parser(desk, kind).tasks.ids),
        }
        for kind in DATASETS
        if kind != "AGI12"
        and (not DATASETS[kind].download or _downloaded(desk, kind) is not None)
    ]


def _downloaded(desk: Desk, kind: str) -> Path | None:
    """Return where a data set that is not embedded lies in the folder."""
    inner = {"Concept": "corpus", "Mini": "data/MiniARC"}[kind]
    root = desk.folder.root
    folders = (root, *root.glob("data/*"), *root.glob("*"))
    return next((path for path in folders if (path / inner).is_dir()), None)


def _parser(desk: Desk, name: str) -> TaskParser:
    kind = dataset_kind(name)
    with desk.lock:
        parsers = desk.held.setdefault("parsers", {})
        if kind not in parsers:
            path = _downloaded(desk, kind) if DATASETS[kind].download else ""
            parsers[kind] = open_dataset(kind, path or "")
        return parsers[kind]


def tasks(desk: Desk, request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what tasks can be filtered by: size, colors, shape change, concept."""
    packed = _parser(desk, required(request, "dataset", str)).tasks
    solved = {game["task"] for game in games(desk, {}) if game["solved"]}
    found = []
    for row, name in enumerate(packed.ids):
        grids = slice(packed.starts[row], packed.starts[row + 1])
        sizes = packed.sizes[grids]
        train = 2 * int(packed.counts[row, 0])
        # Of the demonstrations: the size of an answer is part of the puzzle.
        given, wanted = sizes[0:train:2].prod(axis=1), sizes[1:train:2].prod(axis=1)
        same = (sizes[0:train:2] == sizes[1:train:2]).all()
        change = "same size" if same else "changes size"
        if (wanted < given).all():
            change = "shrinks"
        elif (wanted > given).all():
            change = "grows"
        concept, slash, _ = name.partition("/")
        found.append(
            {
                "id": name,
                "side": int(sizes.max()),
                "colors": int(packed.colors[grids].max()) + 1,
                "tests": int(packed.counts[row, 1]),
                "change": change,
                "concept": concept if slash else "",
                "solved": name in solved,
            }
        )
    return found


def thumbnails(desk: Desk, request: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the first demonstration of some tasks."""
    parser = _parser(desk, required(request, "dataset", str))
    names = required(request, "ids", list)[:MOST_THUMBNAILS]
    raw = {name: parser.get_raw_task(name).train[0] for name in names}
    return {name: [_rows(grid) for grid in pair] for name, pair in raw.items()}


def _rows(grid: np.ndarray | None) -> list[str] | None:
    """Return a grid as one string of digits per row."""
    if grid is None:
        return None
    return ["".join(str(int(cell)) for cell in row) for row in grid]


def task(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the demonstrations and the test inputs of a task, not the answers."""
    name = required(request, "task", str)
    raw = _parser(desk, required(request, "dataset", str)).get_raw_task(name)
    return {
        "id": name,
        "demonstrations": [[_rows(grid) for grid in pair] for pair in raw.train],
        "tests": [_rows(given) for given, _ in raw.test],
    }


def warm(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Compile the step for the shapes of a data set, so that the first one is quick."""
    parser = _parser(desk, required(request, "dataset", str))
    name = parser.get_fitting_task_ids()[0]
    game = _fresh(parser, "warm", name, 0)
    game.player.step(int(Op.FILL_0), (0, 0, 0, 0))
    _facts(game)
    return {"ready": True}


def _fresh(parser: TaskParser, name: str, task_id: str, pair: int) -> Game:
    raw = parser.get_raw_task(task_id)
    if not 0 <= pair < len(raw.test):
        raise ValueError(f"test {pair + 1}: {task_id} has {len(raw.test)} tests")
    config = player_config(parser.config)
    player = TaskPlayer(parser.get_task_by_id(task_id), task_id, config, TESTING, pair)
    return Game(name, parser.config.dataset_name, player, raw.test[pair][1])


def open_game(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Begin a game, or go on with one by its name."""
    with desk.lock:
        given = request.get("game")
        return _facts(_begin(desk, request) if given is None else _game(desk, request))


def _begin(desk: Desk, request: Mapping[str, Any]) -> Game:
    kind = dataset_kind(required(request, "dataset", str))
    task_id, pair = (
        required(request, "task", str),
        required({"pair": 0, **request}, "pair", int),
    )
    plain = re.sub(r"[^\w.-]", "_", task_id)[:60]
    taken = {game["name"] for game in games(desk, {})} | set(_held(desk))
    stem = f"{kind}-{plain}-t{pair + 1}"
    number = next(n for n in range(1, 10_000) if f"{stem}-{n}" not in taken)
    game = _fresh(_parser(desk, kind), f"{stem}-{number}", task_id, pair)
    _held(desk)[game.name] = game
    return game


def _held(desk: Desk) -> dict[str, Game]:
    return desk.held.setdefault("games", {})


def _game(desk: Desk, request: Mapping[str, Any]) -> Game:
    """Return a game in memory, or play one of the folder again up to its last step."""
    name = required(request, "game", str)
    if name not in _held(desk):
        path = _path(desk, name)
        if not path.is_file():
            raise FileNotFoundError(f"no game {name!r} in the studio's folder")
        saved = load_recording(path)
        parser = _parser(desk, saved.dataset)
        game = _fresh(parser, name, saved.task, saved.pair)
        for operation, *box in saved.actions:
            game.player.step(operation, _box(box))
        _held(desk)[name] = game
    return _held(desk)[name]


def _path(desk: Desk, name: str) -> Path:
    if not _GAME_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a game")
    return desk.folder.inside(f"{GAMES}/{name}.json")


def _box(numbers: Any) -> Box | None:
    if numbers is None:
        return None
    if not isinstance(numbers, list) or [type(n) for n in numbers] != [int] * 4:
        raise ValueError(f"box is {numbers!r}: give four whole numbers, two corners")
    row, column, last_row, last_column = numbers
    return row, column, last_row, last_column


def step(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Take a step with one of the environment's operations; save the game."""
    with desk.lock:
        game = _game(desk, request)
        operation = required(request, "operation", int)
        get_operation_name(operation)
        if FIRST_CONTROL <= operation != Op.RESET_CURRENT_PAIR:
            raise ValueError("a game is about one test: begin another one")
        game.player.step(operation, _box(request.get("box")))
        game.undone.clear()
        return _kept(desk, game)


def undo(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Take back the last step, or all of them."""
    with desk.lock:
        game = _game(desk, request)
        for _ in range(game.player.steps if request.get("all") else 1):
            taken = game.player.actions[-1:]
            game.player.undo()
            game.undone.extend(taken)
        return _kept(desk, game)


def redo(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Take the step again that was taken back last."""
    with desk.lock:
        game = _game(desk, request)
        if not game.undone:
            raise ValueError("there is no step to redo")
        operation, *box = game.undone.pop()
        game.player.step(operation, _box(box))
        return _kept(desk, game)


def _kept(desk: Desk, game: Game) -> dict[str, Any]:
    """Save a game and tell the other tabs."""
    if not desk.folder.read_only:
        save_recording(_path(desk, game.name), game.player.recording())
        _note(desk, game)
    facts = _facts(game)
    desk.publish(game=game.name, steps=facts["steps"])
    return facts


def _note(desk: Desk, game: Game) -> None:
    """Keep what the list of games shows; written only when it changes."""
    noted = _index(desk)
    about = {"task": game.player.task_id, "dataset": game.dataset}
    about |= {"solved": game.solved or noted.get(game.name, {}).get("solved", False)}
    if noted.get(game.name) != about:
        noted[game.name] = about
        desk.folder.write(f"{GAMES}/index.json", json.dumps(noted, indent=1))


def _index(desk: Desk) -> dict[str, Any]:
    path = desk.folder.inside(f"{GAMES}/index.json")
    return json.loads(path.read_text()) if path.is_file() else {}


def games(desk: Desk, request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the saved games, the newest first."""
    return [{"name": name, **about} for name, about in _index(desk).items()][::-1]


def _facts(game: Game) -> dict[str, Any]:
    """Return what the page shows of a game; the answer only once it is settled."""
    player, frame = game.player, game.player.frame
    wrong, answer = None, game.answer
    if player.done and not game.solved and answer is not None:
        # By its size, or in which cells.
        wrong = {"size": list(answer.shape), "cells": []}
        if frame.grid.shape == answer.shape:
            cells = np.argwhere(frame.grid != answer).tolist()
            wrong = {"size": None, "cells": cells}
    return {
        "game": game.name,
        "dataset": game.dataset,
        "task": player.task_id,
        "pair": player.pair,
        "grid": _rows(frame.grid),
        "steps": player.steps,
        "redo": len(game.undone),
        "done": player.done,
        "solved": game.solved,
        "history": [[get_operation_name(n), n, box] for n, *box in player.actions],
        "clipboard": _clipboard(player),
        "wrong": wrong,
    }


@jax.jit
def _clipboard_views(state: ArcEnvState) -> tuple[Any, Any]:
    return state.clipboard, state.clipboard_mask


def _clipboard(player: TaskPlayer) -> list[str] | None:
    content, mask = jax.device_get(_clipboard_views(player.state))
    return _rows(read_cells(content, mask).values) or None


def answer(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of a game's test, for whoever gives up."""
    with desk.lock:
        return {"answer": _rows(_game(desk, request).answer)}


def steps_left(desk: Desk, request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the actions by which the planner would go on from here to the answer."""
    with desk.lock:
        game = _game(desk, request)
        if game.answer is None:
            raise ValueError("the answer to this test is not known")
        frames = [*game.player.frames]
    rows = plan(frames[-1].grid, game.answer, frames[0].grid).tolist()
    return [
        {"name": get_operation_name(row[0]), "operation": row[0], "box": row[1:]}
        for row in rows
    ]


def guess(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the included solver, which does not see the answer; returns the job."""
    with desk.lock:
        game = _game(desk, request)

    def work(job: Job) -> None:
        job.show("compiling and asking the solver")
        solver = load_solver(None, "Mini" if game.dataset == "Mini" else "AGI1")
        found = predict(solver, game.player.task)[game.player.pair][:ATTEMPTS]
        shown = [{"grid": _rows(g), "confidence": share} for g, share in found]
        job.describe({"answers": shown})

    return desk.start(f"answers to {game.player.task_id}", work)


def export(desk: Desk, request: Mapping[str, Any]) -> Download:
    """Return games as a trajectory: observations, actions and rewards of each step.

    An action is its operation and the two corners of its box, as `BboxAction` takes
    them; grids are padded with -1. Without a game, all saved ones follow each other,
    and `starts` holds the first step of each.
    """
    with desk.lock:
        given = request.get("game")
        names = [given] if given else [game["name"] for game in games(desk, {})]
        if not names:
            raise ValueError("there is no saved game yet: play one first")
        records = [_game(desk, {"game": name}).player for name in names]
    seen, acts, rewards, ends, starts, ids = [], [], [], [], [0], []
    for player in records:
        recording = player.recording()
        for state, _, after, reward, _ in play_recording(recording, player.task):
            seen.append(np.asarray(state.working_grid, np.int8))
            rewards.append(float(reward))
            ends.append(bool(after.episode_done))
        acts += recording.actions
        starts.append(len(acts))
        ids.append(recording.task)
    height, width = np.max([(1, 1), *(grid.shape for grid in seen)], axis=0).tolist()
    grids = np.full((len(seen), height, width), PADDING, np.int8)
    for grid, whole in zip(seen, grids, strict=True):
        whole[: grid.shape[0], : grid.shape[1]] = grid
    file = io.BytesIO()
    np.savez_compressed(
        file,
        observations=grids,
        actions=np.array(acts, np.int16).reshape(-1, 5),
        rewards=np.array(rewards, np.float32),
        dones=np.array(ends, bool),
        starts=np.array(starts[:-1], np.int32),
        tasks=np.array(ids),
    )
    return Download(f"{given or 'games'}.npz", file.getvalue())


ROOM = Room(
    {
        function.__name__: function
        for function in (
            *(datasets, tasks, thumbnails, task, warm, open_game, step, undo, redo),
            *(games, answer, steps_left, guess, export),
        )
    }
)
