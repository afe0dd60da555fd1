"""Oracle: the parts of a block applied by hand, loops over triples, symmetries."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.surrogate import model
from acbo.surrogate.layers import Linear
from causal_parameters import fill

N, D = 6, 4
CONFIG = model.SurrogateConfig(
    dim=8, layers=1, heads=2, key_size=4, widening_factor=2, pair_dim=8, pair_layers=1
)


@pytest.fixture(scope="module")
def network():
    """Every parameter large enough to matter."""
    return fill(model.SurrogateNetwork, CONFIG, jax.random.key(0), scale=0.5)


@pytest.fixture(scope="module")
def read(network):
    """One program for all cases of one shape."""
    run = jax.jit(lambda *data: network(*data))

    def answer(values, intervened, row_mask, var_mask, target):
        found = run(values, intervened, row_mask, var_mask, jnp.asarray(target))
        return jax.tree.map(np.asarray, found)

    return answer


def make(rows=5, columns=D, seed=1):
    """Scores of `rows` rows and `columns` variables, padded with zeros."""
    random = np.random.default_rng(seed)
    row_mask, var_mask = np.arange(N) < rows, np.arange(D) < columns
    there = row_mask[:, None] & var_mask
    values = np.where(there, random.normal(size=(N, D)), 0).astype(np.float32)
    intervened = there & (np.arange(N)[:, None] >= 3) & (np.arange(D) == 1)
    return values, intervened, row_mask, var_mask


def test_the_answer_depends_on_the_data(read):
    one, other = read(*make(), 2), read(*make(seed=2), 2)
    change = one.parent_logits[[0, 1, 3]] - other.parent_logits[[0, 1, 3]]
    assert abs(change).min() > 1e-3


def test_what_is_not_there_has_no_probability(read):
    found = read(*make(columns=3), 2)
    hidden = np.eye(D, dtype=bool) | (np.arange(D) == 3)
    hidden |= hidden.T
    np.testing.assert_array_equal(np.isneginf(found.edge_logits), hidden)
    np.testing.assert_array_equal(found.parent_logits, found.edge_logits[:, 2])
    np.testing.assert_array_equal(np.isneginf(found.member_logits), hidden[:, 2])
    np.testing.assert_array_equal(found.interaction[2:], 0.0)
    probs = np.asarray(found.parent_probs)
    assert ((probs > 0) == ~hidden[:, 2]).all()


def test_the_order_of_rows_and_variables_and_padding_change_nothing(read):
    values, intervened, row_mask, var_mask = make(rows=5, columns=3)
    plain = read(values, intervened, row_mask, var_mask, 2)
    values = np.where(row_mask[:, None], values, 7.0).astype(np.float32)
    rows, order = np.array([5, 3, 0, 4, 2, 1]), np.array([2, 3, 1, 0])
    turn = lambda cells: cells[rows][:, order]
    moved = read(turn(values), turn(intervened), row_mask[rows], var_mask[order], 0)
    close = lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5)
    close(moved.edge_logits, plain.edge_logits[order][:, order])
    close(moved.parent_logits, plain.parent_logits[order])
    close(moved.member_logits, plain.member_logits[order])
    close(moved.interaction, plain.interaction[order])
    close(moved.size_bias, plain.size_bias)


def test_a_larger_bucket_changes_nothing(network, read):
    """Three variables and five rows alone, and in a bucket of four and six."""
    values, intervened, row_mask, var_mask = make(rows=5, columns=3)
    padded = read(values, intervened, row_mask, var_mask, 2)
    alone = jax.jit(lambda *data: network(*data))(
        values[:5, :3],
        intervened[:5, :3],
        row_mask[:5],
        var_mask[:3],
        jnp.asarray(2),
    )
    np.testing.assert_allclose(padded.edge_logits[:3, :3], alone.edge_logits, atol=1e-5)
    np.testing.assert_allclose(padded.interaction[:3], alone.interaction, atol=1e-5)
    np.testing.assert_allclose(padded.size_bias, alone.size_bias, atol=1e-5)


def test_without_rows_the_answer_is_finite_and_pairs_are_those_of_any_target(read):
    found = read(*make(rows=0), 1)
    assert np.isfinite(found.edge_logits[~np.eye(D, dtype=bool)]).all()
    edges = [read(*make(), target).edge_logits for target in range(D)]
    for other in edges[1:]:
        np.testing.assert_array_equal(other, edges[0])


def test_before_anything_is_learned_edges_are_rare(network):
    silent = jax.tree.map(jnp.zeros_like, network.head)
    fresh = eqx.tree_at(lambda n: n.head, network, silent)
    read = jax.jit(lambda pairs: fresh.read(pairs, jnp.ones(D, bool), jnp.asarray(0)))
    found = read(jnp.ones((D, D, CONFIG.pair_dim)))
    np.testing.assert_array_equal(found.parent_logits[1:], model.SPARSE_PRIOR)
    np.testing.assert_array_equal(found.member_logits[1:], model.SPARSE_PRIOR)


def test_sets_by_loops():
    random = np.random.default_rng(3)
    d = model.LARGEST_SET + 2
    single: Any = lambda *shape: random.normal(size=shape).astype(np.float32)
    members = single(d)
    members[0] = -np.inf
    factors, bias = single(d, 3), single(model.LARGEST_SET + 1)
    found = model.Prediction(single(d, d), members, members, factors, bias)
    membership = random.random((6, d)) < np.array([[0, 0.2, 0.5, 0.5, 0.9, 1]]).T
    membership[:, 0] = False  # the target
    mask = np.array([True, True, True, False, True, True])
    logits = np.asarray(jax.jit(model.set_logits)(found, membership, mask))
    for k, row in enumerate(membership):
        inside = np.flatnonzero(row)
        expected = float(bias[min(len(inside), model.LARGEST_SET)])
        expected += sum(float(members[i]) for i in inside)
        expected += sum(
            float(factors[i] @ factors[j]) for i in inside for j in inside if i < j
        )
        wanted = expected if mask[k] else -np.inf
        np.testing.assert_allclose(logits[k], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dim": 0}, "dim is 0: give a whole number from 1"),
        ({"pair_dim": -1}, "pair_dim is -1"),
        ({"layers": -1}, "layers is -1: give a whole number from 0"),
        ({"dropout": 1.0}, "dropout is 1.0: give a number from 0 to 0.99"),
        ({"compute_dtype": "half"}, "'half': give one of float32, bfloat16"),
    ],
)
def test_bad_configurations_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **change)


N_BLOCKS, D_BLOCKS, DIM = 3, 4, 4
BLOCKS = model.SurrogateConfig(
    dim=DIM, heads=2, key_size=2, widening_factor=2, dropout=0.5
)
KEY = jax.random.key(0)
VAR_MASK = np.array([True, True, False, True])
TABLE = N_BLOCKS, D_BLOCKS
CELLS = (
    np.random.default_rng(0).normal(size=(N_BLOCKS * D_BLOCKS, DIM)).astype(np.float32)
)
PAIRS = (
    np.random.default_rng(1).normal(size=(D_BLOCKS, D_BLOCKS, DIM)).astype(np.float32)
)


def test_a_key_drops_and_keys_differ():
    block = fill(model.TurnBlock, BLOCKS, KEY, scale=0.5)
    run = jax.jit(
        lambda key: block(jnp.asarray(CELLS), TABLE, jnp.asarray(VAR_MASK), 1, key)
    )
    one, again, other = (np.asarray(run(jax.random.key(i))) for i in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    # Half of what attention and perceptron add is left out, so some cells stay.
    assert 0.1 < (one == CELLS).mean() < 0.5


def test_pairs_meet_in_the_third_variable():
    block = fill(model.PairBlock, DIM, 2, 2, KEY, scale=0.5)
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
    met = np.zeros((D_BLOCKS, D_BLOCKS, 6), np.float32)
    for i in range(D_BLOCKS):
        for j in range(D_BLOCKS):
            for k in range(D_BLOCKS):
                through, above, below = a[i, k] * b[k, j], a[k, i] * b[k, j], a[i, k]
                met[i, j] += np.concatenate([through, above, below * b[j, k]])
    expected = finish(block, PAIRS, met / np.sqrt(np.float32(3)))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def make_linear(key) -> Linear:
    return Linear(DIM, DIM, key)


@pytest.fixture(scope="module")
def stacked() -> Linear:
    return jax.jit(lambda key: model.stack(make_linear, key, 3))(KEY)


@pytest.mark.parametrize("remat", [False, True])
def test_a_folded_stack_is_one_block_after_the_other(stacked, remat):
    assert (stacked.weight[0] != stacked.weight[1]).all()
    apply = lambda block, x, index: block(x) + index.astype(x.dtype)
    found = jax.jit(lambda x: model.fold(stacked, x, apply, remat))(CELLS)
    expected = CELLS
    for i in range(3):
        expected = expected @ np.asarray(stacked.weight[i]) + i
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert model.fold(model.stack(make_linear, KEY, 0), found, apply, remat) is found
