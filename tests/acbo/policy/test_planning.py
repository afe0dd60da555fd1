"""Experiments under options, against closed forms of linear models."""

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import acbo
from acbo.named.tables import Experiments
from acbo.policy import planning

NAMES = ("a", "b", "c", "y", "e")
WORTH = [
    (np.zeros(12), 0.0, True),
    (np.linspace(-2, 2, 12), 0.0, False),
    (np.linspace(-2, 2, 12), 1.0, False),
]
RANGES = {"a": (-2.0, 2.0), "b": (-2.0, 2.0), "c": (-2.0, 2.0)}


def plant(rows, noise, seed, **settings):
    """y = 3 a - 2 b + 0.2 c + noise, b = 0.5 a + noise; e is an effect of y."""
    draw = np.random.default_rng(seed)
    rest = {name: draw.normal(size=rows) for name in NAMES}
    row = {"a": rest["a"], "c": rest["c"]} | settings
    row["b"] = settings.get("b", 0.5 * row["a"] + rest["b"])
    row["y"] = 3 * row["a"] - 2 * row["b"] + 0.2 * row["c"] + noise * rest["y"]
    row["e"] = row["y"] + rest["e"]
    return np.stack([np.broadcast_to(row[name], rows) for name in NAMES], axis=1)


def table(noise=1.0, at=1.0, more=8) -> dict[str, Any]:
    """Sixty rows without experiments, and `more` on each of a, b and c."""
    parts = [plant(60, noise, 0)]
    for seed, name in enumerate("abc", 1):
        value = -at if name == "b" else at
        parts.append(plant(more, noise, seed, **{name: value}))
    columns = dict(zip(NAMES, np.concatenate(parts).T, strict=True))
    return columns | {"do": [""] * 60 + ["a"] * more + ["b"] * more + ["c"] * more}


def best_of(**options: Any):
    options = {"ranges": RANGES, "settable": ["a", "b", "c"]} | options
    return acbo.suggest(table(), "y", True, **options).experiments


def test_two_at_once_reach_the_corner():
    (found,) = best_of(at_once=2)
    assert found.settings == {"a": 2.0, "b": -2.0}
    assert found.expected == pytest.approx(10.0, abs=2 * found.std)


def test_alone_the_larger_total_effect_wins():
    # Through b, a has the total effect 3 - 2 * 0.5 = 2, as large as that of b.
    (first, second) = best_of(batch=2)
    assert {*first.settings, *second.settings} == {"a", "b"}
    for found in (first, second):
        value = 2.0 if "a" in found.settings else -2.0
        assert list(found.settings.values()) == [value]
        assert found.expected == pytest.approx(4.0, abs=2 * found.std)


def test_curves_say_at_a_value_what_is_said_of_it():
    """And total effects are within them."""
    found = acbo.suggest(table(), "y", True, ranges=RANGES)
    assert set(found.curves) == {each.variable for each in found.candidates}
    for each in found.candidates:
        values, expected, std = found.curves[each.variable]
        assert (values[0], values[-1]) == pytest.approx(
            found.seen.ranges[each.variable]
        )
        place = int(np.argmin(np.abs(values - each.value)))
        assert expected[place] == pytest.approx(each.expected)
        assert std[place] == pytest.approx(each.std)
    for name, effect in {"a": 2, "b": -2, "c": 0.2}.items():
        values, expected, std = found.curves[name]
        assert (np.abs(expected - effect * values) < 2 * std).all()
        assert std.max() < 2
    # A region that no experiment may be in is no part of a curve.
    kept = acbo.suggest(table(), "y", True, ranges=RANGES, avoid=["a > 1"]).curves["a"]
    assert kept.values.max() <= 1


def test_gain_per_cost():
    assert best_of(cost={"a": 1, "b": 20})[0].settings == {"a": 2.0}
    assert best_of(cost={"a": 20, "b": 1})[0].settings == {"b": -2.0}


def test_forbidden_regions():
    (found,) = best_of(at_once=2, avoid=["a > 1 & b < 0"])
    # The best corners left are (1, -2) with 7 and (2, 0) with 6.
    assert found.settings == {"a": 1.0, "b": -2.0}
    # The outcome is kept out as well: e follows y, which is 3 where the mean e is 3.
    (found,) = best_of(avoid=["e > 3"])
    assert found.expected < 3.5
    with pytest.raises(ValueError, match="every experiment is in a forbidden region"):
        best_of(avoid=["a > -99"])
    with pytest.raises(ValueError, match="'Q' is not known"):
        best_of(avoid=["Q > 1"])


def test_levels_and_ranges():
    (found,) = best_of(
        ranges={"b": (0, 2), "c": (0, 1)}, levels={"a": [-1, 0, 1.5]}, cost={"b": 1}
    )
    assert found.settings == {"a": 1.5}
    assert found.expected == pytest.approx(3.0, abs=2 * found.std)


def test_replicates_follow_the_noise():
    runs = [
        acbo.suggest(
            table(noise),
            "y",
            True,
            settable=["a"],
            ranges={"a": (-2, 2)},
            replicates=True,
        )
        .experiments[0]
        .runs
        for noise in (0.3, 2.0)
    ]
    assert runs[0] < runs[1]


@pytest.mark.parametrize(("tried", "wave", "worthwhile"), WORTH)
def test_it_says_when_nothing_is_to_be_gained(tried, wave, worthwhile):
    """y = 2 a, or a wave about it, from 30 rows and 12 experiments."""
    draw = np.random.default_rng(0)
    a = np.concatenate([draw.normal(size=30), tried])
    y = 2 * a + wave * np.cos(4 * a) + 0.1 * draw.normal(size=42)
    given: dict[str, Any] = {"a": a, "y": y, "do": [""] * 30 + ["a"] * 12}
    found = acbo.suggest(given, "y", True, ranges={"a": (-2, 2)})
    best = 4.0 + wave * np.cos(8.0)
    reached = (2 * tried + wave * np.cos(4 * tried)).max()
    assert found.worthwhile == worthwhile
    assert found.to_gain == pytest.approx(max(best - reached, 0.0), rel=0.2, abs=0.05)
    told = str(found).startswith("there is little left to gain")
    assert told == (not worthwhile)


def test_a_batch_is_of_different_experiments_that_are_allowed():
    found = best_of(batch=6, avoid=["a > 1.5"], levels={"c": [-1, 1]})
    places = [tuple(each.settings.items()) for each in found]
    assert len(set(places)) == 6
    for ((one, x),), ((other, y),) in itertools.combinations(places, 2):
        assert one != other or abs(x - y) >= planning.BESIDE * 4.0 - 1e-9
    for ((name, value),) in places:
        assert name != "a" or value <= 1.5
        assert name != "c" or value in (-1, 1)


def test_a_knob_that_rests_is_held_there():
    columns = table()
    columns["b"] = np.where(np.arange(84) < 60, 0.0, columns["b"])
    columns["y"] = 3 * columns["a"] - 2 * columns["b"] + columns["e"] * 0.1
    del columns["e"]
    ranges = {"a": (-2, 2), "b": (-2, 2)}
    found = acbo.suggest(
        columns, "y", True, settable=["a", "b"], ranges=ranges, at_once=2
    )
    assert found.settings == {"a": 2.0, "b": -2.0}


def test_tiers_close_edges():
    found = acbo.suggest(
        table(), "y", True, ranges=RANGES, tiers="a,b,c < y < e", cost={"a": 1}
    )
    later = NAMES.index("e")
    assert found.edge_probs[later].max() == 0
    assert found.cause_probs["e"] == 0


def test_models_respond_as_the_algebra_says():
    values = plant(4000, 1.0, 0)
    seen = Experiments(values, np.zeros(values.shape, bool), NAMES, "y", RANGES)
    graph = np.zeros((5, 5), bool)
    for cause, effect in ("ab", "ay", "by", "cy", "ye"):
        graph[NAMES.index(cause), NAMES.index(effect)] = True
    graphs = np.broadcast_to(graph, (50, 5, 5))
    models = planning.draw_models(seen, graphs, np.random.default_rng(0))
    center, scale = values.mean(axis=0), values.std(axis=0)

    def expect(given, of):
        columns = [NAMES.index(name) for name in given]
        target = (np.array([list(given.values())]) - center[columns]) / scale[columns]
        found = planning.respond(models, columns, target, NAMES.index(of)).mean()
        return center[NAMES.index(of)] + scale[NAMES.index(of)] * found

    for given, of, truth in (
        ({"a": 2.0}, "y", 4.0),
        ({"b": -2.0}, "y", 4.0),
        ({"a": 2.0, "b": -2.0}, "y", 10.0),
        ({"a": 2.0, "b": -2.0, "c": 1.0}, "e", 10.2),
        ({"y": 3.0}, "a", 0.0),
    ):
        assert expect(given, of) == pytest.approx(truth, abs=0.25), (given, of)
    # What was not measured is what comes of the settings: e after y, b not before a.
    lacking, flags = np.full((2, 5), np.nan), np.zeros((2, 5), bool)
    lacking[0, [0, 3]], lacking[1, [1, 3]] = (2.0, 7.0), (2.0, -7.0)
    flags[0, 0] = flags[1, 1] = True
    posterior: Any = SimpleNamespace(graphs=graphs)
    filled = planning.add_partial(seen, posterior, lacking, flags).values[-2:]
    truth = [[2.0, 1.0, 0.0, 7.0, 4.0], [0.0, 2.0, 0.0, -7.0, -4.0]]
    np.testing.assert_allclose(filled, truth, atol=0.25)
    # With a set, y varies by -2 noise of b, 0.2 c and its own noise.
    variance = planning.outcome_variance(models, [0], 3) * scale[3] ** 2
    assert variance == pytest.approx(4 + 0.04 + 1, rel=0.1)
    variance = planning.outcome_variance(models, [0, 1], 3) * scale[3] ** 2
    assert variance == pytest.approx(0.04 + 1, rel=0.1)
