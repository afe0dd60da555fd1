"""Whole episodes equal the naive simulator in every documented field, step by step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arc_reference as operations
from arc_episode_reference import EpisodeReference, Puzzle
from arc_play import Move, helpful_move, make_config, random_move, random_puzzle, shown
from jaxarc.envs.functional import arc_reset, arc_step

EVERY_TERM = {
    "step_penalty": -0.02,
    "success_bonus": 3.0,
    "similarity_weight": 2.0,
    "progress_bonus": 0.07,
    "invalid_action_penalty": -0.3,
    "control_operation_penalty": -0.05,
    "pair_switching_bonus": 0.11,
    "training_similarity_weight": 0.7,
    "evaluation_similarity_weight": 0.4,
    "demo_completion_bonus": 1.3,
    "test_completion_bonus": 2.9,
    "consecutive_success_bonus": 0.6,
    "efficiency_bonus_threshold": 12,
    "efficiency_bonus": 0.9,
    "unsolved_submission_penalty": -0.8,
}
FEW = (0, 1, 2, 5, 10, 12, 24, 26, 28, 29, 33, 34, 35, 37, 39, 40, 41)

# Name: shape, what the configuration says, kinds of actions, pairs, steps in all. Each
# kind is a program; what one selects is tested by itself, so few scenes have them all.
SCENES = {
    "defaults": (
        (30, 30),
        {"action": {"selection_format": "mask"}},
        ("bbox", "mask"),
        (3, 2),
        200,
    ),
    "all pairs, short ring, rejected": (
        (5, 7),
        {
            "steps": 60,
            "reward": EVERY_TERM,
            "action": {"allowed_operations": FEW, "invalid_operation_policy": "reject"},
            "episode": {
                "require_all_demos_solved": True,
                "allow_test_switching": True,
                "max_pairs_per_episode": 2,
                "success_threshold": 0.8,
            },
            "history": {"max_history_length": 7},
        },
        ("point",),
        (3, 3),
        200,
    ),
    "delayed, penalized, in context": (
        (10, 10),
        {
            "steps": 25,
            "reward": EVERY_TERM,
            "action": {
                "selection_format": "bbox",
                "dynamic_action_filtering": True,
                "context_dependent_operations": True,
                "invalid_operation_policy": "penalize",
            },
            "episode": {
                "training_reward_frequency": "submit",
                "allow_test_switching": True,
            },
        },
        ("mask",),
        (1, 2),
        250,
    ),
    "first success ends, clipped, no selections": (
        (12, 9),
        {
            "steps": 80,
            "reward": EVERY_TERM,
            "action": {"allowed_operations": FEW, "validate_actions": False},
            "episode": {
                "require_all_demos_solved": True,
                "terminate_on_first_success": True,
                "allow_test_switching": True,
            },
            "history": {"store_selection_data": False},
        },
        ("bbox",),
        (4, 3),
        200,
    ),
    "no history, passed through": (
        (3, 3),
        {
            "steps": 400,
            "reward": EVERY_TERM,
            "action": {
                "allowed_operations": (34,),
                "invalid_operation_policy": "passthrough",
            },
            "episode": {
                "require_all_demos_solved": True,
                "allow_test_switching": True,
                "require_all_tests_solved": False,
            },
            "history": {"enabled": False},
        },
        ("mask",),
        (3, 2),
        300,
    ),
}


def assert_invariants(fields):
    grid, mask = fields["working_grid"], fields["working_grid_mask"]
    np.testing.assert_array_equal(grid == -1, ~mask)
    assert grid[mask].min() >= 0
    assert grid[mask].max() <= 9
    height, width = operations.size_of(grid)
    assert mask[:height, :width].all()
    assert mask.sum() == height * width > 0


def assert_same(state, observation, wanted, message):
    fields = jax.device_get(shown(state))
    for name, value in wanted.fields().items():
        np.testing.assert_array_equal(fields[name], value, f"{name}, {message}")
    assert fields["working_grid"].dtype == np.int32
    np.testing.assert_array_equal(observation, fields["working_grid"])
    assert_invariants(fields)


def assert_same_outcome(outcome, wanted, done, message):
    (reward, ended, info), (paid, told) = jax.device_get(outcome), wanted
    np.testing.assert_allclose(reward, paid, rtol=1e-6, atol=1e-6, err_msg=message)
    assert reward.dtype == np.float32
    assert bool(ended) == done, message
    assert info.keys() == told.keys()
    for name, value in told.items():
        assert info[name] == value, f"{name}: {info[name]}, not {value}; {message}"


def step_both(state, wanted, move):
    """One step of environment and simulator, which must agree."""
    message = f"mode {wanted.mode}, step {wanted.steps}: {move}"
    told = wanted.step(move.clipped_operation(), move.raw())
    state, observation, *outcome = arc_step(state, move.action(), wanted.config)
    assert_same(state, observation, wanted, message)
    assert_same_outcome(tuple(outcome), told, wanted.done, message)
    return state


def play(rng, config, puzzle, kinds, key):
    """One episode and a few steps beyond its end, as the simulator has it."""
    mode = int(rng.integers(2))
    pair = int(rng.integers(len(puzzle.tests if mode else puzzle.demos)))
    state, observation = arc_reset(key, config, puzzle.as_task(), mode, pair)
    wanted = EpisodeReference(puzzle, config, mode, pair)
    if rng.random() < 0.3:
        wanted.permitted = set(rng.permutation(42)[:30].tolist())
        allowed = [operation in wanted.permitted for operation in range(42)]
        state = state.replace(allowed_operations_mask=jnp.asarray(allowed))
    assert_same(state, observation, wanted, "reset")
    help_rate, beyond = rng.choice([0.0, 0.5, 0.95]), int(rng.integers(1, 12))
    outside = 0 if config.action.validate_actions else 4
    while beyond:
        kind = str(rng.choice(kinds))
        if rng.random() < help_rate:
            move = helpful_move(rng, kind, wanted)
        else:
            move = random_move(rng, puzzle.shape, kind, outside)
        state = step_both(state, wanted, move)
        beyond -= wanted.done
    return wanted


@pytest.mark.parametrize("name", SCENES)
def test_episodes_equal_the_simulator(name):
    shape, groups, kinds, (demos, tests), steps = SCENES[name]
    config = make_config(shape, **groups)
    rng = np.random.default_rng(len(name))
    taken, solved = 0, [0, 0]
    while taken < steps:
        puzzle = random_puzzle(rng, shape, demos, tests)
        episode = play(rng, config, puzzle, kinds, jax.random.key(taken))
        taken += episode.steps
        solved[episode.mode] += len(episode.completed)
    assert min(solved) > 0


ASIDE = 0  # a fill of a cell that is black already
SWITCHING = {"allow_test_switching": True}


def follow(moves, tests, *, mode=1, **episode):
    """Point operations on the first cell, step by step: whether each ended it."""
    config = make_config((2, 2), reward=EVERY_TERM, episode=episode)
    black, unknown = np.zeros((2, 2), np.int32), np.full((2, 2), -1, np.int32)
    known = [(black, black if answered else unknown) for answered in tests]
    puzzle = Puzzle([(black, black)] * 3, known, (3, 3))
    wanted, ended = EpisodeReference(puzzle, config, mode, 0), []
    state, _ = arc_reset(jax.random.key(0), config, puzzle.as_task(), mode, 0)
    for operation in moves:
        move = Move("point", operation, (0, 0, 0, 0), np.zeros((2, 2), bool))
        state = step_both(state, wanted, move)
        ended.append(wanted.done)
    return ended, wanted


@pytest.mark.parametrize(
    ("moves", "ends", "solved"),
    [
        ([34, 37, 34, 41, 34], [False, False, False, False, True], {0, 1, 2}),
        ([34, 37, 5, 34], [False, False, False, True], {0}),
    ],
)
def test_right_answers_lead_through_all_tests_and_a_wrong_one_ends(moves, ends, solved):
    ended, episode = follow(moves, [True] * 3, **SWITCHING)
    assert ended == ends
    assert episode.completed == solved


# One configuration for both modes, which share a program: demonstrations do not read
# the rule of tests, nor tests that of demonstrations.
FEW_OF_EITHER = SWITCHING | {
    "require_all_demos_solved": True,
    "max_pairs_per_episode": 2,
}


def test_enough_answers_end_before_the_last_test():
    ended, _ = follow([34, 37, 34], [True] * 3, **FEW_OF_EITHER)
    assert ended == [False, False, True]


def test_a_pair_without_an_answer_is_never_solved():
    ended, episode = follow([34], [False], success_threshold=0.0)
    assert ended == [True]
    assert not episode.completed


def test_the_similarity_of_an_answer_is_shown_until_something_acts():
    seen = [
        float(follow(moves, [True] * 2, **SWITCHING)[1].score)
        for moves in ([ASIDE], [34], [34, 35], [34, 39], [34, ASIDE], [34, 37])
    ]
    assert seen == [0, 1, 1, 0, 0, 0]


def test_all_demonstrations_must_be_solved_where_asked():
    rules = {"mode": 0, "require_all_demos_solved": True}
    assert follow([ASIDE, 35, 40], [True], **rules)[0] == [False, False, True]
    assert follow([ASIDE, 35], [True], mode=0, **FEW_OF_EITHER)[0] == [False, True]
