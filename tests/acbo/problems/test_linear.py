import numpy as np
import pytest

from acbo.named.model import linear_form
from acbo.problems.problem import SUITE, chain, erdos_renyi, reef_linear, strong_diamond
from causal_problems import assert_no_better_on_a_grid


def weights_of(problem):
    form = linear_form(problem.scm)
    return {
        (cause, effect): form.weight[form.names.index(cause), form.names.index(effect)]
        for cause, effect in problem.scm.edges
    }


@pytest.mark.parametrize(
    ("problem", "target", "edges", "optimum"),
    [
        ("simple", "Y", {"XY": 2.0, "ZY": -1.5}, ({"X": -5.0}, -10.0)),
        ("collider", "Z", {"XZ": 1.5, "YZ": 2.0}, ({"Y": -5.0}, -10.0)),
        ("fork", "Y", {"ZX": 1.0, "ZY": 2.0}, ({"Z": -5.0}, -10.0)),
        (
            "diamond_4var",
            "W",
            {"XY": 1.5, "XZ": -1.0, "YW": 2.0, "ZW": 1.0},
            # Straight through Y the effect is 2; X has 1.5 * 2 - 1 = 2 as well.
            ({"X": -5.0}, -10.0),
        ),
        (
            "butterfly_5var",
            "E",
            {"AC": 0.8, "BC": 1.2, "AD": -0.5, "CD": 0.9, "CE": 1.1, "DE": 0.7},
            ({"B": -5.0}, -5 * 1.2 * (1.1 + 0.9 * 0.7)),
        ),
        (
            "mixed_coeffs_4var",
            "D",
            {"AD": 2.0, "BD": -1.5, "CD": 0.5},
            ({"A": -5.0}, -10.0),
        ),
    ],
)
def test_equations_and_optima_by_hand(problem, target, edges, optimum):
    made = SUITE[problem]()
    assert made.target == target
    assert weights_of(made) == {tuple(pair): w for pair, w in edges.items()}
    assert made.optimum.intervention == optimum[0]
    np.testing.assert_allclose(made.optimum.outcome, optimum[1])
    assert set(made.ranges.values()) == {(-5.0, 5.0)}
    assert linear_form(made.scm).noise_scale.tolist() == [1.0] * len(made.scm.names)


def test_chains_multiply():
    made = chain(5, 1.5)
    assert made.name == "chain_5var"
    np.testing.assert_allclose(made.optimum.outcome, -5 * 1.5**4)
    assert made.optimum.intervention == {"X0": -5.0}
    with pytest.raises(ValueError, match="chain of 1"):
        chain(1)


def test_the_low_noise_diamond():
    made = strong_diamond()
    assert made.ranges == {"X0": (-3.0, 3.0), "X1": (-3.0, 3.0), "X2": (-3.0, 3.0)}
    assert float(made.scm.high[3]) == 12.0
    assert linear_form(made.scm).noise_scale.tolist() == [0.1] * 4
    np.testing.assert_allclose(made.optimum.outcome, -3 * 8)
    np.testing.assert_allclose(made.expected_outcome({"X1": -3, "X2": -3}), -12)


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_keep_the_rules(seed):
    made = erdos_renyi(5, 0.2, seed, "random")
    weights = weights_of(made)
    assert all(cause < effect for cause, effect in weights)
    assert any(effect == "X4" for _, effect in weights)
    assert all(0.1 <= abs(weight) <= 2 for weight in weights.values())
    assert made.optimum.outcome < 0
    assert weights == weights_of(erdos_renyi(5, 0.2, seed, "random"))


def naive_mean(do):
    """The equations without noise, whose mean is 0 everywhere."""
    light, nutrients, grazers = (
        do.get(name, 0.0) for name in ("light", "nutrients", "grazers")
    )
    temperature = 0.5 * light
    gas = do.get("carbon_dioxide", 0.6 * temperature)
    acidity = do.get("acidity", 0.8 * gas)
    saturation = -0.7 * acidity + 0.3 * temperature
    algae = do.get("algae", 0.7 * nutrients - 0.6 * grazers + 0.3 * light)
    return 1.0 + 0.8 * saturation + 0.4 * light - 0.5 * algae - 0.4 * temperature


def test_reef_means_and_optimum():
    problem = reef_linear()
    assert problem.direction == "MAXIMIZE"
    assert problem.best_pair is not None
    for name, (low, high) in problem.ranges.items():
        for do in ({name: low}, {name: high}, {name: low, "light": 0.5}):
            np.testing.assert_allclose(problem.expected_outcome(do), naive_mean(do))
    assert problem.optimum.intervention == {"carbon_dioxide": -1.5}
    np.testing.assert_allclose(problem.optimum.outcome, 1 + 0.8 * 0.7 * 0.8 * 1.5)
    assert_no_better_on_a_grid(problem, problem.optimum, 1, 21)
    assert_no_better_on_a_grid(problem, problem.best_pair, 2, 7)
    assert "temperature" not in problem.ranges
