import numpy as np

from acbo.problems.ecology import reef_linear
from causal_problems import assert_no_better_on_a_grid


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
