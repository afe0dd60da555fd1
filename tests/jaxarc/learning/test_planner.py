"""Plans, executed by the environment itself: it must end with the grid asked for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_samples import DATA, needs_data, write_tasks
from jaxarc.learning.demonstrations import (
    PlaceObservationWrapper,
    demonstrate,
    make_player,
)
from jaxarc.learning.evaluation import evaluate
from jaxarc.learning.planner import KINDS, plan
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.recording import load_recordings, run_again, save_recordings
from jaxarc.registration import make
from jaxarc.tasks.task_json import RawTask

SIDE = 12


def random_grid(rng, colors=10, side=SIDE):
    return rng.integers(0, colors, rng.integers(1, side + 1, 2)).astype(np.int8)


def known_pairs():
    """Pairs with the actions that explain them, Submit apart."""
    tall = np.arange(1, 7, dtype=np.int8).reshape(3, 2)
    square = np.arange(9, dtype=np.int8).reshape(3, 3)
    large = np.random.default_rng(0).integers(0, 10, (6, 7)).astype(np.int8)
    ring = np.zeros((7, 7), np.int8)
    ring[1:6, 1:6] = 3
    ring[2:5, 2:5] = 0
    flooded, boxed = ring.copy(), np.zeros((7, 7), np.int8)
    flooded[ring == 3] = 5
    boxed[2:6, 1:5] = 4
    boxed[3, 2:4] = 7
    return {
        "nothing": (square, square, []),
        "mirrored": (tall, tall[:, ::-1], [Op.FLIP_HORIZONTAL]),
        "upside down": (tall, tall[::-1], [Op.FLIP_VERTICAL]),
        "rotated": (square, np.rot90(square), [Op.ROTATE_CC]),
        "transposed": (
            *(np.tile(tall, (3, 3)), np.tile(tall, (3, 3)).T),
            [Op.RESIZE, Op.ROTATE_C, Op.FLIP_HORIZONTAL, Op.RESIZE],
        ),
        "moved": (square, np.roll(square, -1, 0), [Op.MOVE_UP]),
        "cropped": (large, large[2:5, 3:7], [Op.COPY, Op.RESIZE, Op.PASTE]),
        "tiled": (
            *(square + 1, np.tile(square + 1, (2, 2))),
            [Op.COPY, Op.RESIZE, Op.PASTE, Op.PASTE, Op.PASTE],
        ),
        "flooded": (ring, flooded, [Op.FLOOD_FILL_5]),
        "boxes": (np.zeros((7, 7), np.int8), boxed, [Op.FILL_4, Op.FILL_7]),
    }


def random_pairs():
    rng = np.random.default_rng(1)
    pairs = [(random_grid(rng), random_grid(rng, c)) for c in (2, 3, 10) * 4]
    return [*pairs, (pairs[0][0], np.full((SIDE, SIDE), 9, np.int8))]


@pytest.mark.parametrize("name", known_pairs())
def test_a_plan_finds_what_explains_a_pair(name):
    given, wanted, operations = known_pairs()[name]
    found = plan(given, wanted)
    assert sorted(found[:, 0]) == sorted([*operations, Op.SUBMIT])
    assert found[-1, 0] == Op.SUBMIT


def test_without_tools_every_wrong_cell_is_painted():
    for given, wanted in random_pairs():
        resized = np.zeros_like(wanted)
        rows, columns = np.minimum(given.shape, wanted.shape)
        resized[:rows, :columns] = given[:rows, :columns]
        count = (resized != wanted).sum() + (given.shape != wanted.shape) + 1
        painted = plan(given, wanted, kinds=())
        assert len(painted) == count
        np.testing.assert_array_equal(painted[:, 1:3], painted[:, 3:])
        assert len(plan(given, wanted)) <= count


def test_the_input_is_brought_back_where_that_is_shorter():
    rng = np.random.default_rng(2)
    given = rng.integers(0, 10, (5, 5))
    found = plan(np.zeros((3, 4), int), given, given)
    np.testing.assert_array_equal(found[:, 0], [Op.COPY_INPUT, Op.SUBMIT])


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        (np.zeros((0, 3), int), "rectangle of whole numbers"),
        (np.zeros(3, int), "rectangle of whole numbers"),
        (np.zeros((2, 2)), "float64: it is a rectangle"),
        (np.array([[-1, 2]]), "holds -1 to 2: colors are 0 to 9; cut its padding"),
    ],
)
def test_what_is_no_grid_is_refused(grid, words):
    with pytest.raises(ValueError, match=words):
        plan(np.zeros((2, 2), int), grid)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"\['zoom'\] are not known: choose from box"):
        plan(np.zeros((2, 2), int), np.ones((2, 2), int), kinds=("zoom",))


@pytest.mark.slow  # the solver's candidates are played in the same way
def test_the_environment_scores_plans_as_the_answers_they_draw(tmp_path):
    """In test mode, answers hidden: right ones are solved, wrong ones are not."""
    known = [pair[:2] for pair in known_pairs().values()]
    pairs = [*known, *random_pairs()]
    tasks = [RawTask(f"task{n:02}", (p,), (p,)) for n, p in enumerate(pairs)]
    env, _ = make(
        "AGI1-all",
        dataset_path=str(write_tasks(tmp_path, tasks)),
        episode_mode="test",
        max_grid_height=SIDE,
        max_grid_width=SIDE + 1,
        max_episode_steps=150,
    )
    right = {(row, 0): [wanted] for row, (_, wanted) in enumerate(pairs)}
    wrong = (pairs[3][1] + 1) % 10
    player = make_player(env, right | {(3, 0): [wrong, pairs[3][1]]})
    watched = PlaceObservationWrapper(env)
    result = evaluate(player, watched, jax.random.key(0), 1, greedy=True)
    np.testing.assert_array_equal(np.flatnonzero(~result.solved[0]), [3])
    second = player.sample(jax.random.key(0), jnp.array([3, 0, 0])).action
    np.testing.assert_array_equal(list(vars(second).values()), plan(*pairs[3])[0])
    lengths = [len(plan(*pair)) for n, pair in enumerate(pairs) if n != 3]
    np.testing.assert_array_equal(np.delete(result.steps[0], 3), lengths)


@pytest.mark.slow  # compiles programs of its own
@pytest.mark.parametrize("kinds", [KINDS, ()])
def test_expert_episodes_are_saved_and_run_again(tmp_path, kinds):
    rng = np.random.default_rng(3)
    pairs = [(random_grid(rng, 10, 5), random_grid(rng, 3, 5)) for _ in range(4)]
    tasks = [RawTask("one", tuple(pairs[:3]), (pairs[3],))]
    folder = write_tasks(tmp_path, tasks)
    longest = max(len(plan(*pair, kinds=kinds)) for pair in pairs[:3])
    env, _ = make("Mini-all", dataset_path=str(folder), max_episode_steps=longest - 2)
    recordings, lengths = demonstrate(env, kinds)
    assert len(lengths) == 3
    # An episode on a demonstration ends one action earlier, before Submit.
    assert len(recordings) == sum(n <= longest - 1 for n in lengths) < 3
    path = save_recordings(tmp_path / "all.jsonl", recordings)
    loaded = load_recordings(path)
    assert loaded == recordings
    for recording in loaded:
        assert recording.form == ("bbox" if kinds else "point")
        assert run_again(recording, recording.load_task())[-1].similarity == 1.0


@needs_data
@pytest.mark.slow  # a thousand plans
@pytest.mark.parametrize(
    ("name", "folder", "pairs"),
    [("Mini", "MiniARC", 528), ("Concept", "ConceptARC", 427)],
)
def test_every_demonstration_of_the_data_sets_is_drawn(name, folder, pairs):
    env, _ = make(f"{name}-all", dataset_path=str(DATA / folder))
    recordings, lengths = demonstrate(env)
    assert len(recordings) == len(lengths) == pairs
    assert np.median(lengths) <= 4
