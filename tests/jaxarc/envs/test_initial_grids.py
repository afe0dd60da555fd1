"""Grids to begin with: of the kinds asked for, inside the active area."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import auto_reset, clipping, reset, small_buffer, small_env
from arc_hand import packed
from arc_reference import size_of
from arc_states import assert_same
from jaxarc.config import GridInitializationConfig
from jaxarc.envs.starts import draw_grid, permuted_grid, random_grid

WIDTH = 6
NONE = {
    "demo_weight": 0.0,
    "permutation_weight": 0.0,
    "empty_weight": 0.0,
    "random_weight": 0.0,
}


def only(kind, **more):
    settings: dict[str, Any] = NONE | {f"{kind}_weight": 2.0} | more
    return GridInitializationConfig(**settings)


def drawn(draw, grid, count):
    """Grids drawn from one by as many keys, in one program."""
    given, keys = packed(grid), jax.random.split(jax.random.key(0), count)
    return np.asarray(jax.jit(jax.vmap(lambda key: draw(key, given).cells()))(keys))


def example(height=4, width=3, side=WIDTH):
    grid = np.full((side, WIDTH), -1, np.int32)
    numbers = np.arange(height * width, dtype=np.int32).reshape(height, width)
    grid[:height, :width] = numbers % 10
    return grid


def draws(config, grid, count=60):
    return drawn(lambda key, given: draw_grid(key, given, config), grid, count)


@pytest.mark.slow  # compiles a program of its own
def test_a_copy_is_the_input():
    grid = example()
    for found in draws(only("demo"), grid, 5):
        np.testing.assert_array_equal(found, grid)


@pytest.mark.slow  # compiles a program of its own
def test_an_empty_grid_is_black_in_the_active_area():
    grid = example()
    for found in draws(only("empty"), grid, 5):
        np.testing.assert_array_equal(found, np.where(grid >= 0, 0, -1))


def inner(grid):
    height, width = size_of(grid)
    return grid[:height, :width]


@pytest.mark.parametrize(
    ("kind", "results"),
    [
        ("rotate", [lambda g: np.rot90(g, 1), lambda g: np.rot90(g, 2)]),
        ("rotate", [lambda g: np.rot90(g, 3)]),
        ("reflect", [np.fliplr, np.flipud]),
    ],
)
@pytest.mark.slow  # compiles a program of its own
def test_permutations_move_the_content_alone(kind, results):
    grid = example()
    found = draws(only("permutation", permutation_types=(kind,)), grid)
    seen = {inner(one).tobytes() + bytes(size_of(one)) for one in found}
    for move in results:
        wanted = np.ascontiguousarray(move(inner(grid)))
        assert wanted.tobytes() + bytes(wanted.shape) in seen
    assert len(seen) == (3 if kind == "rotate" else 2)


@pytest.mark.slow  # compiles a program of its own
def test_colors_are_renamed_one_to_one_and_black_stays():
    grid = example()
    found = draws(only("permutation", permutation_types=("color_remap",)), grid)
    for one in found:
        pairs = set(zip(grid.ravel().tolist(), one.ravel().tolist(), strict=True))
        assert len(pairs) == len(np.unique(grid))
        assert len({new for _, new in pairs}) == len(pairs)
        assert {(-1, -1), (0, 0)} <= pairs
    assert len({one.tobytes() for one in found}) > 30


@pytest.mark.slow  # compiles a program of its own
def test_without_a_square_only_half_turns():
    grid = example(side=5)
    turn = lambda key, given: permuted_grid(key, given, ("rotate",))
    for found in drawn(turn, grid, 20):
        np.testing.assert_array_equal(inner(found), np.rot90(inner(grid), 2))


@pytest.mark.slow  # compiles a program of its own
def test_no_kind_of_permutation_is_a_copy():
    grid = example()
    (found,) = drawn(lambda key, given: permuted_grid(key, given, ()), grid, 1)
    np.testing.assert_array_equal(found, grid)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.slow  # compiles a program of its own
def test_random_grids_fill_about_their_share(dense):
    grid = np.zeros((WIDTH, WIDTH), np.int32)
    grid[:, 5] = -1
    found = drawn(lambda key, given: random_grid(key, given, 0.4, dense), grid, 400)
    assert (found[:, :, 5] == -1).all()
    cells = found[:, :, :5]
    assert set(np.unique(cells).tolist()) == set(range(10))
    share = (cells > 0).mean()
    # Dense: scattered 0.28, and 0.3 of the empty cells with a filled neighbor.
    assert abs(share - 0.4) < 0.02 if not dense else 0.36 < share < 0.46


@pytest.mark.slow  # compiles a program of its own
def test_weights_are_shares():
    grid = example()
    config = GridInitializationConfig(
        demo_weight=2.0, permutation_weight=0.0, empty_weight=6.0, random_weight=0.0
    )
    found = draws(config, grid, 800)
    copies = sum(np.array_equal(one, grid) for one in found)
    assert 150 < copies < 250
    empty = np.where(grid >= 0, 0, -1)
    assert copies + sum(np.array_equal(one, empty) for one in found) == 800


def initialized(config, **kw):
    whole = dataclasses.replace(clipping(), grid_initialization=config)
    return small_env(whole, **kw)


def likeness(grid, wanted):
    union = (grid >= 0) | (wanted >= 0)
    return ((grid == wanted) & (grid >= 0)).sum() / max(union.sum(), 1)


@pytest.mark.parametrize(
    ("kind", "augment"), [("permutation", True), ("empty", False), ("random", False)]
)
@pytest.mark.slow  # compiles a program of its own
def test_a_start_is_as_similar_as_its_grid(kind, augment):
    env = initialized(only(kind), augment=augment)
    for number in range(6):
        state, step = reset(env, jax.random.key(number))
        arc = env.arc_state(state)
        grid = np.asarray(arc.working_grid)
        np.testing.assert_array_equal(step.observation, grid)
        wanted = likeness(grid, np.asarray(arc.target_grid))
        assert float(arc.similarity_score) == pytest.approx(wanted, abs=1e-6)
        assert float(step.extras["similarity"]) == float(arc.similarity_score)


@pytest.mark.slow  # compiles a program of its own
def test_in_test_mode_the_similarity_stays_hidden():
    env = initialized(only("demo"), episode_mode=1)
    state, step = env.reset(jax.random.key(0))
    assert float(step.extras["similarity"]) == 0.0
    assert float(env.arc_state(state).similarity_score) == 0.0


@pytest.mark.slow  # compiles a program of its own
def test_copies_change_nothing_but_the_way_there():
    plain, copied = small_env(), initialized(only("demo"))
    key = jax.random.key(4)
    assert_same(plain.reset(key), copied.reset(key))


def test_episodes_after_an_auto_reset_begin_with_a_drawn_grid_too():
    env = initialized(only("empty"), buffer=small_buffer())
    state, _ = env.reset(jax.random.key(0))
    after = auto_reset(env, state, jnp.asarray(True))
    grid = np.asarray(env.observe(after))
    assert set(np.unique(grid).tolist()) <= {-1, 0}
