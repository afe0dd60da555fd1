from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from acbo.graphs import bucket_parent_sets, parent_set_membership
from acbo.posterior import exact
from acbo.posterior.dag_sums import parent_set_probs, set_masks
from acbo.posterior.scores import constrained_scores, gather_statistics
from causal_graphs import (
    all_dags,
    enumerate_posterior,
    linear_rows,
    linear_weights,
)
from jaxrig.testing import assert_one_trace

PRIORS = ("dag", "order")
NAMES = ["A", "B", "C", "Y"]


def example(d=4, seed=0, rows=40):
    rng = np.random.default_rng(seed)
    weights = linear_weights(d, rng, 0.6)
    values, intervened = linear_rows(weights, rng, rows - 10, 10, d - 1)
    intervened[-1, :2] = True  # two variables set in one row
    return values, intervened


def arrays_of(values, intervened):
    rows, d = values.shape
    arrays = jnp.asarray(values, float), jnp.asarray(intervened)
    return *arrays, jnp.ones(rows, bool), jnp.ones(d, bool)


def edges_matrix(d, pairs):
    matrix = np.zeros((d, d), bool)
    for i, j in pairs:
        matrix[i, j] = True
    return jnp.asarray(matrix)


@partial(jax.jit, static_argnames="max_parents")
def everything(arrays, required, forbidden, max_parents):
    """Scores, and for both priors the probabilities of all parent sets."""
    scores = constrained_scores(
        gather_statistics(*arrays),
        arrays[3],
        required,
        forbidden,
        max_parents=max_parents,
    )
    return scores, {p: parent_set_probs(scores, max_parents, p) for p in PRIORS}


def check_against_enumeration(
    d, max_parents=3, required=(), forbidden=(), atol=1e-8, x64=True
):
    pairs = edges_matrix(d, required), edges_matrix(d, forbidden)
    with jax.enable_x64(x64):
        arrays = arrays_of(*example(d))
        scores, found = everything(arrays, *pairs, max_parents)
        for prior in PRIORS:
            edges, sets = enumerate_posterior(
                np.asarray(scores, float), set_masks(d, max_parents), prior
            )
            assert found[prior].dtype == arrays[0].dtype
            np.testing.assert_allclose(found[prior], sets, atol=atol, rtol=0)
            held = [parent_set_membership(d, max_parents, j) for j in range(d)]
            chances = np.einsum("jk,jki->ij", found[prior], held)
            np.testing.assert_allclose(chances, edges, atol=d * atol, rtol=0)
            assert all(chances[i, j] == pytest.approx(1) for i, j in required)
            assert all(chances[i, j] == 0 for i, j in forbidden)


def test_number_of_graphs():
    assert [len(all_dags(d)) for d in (2, 3, 4)] == [3, 25, 543]


@pytest.mark.parametrize(
    ("required", "forbidden"),
    [((), ()), ([(0, 1), (3, 1)], [(2, 3)]), ([(1, 3)], [(0, 3), (3, 0), (2, 0)])],
)
def test_posterior_is_that_of_enumeration(required, forbidden):
    check_against_enumeration(4, 3, required, forbidden)


def test_five_variables_and_single_precision():
    assert len(all_dags(5)) == 29281
    check_against_enumeration(5, 2, [(2, 0)], [(1, 4)])
    check_against_enumeration(4, atol=1e-4, x64=False)


@pytest.mark.parametrize("prior", PRIORS)
def test_edges_are_those_of_a_distribution_over_graphs(prior):
    values, intervened = example()
    found = exact.exact_edge_posterior(values, intervened, prior=prior)
    assert (found >= 0).all()
    assert (found + found.T <= 1 + 1e-9).all()
    sets = exact.exact_parent_posterior(values, intervened, 1, prior=prior)
    assert sets.metadata["probability_sum"] == pytest.approx(1, abs=1e-9)
    causes = list(sets.parent_probs().values())
    np.testing.assert_allclose(np.delete(found[:, 1], 1), causes, atol=1e-9)


@jax.jit
def candidates(there, target):
    return bucket_parent_sets(there, target, 3)[0]


def test_padding_and_batches():
    """Data sets of 3 and 4 variables in one bucket, one trace; each as if alone."""
    cases = [example(4), example(3, seed=1, rows=30)]
    values = np.full((2, 40, 4), 9.0)
    intervened = np.ones((2, 40, 4), bool)
    rows, there = np.zeros((2, 40), bool), np.zeros((2, 4), bool)
    for n, (x, flags) in enumerate(cases):
        intervened[n, :, x.shape[1] :] = False
        values[n, : len(x), : x.shape[1]] = x
        intervened[n, : len(x), : x.shape[1]] = flags
        rows[n, : len(x)], there[n, : x.shape[1]] = True, True
    targets = np.asarray([3, 0], np.int32)
    batch = [values.astype(np.float32), intervened, rows, there]
    one = exact.set_posterior  # over orders, as labels of the training
    run = jax.vmap(lambda x, f, r, v, t: one(x, f, r, v)[t])
    given = (*batch, targets)
    calls = [[jnp.asarray(a[::step]) for a in given] for step in (1, -1)]
    found, again = jax.device_get(assert_one_trace(run, *calls))
    np.testing.assert_allclose(found[::-1], again, atol=1e-6)
    for n, case in enumerate(cases):
        alone = exact.exact_parent_posterior(*case, int(targets[n]), prior="order")
        allowed = np.asarray(candidates(there[n], targets[n]))
        np.testing.assert_allclose(found[n, allowed], alone.probabilities, atol=2e-4)
        assert (found[n, ~allowed] == 0).all()


def test_an_orientation_is_learned_from_interventions_only():
    rng = np.random.default_rng(3)
    cause = rng.standard_normal(300)
    effect = cause + rng.standard_normal(300)
    seen = np.stack([cause, effect], axis=1)
    undecided = exact.exact_parent_posterior(seen, None, 1).parent_probs()["X0"]
    assert undecided == pytest.approx(0.5, abs=0.01)
    flags = np.zeros((330, 2), bool)
    flags[300:, 0] = True
    tried = rng.choice([-3.0, 3.0], 30)
    more = np.stack([tried, tried + rng.standard_normal(30)], axis=1)
    values = np.concatenate([seen, more])
    assert exact.exact_parent_posterior(values, flags, 1).parent_probs()["X0"] > 0.99
    assert exact.exact_parent_posterior(values, flags, 0).parent_probs()["X1"] < 0.01


def test_frames_names_and_numbers_say_the_same():
    values, intervened = example()
    frame = pd.DataFrame(values, columns=NAMES)
    found = exact.exact_parent_posterior(frame, intervened, "Y")
    again = exact.exact_parent_posterior(values, intervened, 3, names=NAMES)
    assert found == again
    assert found.target_variable == "Y"
    assert found.metadata["all_variables"] == tuple(NAMES)
    assert (found.metadata["method"], found.metadata["n_rows"]) == ("exact-dag", 40)
    assert list(found.parent_probs()) == ["A", "B", "C"]
    edges = exact.exact_edge_posterior(frame, intervened)
    np.testing.assert_allclose(edges[:3, 3], list(found.parent_probs().values()))


def test_knowledge_of_edges():
    values, intervened = example()
    frame = pd.DataFrame(values, columns=NAMES)
    ask = partial(exact.exact_parent_posterior, frame, intervened, "Y")
    known = ask(required=[("A", "Y")], forbidden=[("B", "Y")]).parent_probs()
    assert known["A"] == pytest.approx(1)
    assert known["B"] == 0
    first = ask(tiers=["Y", ["A", "B"]]).parent_probs()
    assert (first["A"], first["B"]) == (0, 0)
    by_edges = ask(forbidden=[("A", "Y"), ("B", "Y")]).parent_probs()
    assert first["C"] == pytest.approx(by_edges["C"])


def test_the_sizes_that_can_be_done():
    for prior, most in (("dag", 13), ("order", 16)):
        exact.check_structure_prior(prior, most)
        with pytest.raises(ValueError, match="too many"):
            exact.check_structure_prior(prior, most + 1)
    # Of so many columns the sets alone would not fit into memory.
    with pytest.raises(ValueError, match="1000 variables are too many"):
        exact.exact_edge_posterior(np.random.default_rng(0).random((3, 1000)))
    with pytest.raises(
        ValueError, match=r"'uniform' is not known; .* There are: dag, order"
    ):
        exact.exact_parent_posterior(*example(), 3, prior="uniform")


def test_a_target_alone_has_no_parents():
    values = np.random.default_rng(0).standard_normal((5, 1))
    found = exact.exact_parent_posterior(values, None, "X0")
    assert dict(found.parent_set_probs) == {frozenset(): 1.0}
    none = exact.exact_parent_posterior(*example(), 3, max_parents=0)
    assert dict(none.parent_set_probs) == {frozenset(): 1.0}
