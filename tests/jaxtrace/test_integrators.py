import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.integrators import (
    METHODS,
    euler_step,
    explicit_step,
    find_method,
    rk2_step,
    rk4_step,
    stability_limit,
)
from trace_runs import cloud, spiral


@pytest.mark.parametrize("tableau", METHODS.values(), ids=str)
def test_tableaus_have_the_order_they_claim(tableau):
    nodes, count = np.array(tableau.nodes), len(tableau.weights)
    matrix = np.zeros((count, count))
    for stage, row in enumerate(tableau.stages):
        assert len(row) <= stage
        assert sum(row) == pytest.approx(nodes[stage], abs=1e-14)
        matrix[stage, : len(row)] = row
    sets = [(tableau.weights, tableau.order)]
    if tableau.lower is not None:
        sets.append((tableau.lower, tableau.order - 1))
    for weights, order in sets:  # polynomials up to the order are integrated
        for power in range(order):
            assert np.dot(weights, nodes**power) == pytest.approx(1 / (power + 1))
    slope = np.ones(count)
    for power in range(1, tableau.order + 1):  # a decay is its series
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


def decay(unknowns, stage, cell_hint):
    return jax.tree.map(lambda x: -x, unknowns), cell_hint + 1


def test_a_tree_of_unknowns_and_one_evaluation_per_stage():
    tableau = find_method("rk4")
    start = (jnp.ones((2, 3)), {"v": jnp.full(2, 2.0)})
    step = explicit_step(tableau, decay, start, 0, jnp.asarray(0.1))
    assert step.cell_hint == 4
    assert step.error is None
    np.testing.assert_allclose(step.unknowns[0], np.exp(-0.1), rtol=1e-6)
    np.testing.assert_allclose(step.unknowns[1]["v"], 2 * np.exp(-0.1), rtol=1e-6)


def test_the_embedded_error_is_that_of_the_lower_method():
    tableau = find_method("rk45")
    assert tableau.lower is not None
    with jax.enable_x64(True):
        dt = jnp.asarray(0.3)
        step = explicit_step(tableau, decay, jnp.ones((1, 3)), 0, dt)
        lower = type(tableau)("lower", 4, tableau.nodes, tableau.stages, tableau.lower)
        other = explicit_step(lower, decay, jnp.ones((1, 3)), 0, dt)
        difference = step.unknowns - other.unknowns
        np.testing.assert_allclose(step.error, difference, rtol=1e-8)
        assert 1e-7 < abs(float(step.error[0, 0])) < 1e-3


STEPS = {"euler": euler_step, "rk2": rk2_step, "rk4": rk4_step}


def by_hand(name, x, t, dt, f):
    """The three formulas, written out."""
    first = f(x, t)
    if name == "euler":
        return x + dt * first
    middle = f(x + dt / 2 * first, t + dt / 2)
    if name == "rk2":
        return x + dt * middle
    third = f(x + dt / 2 * middle, t + dt / 2)
    last = f(x + dt * third, t + dt)
    return x + dt / 6 * (first + 2 * middle + 2 * third + last)


@pytest.mark.parametrize("name", STEPS)
def test_the_formulas_with_a_step_and_a_clock_per_particle(name):
    """Each particle's stages lie at its own times, not at the mean."""
    with jax.enable_x64(True):
        x, lengths = cloud(3), np.array([0.1, 0.2, -0.4])
        formula = jax.jit(lambda dt: by_hand(name, jnp.asarray(x), 0.3, dt, spiral))
        step = jax.jit(lambda dt: STEPS[name](x, 0.3, dt, spiral))
        found = np.asarray(step(lengths))
        assert found.dtype == np.float64
        for i, dt in enumerate(lengths):
            np.testing.assert_allclose(step(dt), formula(dt), rtol=1e-14)
            np.testing.assert_allclose(found[i], formula(dt)[i], rtol=1e-14)


def test_single_precision_stays_single():
    assert rk4_step(np.zeros((2, 3), np.float32), 0.0, 0.1, spiral).dtype == np.float32


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match=r"\(4, 2\)"):
        euler_step(np.zeros((4, 2)), 0.0, 0.1, spiral)
    with pytest.raises(ValueError, match=r"dt of shape \(3,\)"):
        rk4_step(np.zeros((4, 3)), 0.0, np.zeros(3), spiral)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_stages_in_a_loop_are_the_stages(name):
    tableau = METHODS[name]
    nodes = jnp.asarray(tableau.nodes, jnp.float32)
    rate = lambda x, stage, hint: (jnp.cos(x) * (1 + nodes[stage]), hint + 1)
    start = (jnp.linspace(0, 1, 12).reshape(4, 3), jnp.int32(0), jnp.float32(0.3))
    take = lambda loop: explicit_step(tableau, rate, *start, loop=loop)
    one, other = (jax.jit(take, static_argnums=0)(loop) for loop in (False, True))
    assert one.cell_hint == other.cell_hint == len(tableau.nodes)
    np.testing.assert_allclose(one.unknowns, other.unknowns, rtol=1e-6)
