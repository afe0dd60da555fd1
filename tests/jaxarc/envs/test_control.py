"""Which pair a control operation leads to, for every place an episode can stand at."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_episode_reference import SWITCHES
from arc_play import make_config
from jaxarc.envs.rules import Place, next_pair

DEMO_SLOTS, TEST_SLOTS = 4, 3


def wanted(operation, mode, pair, count, solved, allowed):
    if not allowed or operation not in SWITCHES[mode]:
        return pair
    kind = SWITCHES[mode].index(operation)
    if kind < 2:
        return (pair + (1, -1)[kind]) % count
    unsolved = [index for index in range(count) if index not in solved]
    return min(unsolved, default=pair)


def cases():
    rng = np.random.default_rng(0)
    for mode, operation in itertools.product((0, 1), range(-1, 42)):
        for count in range(1, (DEMO_SLOTS, TEST_SLOTS)[mode] + 1):
            for pair in range(count):
                yield mode, operation, count, pair, rng.random(7) < 0.5


@pytest.mark.parametrize("demos", [False, True])
@pytest.mark.parametrize("tests", [False, True])
def test_every_place_and_operation(demos, tests):
    config = make_config(
        episode={"allow_demo_switching": demos, "allow_test_switching": tests}
    )
    found = list(cases())
    columns = map(np.array, zip(*found, strict=True))
    mode, operation, count, pair, completed = columns
    numbers = [
        values.astype(np.int32)
        for values in (operation, mode, pair, count, mode * DEMO_SLOTS)
    ]
    step = lambda flags, o, *place: next_pair(o, Place(*place), flags, config)
    got = np.asarray(jax.jit(jax.vmap(step))(completed, *numbers))
    for (mode, operation, count, pair, flags), after in zip(found, got, strict=True):
        solved = np.nonzero(flags[mode * DEMO_SLOTS :])[0]
        allowed = (demos, tests)[mode]
        assert after == wanted(operation, mode, pair, count, solved, allowed)


def test_a_mode_without_pairs_stays_where_it_is():
    place = Place(*map(jnp.int32, (0, 0, 0, 0)))
    after = next_pair(jnp.int32(35), place, jnp.zeros(4, bool), make_config())
    assert after == 0
