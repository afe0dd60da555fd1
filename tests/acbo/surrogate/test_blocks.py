"""Oracle: the parts of a block applied by hand, and loops over triples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.surrogate.layers import Linear
from acbo.surrogate.model import PairBlock, Round, TurnBlock, fold, stack
from causal_parameters import fill

N, D, DIM = 3, 4, 4
KEY = jax.random.key(0)
ROW_MASK = np.array([True, False, True])
VAR_MASK = np.array([True, True, False, True])
TABLE = N, D
CELLS = np.random.default_rng(0).normal(size=(N * D, DIM)).astype(np.float32)
PAIRS = np.random.default_rng(1).normal(size=(D, D, DIM)).astype(np.float32)


@pytest.fixture(scope="module")
def results():
    """What a round gives, and what its parts give by hand, from one program."""

    def run(block: Round, x, row_mask, var_mask):
        turn: TurnBlock = block.variables
        middle = x + turn.attention(x, TABLE, var_mask, 1)
        across = middle + turn.perceptron(middle)
        along = across + block.rows.attention(across, TABLE, row_mask, 0)
        along += block.rows.perceptron(along)
        return {
            "turn": (turn(x, TABLE, var_mask, 1, None), across),
            "round": (block(x, row_mask, var_mask, None), along),
        }

    block = fill(Round, DIM, 2, 2, 2, 0.5, KEY, scale=0.5)
    return jax.jit(run)(block, CELLS, ROW_MASK, VAR_MASK)


@pytest.mark.parametrize("name", ["turn", "round"])
def test_blocks_are_their_parts_one_after_the_other(results, name):
    found, expected = results[name]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_key_drops_and_keys_differ():
    block = fill(TurnBlock, DIM, 2, 2, 2, 0.5, KEY, scale=0.5)
    run = jax.jit(
        lambda key: block(jnp.asarray(CELLS), TABLE, jnp.asarray(VAR_MASK), 1, key)
    )
    one, again, other = (np.asarray(run(jax.random.key(i))) for i in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    # Half of what attention and perceptron add is left out, so some cells stay.
    assert 0.1 < (one == CELLS).mean() < 0.5


def test_pairs_meet_in_the_third_variable():
    block = fill(PairBlock, DIM, 2, 2, KEY, scale=0.5)
    there = VAR_MASK[:, None] & VAR_MASK[None, :]

    @jax.jit
    def run(block, x, there):
        unit = block.norm(x)
        return block.parts(unit), block.gate(unit), block(x, there)

    @jax.jit
    def finish(block, x, met):
        middle = x + block.out(met)
        return middle + block.perceptron(middle)

    part, gate, found = map(np.asarray, run(block, PAIRS, there))
    a, b = np.split(part / (1 + np.exp(-gate)) * there[..., None], 2, axis=-1)
    met = np.zeros((D, D, 6), np.float32)
    for i in range(D):
        for j in range(D):
            for k in range(D):
                through, above, below = a[i, k] * b[k, j], a[k, i] * b[k, j], a[i, k]
                met[i, j] += np.concatenate([through, above, below * b[j, k]])
    expected = finish(block, PAIRS, met / np.sqrt(np.float32(3)))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def make_linear(key) -> Linear:
    return Linear(DIM, DIM, key)


@pytest.fixture(scope="module")
def stacked() -> Linear:
    return jax.jit(lambda key: stack(make_linear, key, 3))(KEY)


def test_blocks_of_a_stack_start_apart(stacked):
    weight = np.asarray(stacked.weight)
    assert weight.shape == (3, DIM, DIM)
    assert (weight[0] != weight[1]).all()


@pytest.mark.parametrize("remat", [False, True])
def test_a_folded_stack_is_one_block_after_the_other(stacked, remat):
    apply = lambda block, x, index: block(x) + index.astype(x.dtype)
    found = jax.jit(lambda x: fold(stacked, x, apply, remat))(CELLS)
    expected = CELLS
    for i in range(3):
        expected = expected @ np.asarray(stacked.weight[i]) + i
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_no_blocks_leave_all_as_it_is():
    assert stack(make_linear, KEY, 0) is None
    x = jnp.asarray(CELLS)
    assert fold(None, x, lambda block, x, index: x + 1, False) is x
