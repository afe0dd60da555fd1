"""Spaces: samples are members, members are recognized, equal spaces are equal."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.envs import spaces

SPACES = {
    "discrete": spaces.Discrete(7),
    "grid": spaces.grid_space(4, 6),
    "selection": spaces.MultiBinary((4, 6)),
    "action": spaces.action_space(42, 4, 6),
    "unit": spaces.Bounded((3,), 0.0, 1.0, jnp.float32),
    "line": spaces.Bounded((3,), float("-inf"), float("inf"), jnp.float32),
}


@pytest.mark.parametrize("name", SPACES)
def test_samples_are_members(name):
    space = SPACES[name]
    drawn = space.sample(jax.random.key(1), (5, 4))
    drawn = jax.tree.map(lambda x: np.asarray(x).reshape(20, *x.shape[2:]), drawn)
    for index in range(20):
        assert space.contains(jax.tree.map(lambda x, i=index: x[i], drawn))


@pytest.mark.parametrize("name", SPACES)
def test_spaces_can_be_static_arguments(name):
    space = SPACES[name]
    sample = jax.jit(lambda key, space: space.sample(key), static_argnums=1)
    assert space.contains(sample(jax.random.key(2), space))


def test_every_member_is_drawn():
    drawn = np.asarray(spaces.Discrete(5).sample(jax.random.key(0), (500,)))
    assert set(drawn.tolist()) == set(range(5))
    cells = np.asarray(spaces.grid_space(3, 3).sample(jax.random.key(0), (200,)))
    assert set(cells.ravel().tolist()) == set(range(-1, 10))
    truths = np.asarray(spaces.MultiBinary((3, 3)).sample(jax.random.key(0), (400,)))
    assert 0.4 < truths.mean() < 0.6


def test_what_is_no_member():
    assert not spaces.Discrete(3).contains(3)
    assert not spaces.Discrete(3).contains(-1)
    assert not spaces.Discrete(3).contains(1.0)
    assert not spaces.Discrete(3).contains(np.zeros(1, np.int32))
    grid = np.zeros((4, 6), np.int32)
    assert spaces.grid_space(4, 6).contains(grid)
    assert spaces.grid_space(4, 6).contains(grid - 1)
    assert not spaces.grid_space(4, 6).contains(grid - 2)
    assert not spaces.grid_space(4, 6).contains(grid + 10)
    assert not spaces.grid_space(4, 6).contains(grid.astype(np.float32))
    assert not spaces.grid_space(4, 6).contains(grid[:3])
    assert spaces.MultiBinary((4, 6)).contains(grid)
    assert not spaces.MultiBinary((4, 6)).contains(grid + 2)
    assert not spaces.MultiBinary((4, 6)).contains(grid[:3])


def test_dictionaries_need_exactly_their_names():
    space = spaces.action_space(42, 2, 2)
    fine = {"operation": 3, "selection": np.ones((2, 2), bool)}
    assert space.contains(fine)
    assert not space.contains({"operation": 3})
    assert not space.contains(fine | {"more": 1})
    assert not space.contains(fine | {"operation": 42})
    assert not space.contains(3)
