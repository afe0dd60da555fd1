"""Small buffers and environments, and what a hand-made loop over them gives."""

from typing import Any

import jax
import numpy as np

from arc_play import make_config, random_puzzle, stack
from jaxarc.config import JaxArcConfig
from jaxarc.envs.environment import Environment
from jaxarc.envs.starts import EnvParams

SHAPE = (5, 5)


def small_puzzles(count=4, seed=0, shape=SHAPE, **pairs):
    rng = np.random.default_rng(seed)
    demos = pairs.pop("demos", None)
    return [
        random_puzzle(rng, shape, demos=demos or 1 + index % 3, **pairs)
        for index in range(count)
    ]


def small_buffer(count=4, seed=0, shape=SHAPE, **pairs):
    """Tasks with 1, 2, 3, 1 and so on demonstrations and 3 tests."""
    puzzles = small_puzzles(count, seed, shape, **pairs)
    return stack([puzzle.as_task() for puzzle in puzzles])


STEPS = 12  # of an episode, unless a test asks for others


def clipping(
    config: JaxArcConfig | None = None, steps: int = STEPS, **groups: Any
) -> JaxArcConfig:
    """Actions out of range are clipped, so that a step holds no check."""
    action = {"validate_actions": False} | groups.pop("action", {})
    return config or make_config(SHAPE, steps=steps, action=action, **groups)


def small_env(config=None, buffer=None, **kw):
    buffer = small_buffer() if buffer is None else buffer
    return Environment(config or clipping(), buffer, **kw)


def small_params(config=None, buffer=None, **kw):
    buffer = small_buffer() if buffer is None else buffer
    return EnvParams.from_config(config or clipping(), buffer, **kw)


@jax.jit
def reset(env, key, params=None, start=None):
    return env.reset(key, params, **(start or {}))


@jax.jit
def step(env, state, action, params=None):
    return env.step(state, action, params)


@jax.jit
def auto_reset(env, state, done):
    return env.auto_reset(state, done)


@jax.jit
def observe(env, state):
    return env.observe(state)


def sample_actions(env, key, count):
    """Actions of an environment's own space, one after the other."""
    return env.action_space().sample(key, (count,))


@jax.jit
def play(env, key, actions):
    """A reset and one step for every action, in one compiled loop."""
    first = env.reset(key)
    last, steps = jax.lax.scan(lambda s, a: env.step(s, a), first[0], actions)
    return first, last, steps


def no_weak_types(tree):
    return not any(x.weak_type for x in jax.tree.leaves(tree))


def described(tree):
    """Structure, shapes and types: what a scan compares."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(x.shape, x.dtype) for x in leaves]
