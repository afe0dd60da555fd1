import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.integrators import METHODS, explicit_step, find_method


def decay(unknowns, stage, cell_hint):
    return jax.tree.map(lambda x: -x, unknowns), cell_hint + 1


@pytest.mark.parametrize("tableau", METHODS.values(), ids=str)
def test_measured_order_on_a_decay(tableau):
    """Halving the step divides the error of a step by 2 to the order plus one."""
    with jax.enable_x64(True):
        start = jnp.ones((1, 3))
        errors = []
        for dt in (0.2, 0.1):
            step = explicit_step(tableau, decay, start, 0, jnp.asarray(dt))
            errors.append(abs(float(step.unknowns[0, 0]) - np.exp(-dt)))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(tableau.order + 1, abs=0.15)


def test_a_tree_of_unknowns_and_one_evaluation_per_stage():
    tableau = find_method("rk4")
    start = (jnp.ones((2, 3)), {"v": jnp.full(2, 2.0)})
    step = explicit_step(tableau, decay, start, 0, jnp.asarray(0.1))
    assert step.cell_hint == 4
    assert step.error is None
    np.testing.assert_allclose(step.unknowns[0], np.exp(-0.1), rtol=1e-6)
    np.testing.assert_allclose(step.unknowns[1]["v"], 2 * np.exp(-0.1), rtol=1e-6)


def test_a_step_length_per_particle():
    tableau = find_method("rk4")
    lengths = jnp.array([0.0, 0.1, -0.3])
    step = explicit_step(tableau, decay, jnp.ones((3, 3)), 0, lengths)
    expected = np.broadcast_to(np.exp(-np.asarray(lengths))[:, None], (3, 3))
    np.testing.assert_allclose(step.unknowns, expected, rtol=1e-4)
    assert np.array_equal(step.unknowns[0], np.ones(3))


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
