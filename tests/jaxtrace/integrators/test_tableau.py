import math

import numpy as np
import pytest

from jaxtrace.integrators import METHODS, find_method, stability_limit


@pytest.mark.parametrize("tableau", METHODS.values(), ids=str)
def test_stages_build_on_earlier_ones_and_lie_at_their_row_sums(tableau):
    for stage, row in enumerate(tableau.stages):
        assert len(row) <= stage
        assert sum(row) == pytest.approx(tableau.nodes[stage], abs=1e-14)
    assert tableau.nodes[0] == 0


@pytest.mark.parametrize("tableau", METHODS.values(), ids=str)
def test_weights_integrate_polynomials_up_to_the_order(tableau):
    nodes = np.array(tableau.nodes)
    sets = [(tableau.weights, tableau.order)]
    if tableau.lower is not None:
        sets.append((tableau.lower, tableau.order - 1))
    for weights, order in sets:
        for power in range(order):
            assert np.dot(weights, nodes**power) == pytest.approx(1 / (power + 1))


@pytest.mark.parametrize("tableau", METHODS.values(), ids=str)
def test_one_step_of_a_decay_is_its_series_to_the_order(tableau):
    count = len(tableau.weights)
    matrix = np.zeros((count, count))
    for stage, row in enumerate(tableau.stages):
        matrix[stage, : len(row)] = row
    slope = np.ones(count)
    for power in range(1, tableau.order + 1):
        found = np.dot(tableau.weights, slope)
        assert found == pytest.approx(1 / math.factorial(power), abs=1e-14)
        slope = matrix @ slope


def test_instants_are_the_distinct_nodes():
    rk4 = find_method("rk4")
    assert rk4.instants == (0.0, 0.5, 1.0)
    assert [rk4.instant_index(stage) for stage in range(4)] == [0, 1, 1, 2]
    assert len(find_method("rk45").instants) == 6


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'rk3'.*euler, rk2, rk4, rk45"):
        find_method("rk3")


@pytest.mark.parametrize(
    ("name", "limit"), [("euler", 2.0), ("rk2", 2.0), ("rk4", 2.785), ("rk45", 3.307)]
)
def test_stability_limit(name, limit):
    assert stability_limit(find_method(name)) == pytest.approx(limit, abs=1e-3)
