"""Sums over orders equal those of every order, and hold where networks guess."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acbo.posterior import inputs
from acbo.posterior.inputs import free_moments, standardized
from acbo.posterior.order_chains import sample_graphs
from acbo.posterior.scores import ScorePrior
from acbo.posterior.subset_scores import (
    CURVE_VARIANCES,
    CURVED,
    FREQUENCIES,
    HIDDEN_CAUSE,
    WEIGHT_VARIANCES,
    negentropy,
    score_subsets,
    screen_causes,
    tame_tails,
)


def linear_data(weights, rows, seed=0, settings=()):
    """Rows of a linear model in causal order; settings: (variable, value, rows)."""
    draw = np.random.default_rng(seed)
    blocks = [(None, 0.0, rows), *settings]
    values, flags = [], []
    for variable, value, count in blocks:
        x = draw.normal(size=(count, len(weights)))
        was_set = np.zeros_like(x, bool)
        for j in range(len(weights)):
            x[:, j] += x @ weights[:, j]
            if j == variable:
                x[:, j], was_set[:, j] = value, True
        values.append(x)
        flags.append(was_set)
    return np.concatenate(values), np.concatenate(flags)


def log_evidence(y, design, variances):
    """Evidence of a conjugate regression, by determinants."""
    prior = ScorePrior()
    before = np.diag(1 / np.asarray(variances))
    after = before + design.T @ design
    rest = y @ y - y @ design @ np.linalg.solve(after, design.T @ y)
    shape = prior.noise_shape + len(y) / 2
    logs = np.linalg.slogdet(before)[1] - np.linalg.slogdet(after)[1]
    return logs / 2 - shape * math.log(prior.noise_scale + rest / 2)


def waves(x):
    """Sines and cosines along every cause, sum and difference, clipped at four."""
    x = np.clip(x, -4, 4)
    k = x.shape[1]
    along = [*np.eye(k)]
    if k > 1:
        along += [(1, *s) for s in itertools.product((1, -1), repeat=k - 1)]
    along = [x @ np.asarray(u) / np.linalg.norm(u) for u in along]
    both = [f(w * u) for u in along for w in FREQUENCIES for f in (np.sin, np.cos)]
    return np.stack(both, axis=1) / math.sqrt(len(along))


def score(y, x, d, most):
    """Log of the evidence of lines, of curves in up to `most`, and of the prior."""
    ones = np.ones((len(y), 1))
    k = x.shape[1]
    lines = [
        log_evidence(y, np.hstack([ones, x]), [1.0] + [variance] * k)
        for variance in WEIGHT_VARIANCES
    ]
    found = np.logaddexp.reduce(lines) - math.log(len(lines))
    if 1 <= k <= most:
        design = np.hstack([ones, x, waves(x)])
        more = design.shape[1] - 1 - k
        curves = [
            log_evidence(y, design, [1.0] * (1 + k) + [variance] * more)
            for variance in CURVE_VARIANCES
        ]
        curved = np.logaddexp.reduce(curves) - math.log(len(curves))
        found = np.logaddexp(found, curved + CURVED)
    return found - math.log(math.comb(d - 1, k))


def tabulated(values, flags, slots):
    """Lists of candidates and scores of their subsets, as `sample_graphs` has them."""
    table = inputs.check_data(values, flags, None)
    none = np.zeros((values.shape[1],) * 2, bool)
    grams = free_moments(standardized(table), table.intervened)
    lists = screen_causes(grams, table, none, none, slots)
    return lists, *score_subsets(table, grams, lists)


def log_hidden_odds(z, flags, j, chosen, i):
    """Log odds that i of the chosen shares a hidden cause with j, by regressions."""
    free = ~flags[:, j]
    logs = []
    for column in (np.where(flags[:, i], 0, z[:, i]), z[:, i]):
        x = np.stack([column if c == i else z[:, c] for c in chosen], axis=1)
        design = np.hstack([np.ones((free.sum(), 1)), x[free]])
        logs.append(log_evidence(z[free, j], design, [1.0] * design.shape[1]))
    return logs[0] - logs[1] + HIDDEN_CAUSE


def test_scores_are_the_evidence_of_lines_and_curves():
    weights = np.triu(np.full((5, 5), 0.7), 1)
    values, flags = linear_data(weights, 15, settings=[(1, 2.0, 5)])
    lists, scores, hidden = tabulated(values, flags, 4)
    z = (values - values[:15].mean(axis=0)) / values[:15].std(axis=0)
    for j, subset in itertools.product(range(5), range(16)):
        chosen = [int(i) for k, i in enumerate(lists[j]) if subset >> k & 1]
        free = ~flags[:, j]
        lines, both = (score(z[free, j], z[free][:, chosen], 5, k) for k in (0, 3))
        partner = -np.inf
        if 1 in chosen and j != 1:
            partner = lines + log_hidden_odds(z, flags, j, chosen, 1)
        wanted = np.logaddexp(both, partner)
        assert scores[j, subset] == pytest.approx(wanted, abs=1e-5)
        share = hidden[:, j, subset].sum()
        assert share == pytest.approx(np.exp(partner - wanted), abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "nats"),
    [
        (lambda draw, n: draw.normal(size=n), 0.0),
        (lambda draw, n: draw.exponential(size=n), 0.4189),
        (lambda draw, n: draw.uniform(size=n), 0.1765),
        (lambda draw, n: draw.laplace(size=n), 0.0724),
        (lambda draw, n: draw.gamma(4, size=n), 0.0887),
    ],
)
def test_negentropy_is_near_that_of_known_densities(kind, nats):
    x = kind(np.random.default_rng(0), 40_000)[None]
    assert negentropy(x)[0] == pytest.approx(nats, rel=0.15, abs=1e-3)
    assert negentropy(5 - 2 * x)[0] == pytest.approx(negentropy(x)[0])


def summed_edges(lists, scores, hidden):
    """P(i causes j), by a sum over every order and every set of causes."""
    d, slots = lists.shape
    total, edges = [], []
    for order in itertools.permutations(range(d)):
        log_sum, probs = 0.0, np.zeros((d, d))
        for j in range(d):
            before = {
                k for k in range(slots) if order.index(lists[j, k]) < order.index(j)
            }
            held = [{k for k in range(slots) if s >> k & 1} for s in range(1 << slots)]
            fits = [s for s, causes in enumerate(held) if causes <= before]
            log_sum += np.logaddexp.reduce(scores[j, fits])
            share = np.exp(scores[j, fits] - np.logaddexp.reduce(scores[j, fits]))
            for s, weight in zip(fits, share, strict=True):
                for k in held[s]:
                    probs[lists[j, k], j] += weight * (1 - hidden[k, j, s])
        total.append(log_sum)
        edges.append(probs)
    weight = np.exp(np.array(total) - np.logaddexp.reduce(total))
    return np.einsum("o,oij->ij", weight, np.array(edges))


@pytest.mark.parametrize(("slots", "within"), [(3, 1e-9), (2, 0.02)])
def test_four_variables_equal_the_sum_over_all_orders(slots, within):
    """All orders are summed; with shorter lists, chains move through them."""
    weights = np.zeros((4, 4))
    weights[0, 1], weights[1, 3], weights[2, 3] = 0.4, 0.6, -0.3
    data = linear_data(weights, 30, settings=[(1, 2.0, 5)])
    found = sample_graphs(*data, candidates=slots, chains=32, sweeps=220)
    wanted = summed_edges(*tabulated(*data, slots))
    np.testing.assert_allclose(found.edge_probs, wanted, atol=within)
    np.testing.assert_allclose(found.graphs.mean(axis=0), found.edge_probs, atol=0.03)
    for j in range(4):
        chances = found.parent_sets(j).parent_probs()
        each = [chances.get(f"X{i}", 0) for i in range(4)]
        np.testing.assert_allclose(each, found.edge_probs[:, j], atol=1e-6)


@pytest.fixture(scope="module")
def fifty():
    """Fifty variables of which one causes another, and nothing else does."""
    weights = np.zeros((50, 50))
    weights[3, 7] = 1.5
    return sample_graphs(*linear_data(weights, 100, settings=[(3, 2.0, 20)]))


def test_absent_edges_of_fifty_variables_stay_unlikely(fifty):
    present = np.zeros((50, 50), bool)
    present[3, 7] = True
    assert fifty.edge_probs[3, 7] > 0.95
    assert fifty.edge_probs[~present].mean() < 0.01
    assert (fifty.edge_probs[~present] > 0.5).sum() <= 2


def test_edges_sets_and_ancestors_are_of_one_distribution(fifty):
    edges, ancestors = fifty.edge_probs, fifty.ancestor_probs
    assert (edges + edges.T <= 1 + 1e-9).all()
    assert (ancestors + ancestors.T <= 1 + 1e-6).all()
    assert (ancestors >= edges).all()
    np.testing.assert_allclose(fifty.graphs.mean(axis=0), edges, atol=0.08)
    sets = fifty.parent_sets("X7")
    assert sum(sets.probabilities) == pytest.approx(1)
    for name, chance in sets.parent_probs().items():
        assert chance == pytest.approx(edges[int(name[1:]), 7], abs=1e-6)


def test_six_causes_of_one_variable_are_all_found():
    weights = np.zeros((9, 9))
    weights[:6, 8] = [1.0, -1.2, 0.8, 1.1, -0.9, 1.0]
    found = sample_graphs(*linear_data(weights, 400, settings=[(0, 2.0, 40)]))
    assert (found.edge_probs[:6, 8] > 0.9).all()
    assert (found.edge_probs[6:8, 8] < 0.3).all()


@pytest.mark.parametrize(
    ("d", "shape"), [(6, np.array), (6, lambda x: np.sinh(3 * x)), (20, np.array)]
)
def test_shift_scale_and_order_of_columns_and_rows_change_nothing(d, shape):
    """With few variables orders are summed, with many sampled: neither may tell. Nor
    may long tails, which are drawn in.
    """
    draw = np.random.default_rng(d)
    present = np.triu(draw.random((d, d)) < 4 / d, 1)
    weights = np.where(present, draw.normal(size=(d, d)), 0)
    values, flags = linear_data(weights, 80, d, settings=[(2, 1.0, 10)])
    values, flags[:3, 4] = shape(values), True
    plain = sample_graphs(values, flags)
    scale = 10.0 ** draw.integers(-3, 5, d) * draw.choice([-1, 1], d)
    columns, rows = draw.permutation(d), draw.permutation(len(values))
    moved = (values * scale + 1e6 * scale)[rows][:, columns]
    found = sample_graphs(moved, flags[rows][:, columns])
    turned = np.ix_(columns, columns)
    for one, other in (
        (found.edge_probs, plain.edge_probs),
        (found.ancestor_probs, plain.ancestor_probs),
        (found.confounded_probs, plain.confounded_probs),
    ):
        np.testing.assert_allclose(one, other[turned], atol=1e-5)


def test_tails_are_drawn_in_where_quantities_vary_by_factors():
    weights = np.diag(np.full(5, 1.2), 1)
    settings = [(j, 2.0, 20) for j in range(5)]
    logs, flags = linear_data(weights, 300, settings=settings)
    table = inputs.check_data(np.sinh(logs), flags, None)
    tamed = tame_tails(table)
    for found, expected in zip(tamed.values.T, logs.T, strict=True):
        assert np.corrcoef(found, expected)[0, 1] > 0.9
    present = sample_graphs(table.values, flags).edge_probs > 0.5
    np.testing.assert_array_equal(present, weights > 0)
    # In a small unit too, and beside a column that does not vary.
    still = np.column_stack([1e-9 * table.values, np.full(len(logs), 7.0)])
    beside = np.column_stack([flags, np.zeros(len(logs), bool)])
    again = tame_tails(inputs.check_data(still, beside, None, constants=True))
    np.testing.assert_allclose(again.values[:, :6], tamed.values, rtol=1e-9)
    assert not again.values[:, 6].any()


@pytest.mark.parametrize("noise", ["normal", "standard_t"])
def test_tails_of_linear_models_stay(noise):
    draw = np.random.default_rng(0)
    of_noise = {"normal": (), "standard_t": (3,)}[noise]
    for _ in range(10):
        x = getattr(draw, noise)(*of_noise, size=(300, 6))
        for j in range(1, 6):
            x[:, j] += 1.5 * x[:, j - 1]
        table = inputs.check_data(x, None, None)
        assert tame_tails(table) is table


def test_constraints_hold_in_every_graph():
    weights = np.zeros((5, 5))
    weights[0, 1] = 2.0
    data = linear_data(weights, 200)
    found = sample_graphs(
        *data, required=[("X3", "X2")], forbidden=[("X0", "X1")], tiers=[["X4"], ["X0"]]
    )
    assert found.graphs[:, 3, 2].all()
    assert not found.graphs[:, 0, 1].any()
    assert not found.graphs[:, 0, 4].any()
    assert found.edge_probs[1, 0] > 0.95
    with pytest.raises(ValueError, match="sweeps"):
        sample_graphs(*data, sweeps=5)


def test_a_column_that_only_experiments_vary_is_a_cause_like_any():
    draw = np.random.default_rng(0)
    values = draw.normal(size=(60, 3))
    flags = np.zeros((60, 3), bool)
    values[:30, 0], flags[30:, 0] = 7.0, True
    values[30:, 0] = draw.choice([5.0, 9.0], 30)
    values[:, 1] += 2 * values[:, 0]
    values[:, 2] = 4.0
    found = sample_graphs(values, flags)
    assert found.edge_probs[0, 1] > 0.95
    assert found.edge_probs[0, 2] < 0.5


@pytest.mark.parametrize("seed", range(3))
def test_an_opinion_against_the_rows_counts_less(seed):
    weights = np.zeros((4, 4))
    weights[0, 1], weights[1, 2] = 1.0, 1.0
    data = linear_data(weights, 100, seed, settings=[(0, 2.0, 20), (1, 2.0, 20)])
    right = np.where(weights, 0.99, 0.01)
    agreed = sample_graphs(*data, opinion=right)
    contradicted = sample_graphs(*data, opinion=right.T)
    # Both as sure as each other: who is wrong is open.
    assert not agreed.unlike_training
    assert not contradicted.unlike_training
    # An opinion that sees nothing where the rows are sure is the worse one.
    denied = sample_graphs(*data, opinion=np.full((4, 4), 0.05))
    assert denied.unlike_training
    assert "times as surely as it contradicts them" in denied.note
    for found in (agreed, contradicted, denied):
        assert (found.edge_probs[[0, 1], [1, 2]] > 0.9).all()
        assert (found.edge_probs + found.edge_probs.T <= 1 + 1e-9).all()


def confounded_rows(seed, watched=150, acted=60):
    """X0 and X1 share a hidden cause, X2 causes X3; each of the four is set."""
    draw = np.random.default_rng(seed)
    values = draw.normal(size=(watched + 4 * acted, 4))
    values[:, :2] += 1.5 * draw.normal(size=(len(values), 1))
    flags = np.zeros(values.shape, bool)
    for i in range(4):
        rows = slice(watched + i * acted, watched + (i + 1) * acted)
        flags[rows, i], values[rows, i] = True, draw.choice([-3.0, 3.0], acted)
    free = ~flags[:, 3]
    values[free, 3] += values[free, 2]
    return values, flags


@pytest.mark.parametrize("seed", range(4))
def test_a_hidden_common_cause_is_the_third_answer(seed):
    values, flags = confounded_rows(seed)
    # Closed form: the covariance of 1.5 u + e with its like is 2.25, each has 3.25.
    observed = np.asarray(np.corrcoef(values[:150, :2].T))
    assert observed[0, 1] == pytest.approx(9 / 13, abs=0.12)
    found = sample_graphs(values, flags)
    assert found.confounded_probs[0, 1] > 0.9
    assert found.confounded_probs[2, 3] < 0.05
    assert found.edge_probs[2, 3] > 0.95
    assert found.ancestor_probs[[0, 1], [1, 0]].max() < 0.05
    total = found.edge_probs + found.edge_probs.T + found.confounded_probs
    assert (total <= 1 + 1e-9).all()


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(3, 6))
def test_what_experiments_show_counts_for_and_against_a_cause(seed, d):
    """Random tables, in which the first variable is set, and the last."""
    draw = np.random.default_rng(seed)
    size = draw.uniform(0.5, 1.5, (d, d)) * draw.choice([-1, 1], (d, d))
    weights = np.triu(np.where(draw.random((d, d)) < 0.5, size, 0), 1)
    effects = np.linalg.inv(np.eye(d) - weights)
    shift = 3 * np.abs(effects[0]) / np.sqrt((effects**2).sum(axis=0))
    watched, more = (
        linear_data(weights, 40, seed, settings=each)
        for each in ([], [(0, 3.0, 15), (d - 1, 3.0, 15)])
    )
    before, after = (sample_graphs(*data) for data in (watched, more))
    for found in (before, after):
        assert (found.edge_probs + found.edge_probs.T <= 1 + 1e-9).all()
        assert (found.ancestor_probs + found.ancestor_probs.T <= 1 + 1e-6).all()
    moved = np.flatnonzero(shift[1:] > 1.5) + 1
    old, new = (found.ancestor_probs[0, moved] for found in (before, after))
    assert (new >= np.minimum(old, 0.95)).all()
    assert (new > 0.8).all()
    # Setting the last variable moves nothing, however well it correlates; by chance
    # rows may look otherwise.
    first, last = more[0][:40], more[0][-15:]
    error = np.sqrt(first.var(axis=0) / 40 + last.var(axis=0) / 15)
    still = np.abs(last.mean(axis=0) - first.mean(axis=0)) < error
    assert (after.ancestor_probs[d - 1][still] < 0.5).all()


def changed_softly(weights, column, shift, scale, seed):
    """Rows as they come, then 40 in which one mechanism is scaled and shifted."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(120, len(weights)))
    soft = np.zeros_like(x, bool)
    soft[80:, column] = True
    for j in range(len(weights)):
        x[:, j] += x @ weights[:, j]
        if j == column:
            x[80:, j] = scale * x[80:, j] + shift
    return x, soft


@pytest.mark.parametrize("seed", range(3))
def test_a_variable_changed_softly_leaves_its_own_score_and_stays_a_cause(seed):
    """Its score is that without the rows; others' scores follow the plain rows."""
    weights = np.triu(np.random.default_rng(seed).normal(size=(3, 3)), 1)
    x, soft = changed_softly(weights, 1, 2.0, 0.5, seed)
    scores = lambda values, flags: score_subsets(*prepared(values, flags))[0]
    found = scores(x, soft)
    without = scores(x[:80], soft[:80])
    np.testing.assert_allclose(found[1], without[1], rtol=1e-9)
    # Rows in which others were changed count: evidence sharpens with them.
    best, fewer = (np.ptp(each[[0, 2]], axis=1) for each in (found, without))
    assert (best != fewer).all()
    assert best[1] > fewer[1]


def prepared(values, soft):
    table = inputs.check_data(values, None, None, soft=soft)
    grams = free_moments(standardized(table), table.intervened)
    d = len(table.names)
    lists = np.array([[i for i in range(d) if i != j] for j in range(d)])
    return table, grams, lists


@pytest.mark.parametrize(
    ("column", "shift", "scale"), [(0, 3.0, 1.0), (1, 3.0, 1.0), (0, 0.0, 4.0)]
)
def test_soft_changes_of_either_end_tell_the_direction(column, shift, scale):
    """Rows alone cannot: both directions of a Gaussian pair fit them alike."""
    weights = np.array([[0.0, 1.0], [0.0, 0.0]])
    for seed in range(3):
        x, soft = changed_softly(weights, column, shift, scale, seed)
        plain = sample_graphs(x[:80]).edge_probs
        told = sample_graphs(x, soft=soft).edge_probs
        assert plain[1, 0] > 0.2
        assert told[0, 1] > 0.9


def test_a_candidate_changed_softly_says_nothing_of_a_hidden_cause():
    """As set, the rows would speak: a partner by a hidden cause stays where it is."""
    draw = np.random.default_rng(4)
    hidden = draw.normal(size=160)
    x = np.stack([hidden, hidden], axis=1) + 0.3 * draw.normal(size=(160, 2))
    flags = np.zeros_like(x, bool)
    flags[120:140, 0] = flags[140:, 1] = True
    x[flags] = 4.0
    as_set = sample_graphs(x, flags).confounded_probs
    as_soft = sample_graphs(x, soft=flags).confounded_probs
    assert as_set[0, 1] > 0.5
    assert as_soft[0, 1] == 0
