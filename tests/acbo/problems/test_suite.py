import numpy as np
import pytest

from acbo.named.linear import linear_form
from acbo.problems import suite


def weights_of(problem):
    form = linear_form(problem.scm)
    return {
        (cause, effect): form.weight[form.names.index(cause), form.names.index(effect)]
        for cause, effect in problem.scm.edges
    }


@pytest.mark.parametrize(
    ("problem", "target", "edges", "optimum"),
    [
        (suite.two_causes, "Y", {"XY": 2.0, "ZY": -1.5}, ({"X": -5.0}, -10.0)),
        (suite.collider, "Z", {"XZ": 1.5, "YZ": 2.0}, ({"Y": -5.0}, -10.0)),
        (suite.common_cause, "Y", {"ZX": 1.0, "ZY": 2.0}, ({"Z": -5.0}, -10.0)),
        (
            suite.diamond,
            "W",
            {"XY": 1.5, "XZ": -1.0, "YW": 2.0, "ZW": 1.0},
            # Straight through Y the effect is 2; X has 1.5 * 2 - 1 = 2 as well.
            ({"X": -5.0}, -10.0),
        ),
        (
            suite.butterfly,
            "E",
            {"AC": 0.8, "BC": 1.2, "AD": -0.5, "CD": 0.9, "CE": 1.1, "DE": 0.7},
            ({"B": -5.0}, -5 * 1.2 * (1.1 + 0.9 * 0.7)),
        ),
        (
            suite.mixed_coefficients,
            "D",
            {"AD": 2.0, "BD": -1.5, "CD": 0.5},
            ({"A": -5.0}, -10.0),
        ),
    ],
)
def test_equations_and_optima_by_hand(problem, target, edges, optimum):
    made = problem()
    assert made.target == target
    assert weights_of(made) == {tuple(pair): w for pair, w in edges.items()}
    assert made.optimum.intervention == optimum[0]
    np.testing.assert_allclose(made.optimum.outcome, optimum[1])
    assert set(made.ranges.values()) == {(-5.0, 5.0)}
    assert linear_form(made.scm).noise_scale.tolist() == [1.0] * len(made.scm.names)


def test_chains_multiply():
    made = suite.chain(5, 1.5)
    assert made.name == "chain_5var"
    np.testing.assert_allclose(made.optimum.outcome, -5 * 1.5**4)
    assert made.optimum.intervention == {"X0": -5.0}
    with pytest.raises(ValueError, match="chain of 1"):
        suite.chain(1)


def test_the_low_noise_diamond():
    made = suite.strong_diamond()
    assert made.ranges == {"X0": (-3.0, 3.0), "X1": (-3.0, 3.0), "X2": (-3.0, 3.0)}
    assert float(made.scm.high[3]) == 12.0
    assert linear_form(made.scm).noise_scale.tolist() == [0.1] * 4
    np.testing.assert_allclose(made.optimum.outcome, -3 * 8)
    np.testing.assert_allclose(made.expected_outcome({"X1": -3, "X2": -3}), -12)


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_keep_the_rules(seed):
    made = suite.erdos_renyi(5, 0.2, seed, "random")
    weights = weights_of(made)
    assert all(cause < effect for cause, effect in weights)
    assert any(effect == "X4" for _, effect in weights)
    assert all(0.1 <= abs(weight) <= 2 for weight in weights.values())
    assert made.optimum.outcome < 0
    assert weights == weights_of(suite.erdos_renyi(5, 0.2, seed, "random"))
