"""The network at its least: what must not matter does not, and sets by loops."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.surrogate.model import (
    LARGEST_SET,
    SPARSE_PRIOR,
    Prediction,
    SurrogateConfig,
    SurrogateNetwork,
    set_logits,
)
from causal_parameters import fill

N, D = 6, 4
CONFIG = SurrogateConfig(
    dim=8, layers=1, heads=2, key_size=4, widening_factor=2, pair_dim=8, pair_layers=1
)


@pytest.fixture(scope="module")
def network():
    """Every parameter large enough to matter."""
    return fill(SurrogateNetwork, CONFIG, jax.random.key(0), scale=0.5)


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


def test_row_order_and_what_is_in_padded_rows_change_nothing(read):
    values, intervened, row_mask, var_mask = make(rows=5)
    plain = read(values, intervened, row_mask, var_mask, 2)
    values = np.where(row_mask[:, None], values, 7.0).astype(np.float32)
    order = np.array([5, 3, 0, 4, 2, 1])
    moved = read(values[order], intervened[order], row_mask[order], var_mask, 2)
    for a, b in zip(jax.tree.leaves(moved), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_order_of_variables_changes_nothing(read):
    values, intervened, row_mask, var_mask = make(columns=3)
    order = np.array([2, 3, 1, 0])
    plain = read(values, intervened, row_mask, var_mask, 2)
    moved = read(values[:, order], intervened[:, order], row_mask, var_mask[order], 0)
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


def test_the_answer_is_finite_without_rows(read):
    found = read(*make(rows=0), 1)
    assert np.isfinite(found.edge_logits[~np.eye(D, dtype=bool)]).all()


def test_pairs_do_not_depend_on_the_target(read):
    edges = [read(*make(), target).edge_logits for target in range(D)]
    for other in edges[1:]:
        np.testing.assert_array_equal(other, edges[0])


def test_before_anything_is_learned_edges_are_rare(network):
    silent = jax.tree.map(jnp.zeros_like, network.head)
    fresh = eqx.tree_at(lambda n: n.head, network, silent)
    read = jax.jit(lambda pairs: fresh.read(pairs, jnp.ones(D, bool), jnp.asarray(0)))
    found = read(jnp.ones((D, D, CONFIG.pair_dim)))
    np.testing.assert_array_equal(found.parent_logits[1:], SPARSE_PRIOR)
    np.testing.assert_array_equal(found.member_logits[1:], SPARSE_PRIOR)


def test_sets_by_loops():
    random = np.random.default_rng(3)
    d = LARGEST_SET + 2
    single = lambda *shape: jnp.asarray(random.normal(size=shape), jnp.float32)
    members = single(d).at[0].set(-jnp.inf)
    factors, bias = single(d, 3), single(LARGEST_SET + 1)
    found = Prediction(single(d, d), members, members, factors, bias)
    membership = random.random((6, d)) < np.array([[0, 0.2, 0.5, 0.5, 0.9, 1]]).T
    membership[:, 0] = False  # the target
    mask = np.array([True, True, True, False, True, True])
    logits = np.asarray(set_logits(found, jnp.asarray(membership), jnp.asarray(mask)))
    for k, row in enumerate(membership):
        inside = np.flatnonzero(row)
        expected = float(bias[min(len(inside), LARGEST_SET)])
        expected += sum(float(members[i]) for i in inside)
        expected += sum(
            float(factors[i] @ factors[j]) for i in inside for j in inside if i < j
        )
        wanted = expected if mask[k] else -np.inf
        np.testing.assert_allclose(logits[k], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dim": 0}, "dim=0 must be at least 1"),
        ({"pair_dim": -1}, "pair_dim=-1 must be at least 1"),
        ({"layers": -1}, "layers and pair_layers must not be negative"),
        ({"dropout": 1.0}, "dropout=1.0 must be within 0 and 1"),
        ({"compute_dtype": "half"}, "'half' is not one of: float32, bfloat16"),
    ],
)
def test_bad_configurations_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **change)
