"""Every family against its own description, all drawn in one program."""

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.graphs import (
    GRAPHS,
    bucket_parent_sets,
    count_parent_sets,
    enumerate_possible_parent_sets,
    family_named,
    parent_set_members,
    parent_set_membership,
)
from jaxrig.testing import assert_one_trace

D, COPIES = 8, 300
SIZES = (2, 3, 5, 8)


def draw_all(key, size):
    return {name: family(key, size, D) for name, family in GRAPHS.items()}


@pytest.fixture(scope="module")
def drawn() -> dict[str, list[tuple[int, np.ndarray, np.ndarray]]]:
    """(size, adjacency, targets) of each family, every size from one trace."""
    keys = jax.random.split(jax.random.key(1), COPIES)
    many = jax.vmap(draw_all, (0, None))
    calls = [(keys, jnp.asarray(size)) for size in SIZES]
    found = {name: [] for name in GRAPHS}
    for size, batch in zip(SIZES, assert_one_trace(many, *calls), strict=True):
        for name, graphs in batch.items():
            pairs = zip(*map(np.asarray, graphs), strict=True)
            found[name] += [(size, *pair) for pair in pairs]
    return found


def roots(graph, size):
    return [j for j in range(size) if not graph[:, j].any()]


@pytest.mark.parametrize("family", GRAPHS)
def test_edges_lead_forwards_and_stay_within_the_size(drawn, family):
    for size in SIZES:
        pairs = [(g, t) for each, g, t in drawn[family] if each == size]
        graphs, targets = map(np.stack, zip(*pairs, strict=True))
        np.testing.assert_array_equal(graphs, np.triu(graphs, 1))
        assert not graphs[:, size:].any()
        assert not graphs[:, :, size:].any()
        assert not targets[:, size:].any()
        assert targets.any(axis=1).all()
        # A target has a cause wherever any variable has.
        caused = (graphs.any(axis=1) | ~targets).all(axis=1)
        assert (caused | ~graphs.any(axis=(1, 2))).all()
        if size == D and family not in ("chain", "star"):
            assert len({(g.tobytes(), t.tobytes()) for g, t in pairs}) > 3


def test_chain(drawn):
    for size, graph, targets in drawn["chain"]:
        assert graph.sum() == size - 1
        assert all(graph[i, i + 1] for i in range(size - 1))
        assert np.flatnonzero(targets).tolist() == list(range(1, size))


@pytest.mark.parametrize("family", ["fork", "true_fork"])
def test_fork(drawn, family):
    extra = []
    for size, graph, targets in drawn[family]:
        assert graph[0, 1:size].all()
        (target,) = np.flatnonzero(targets)
        assert np.flatnonzero(graph[:, target]).tolist() == [0]
        extra.append(graph.sum() - (size - 1))
    assert set(extra) == {0, 1, 2}


def test_star(drawn):
    for size, graph, targets in drawn["star"]:
        assert np.flatnonzero(targets).tolist() == [size - 1]
        assert graph[: size - 1, size - 1].all()
        assert graph.sum() == size - 1


def assert_hangers_on(graph, size, target):
    """The rest has one cause each, unless it causes something; the first has none."""
    for j in set(range(1, size)) - {target}:
        assert graph[:, j].any() or graph[j].any()


def test_collider(drawn):
    causes = set()
    for size, graph, targets in drawn["collider"]:
        (target,) = np.flatnonzero(targets)
        causes.add(int(graph[:, target].sum()))
        assert_hangers_on(graph, size, target)
        assert np.delete(graph, target, axis=1).sum(axis=0).max() <= 1
    assert causes == {1, 2, 3}


def test_mixed(drawn):
    for size, graph, targets in drawn["mixed"]:
        (target,) = np.flatnonzero(targets)
        assert 1 <= graph[:, target].sum() <= 3
        assert graph[target - 1, target]
        if size > 2:
            assert target >= 2
            assert graph[target - 2, target - 1]
        assert_hangers_on(graph, size, target)


@pytest.mark.parametrize(("family", "degree"), [("er1", 1.0), ("er2", 2.0)])
def test_erdos_renyi(drawn, family, degree):
    """As many edges as the name says, where the limit of three causes leaves them."""
    for _, graph, _ in drawn[family]:
        assert graph.sum(axis=0).max() <= 3
    edges = [graph.sum() for size, graph, _ in drawn[family] if size == D]
    chance = min(2 * degree / (D - 1), 1)
    trials = np.random.default_rng(0).binomial(np.arange(D), chance, (4000, D))
    expected = np.minimum(trials, 3).sum(axis=1)
    error = 4 * expected.std() / np.sqrt(COPIES)
    assert abs(np.mean(edges) - expected.mean()) < error


@pytest.mark.parametrize(("family", "density"), [("random", 0.5), ("dense", 0.7)])
def test_density(drawn, family, density):
    edges = [graph.sum() for size, graph, _ in drawn[family] if size == D]
    pairs = D * (D - 1) / 2
    error = 4 * np.sqrt(pairs * density * (1 - density) / COPIES)
    assert abs(np.mean(edges) - density * pairs) < error


def test_scale_free(drawn):
    for size, graph, _ in drawn["scale_free"]:
        first = min(size, 3)
        assert graph[:first, :first].sum() == first * (first - 1) / 2
        later = graph[:, 3:size].sum(axis=0)
        assert ((later >= 1) & (later <= 3)).all()


def test_scale_free_prefers_variables_with_many_edges(drawn):
    """A lone cause has the mean degree that choice in proportion to degree gives."""
    chosen, expected, uniform, spread = [], [], [], []
    for size, graph, _ in drawn["scale_free"]:
        for j in range(4, size):
            if graph[:, j].sum() == 1:
                degree = (graph[:j, :j] | graph[:j, :j].T).sum(axis=1)
                mean = (degree**2).sum() / degree.sum()
                chosen.append(degree[graph[:j, j]].item())
                expected.append(mean)
                uniform.append(degree.mean())
                spread.append((degree**3).sum() / degree.sum() - mean**2)
    error = np.sqrt(np.mean(spread) / len(chosen))
    assert abs(np.mean(chosen) - np.mean(expected)) < 3 * error
    assert np.mean(chosen) - np.mean(uniform) > 3 * error


def test_two_layer(drawn):
    between = []
    for size, graph, targets in drawn["two_layer"]:
        half = size // 2
        assert roots(graph, size)[:half] == list(range(half))
        assert not targets[:half].any()
        across = graph[:half, half:size].sum(axis=1)
        assert ((across >= 1) & (across <= 3)).all()
        if size == D:
            between.append(graph[half:size, half:size].sum())
    assert np.mean(between) == pytest.approx(
        0.3 * 6, abs=4 * np.sqrt(6 * 0.21 / COPIES)
    )


def test_names_in_any_case():
    assert family_named("ER-1") is GRAPHS["er1"]
    with pytest.raises(ValueError, match=r"'tree' is not known; .* There are: chain"):
        family_named("tree")


COUNTS = {
    (3, 2): 4,
    (4, 3): 8,
    (5, 2): 11,
    (5, 3): 15,
    (8, 3): 64,
    (10, 3): 130,
    (10, 5): 382,
    (20, 3): 1160,
    (20, 5): 16664,
}


@pytest.mark.parametrize(("size", "count"), COUNTS.items(), ids=str)
def test_counts(size, count):
    d, largest = size
    names = [f"X{i}" for i in range(d)]
    assert count_parent_sets(d, largest) == count
    assert len(set(enumerate_possible_parent_sets(names, "X1", largest))) == count


def test_order_is_by_size_then_places():
    found = enumerate_possible_parent_sets(["B", "Y", "A", "C"], "Y", 2)
    named = [[], ["B"], ["A"], ["C"], ["B", "A"], ["B", "C"], ["A", "C"]]
    assert found == [frozenset(s) for s in named]
    unordered = enumerate_possible_parent_sets({"B", "Y", "A"}, "Y")
    assert unordered == [frozenset(s) for s in ([], ["A"], ["B"], ["A", "B"])]


def test_membership_follows_the_names():
    names = [f"X{i}" for i in range(6)]
    for target in range(6):
        sets = enumerate_possible_parent_sets(names, names[target], 3)
        held = parent_set_membership(6, 3, target)
        found = [frozenset(n for n, h in zip(names, r, strict=True) if h) for r in held]
        assert found == sets


def test_traced_target_gives_the_same_sets():
    make = jax.jit(lambda m, t: bucket_parent_sets(m, t, 3))
    members = jax.jit(lambda t: parent_set_members(6, 3, t))
    for target in range(6):
        allowed, held = make(jnp.ones(6, bool), jnp.asarray(target))
        assert allowed.all()
        np.testing.assert_array_equal(held, parent_set_membership(6, 3, target))
        rows = [set(row) - {6} for row in members(jnp.asarray(target)).tolist()]
        assert rows == [set(np.flatnonzero(row)) for row in held]


def test_padding_leaves_the_sets_of_the_smaller_problem():
    mask = jnp.asarray([True, False, True, True, False])
    allowed, held = bucket_parent_sets(mask, jnp.asarray(2), 3)
    found = [tuple(np.flatnonzero(row)) for row in held[allowed]]
    assert found == [c for size in range(3) for c in combinations((0, 3), size)]


def test_more_parents_than_variables():
    assert parent_set_membership(2, 3, 0).tolist() == [[False, False], [False, True]]
    assert parent_set_membership(1, 3, 0).tolist() == [[False]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: enumerate_possible_parent_sets(["A"], "B"), "'B' is not known"),
        (
            lambda: enumerate_possible_parent_sets(["A", "A"], "A"),
            "contain a duplicate",
        ),
        (lambda: count_parent_sets(3, -1), "max_parents=-1"),
        (lambda: count_parent_sets(0), "d=0"),
        (lambda: parent_set_membership(3, 2, 3), "target=3"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
