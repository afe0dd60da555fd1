import jax
import numpy as np
import pytest

from acbo.baselines.proposers import ExactImprovement, ExactThompson
from causal_linear import assert_allowed, edges, linear_scm, random_cases, situations

# The grandparent does more than the parent; the child 3 of the target does nothing.
SCM = linear_scm(edges(4, e01=3.0, e12=2.0, e23=4.0), 2)
CASES = [*random_cases(2), (SCM, "MINIMIZE"), (SCM, "MAXIMIZE")]


@pytest.mark.parametrize(
    "proposer",
    [
        ExactThompson(),
        pytest.param(ExactImprovement(models=8), marks=pytest.mark.slow),
    ],
)
def test_with_many_rows_the_best_intervention_is_known(proposer):
    situation = situations(CASES, observational=40, interventional=24, capacity=64)
    actions = jax.jit(jax.vmap(proposer.propose))(*situation)
    assert_allowed(actions, situation)
    assert actions.variable[2:].tolist() == [0, 0]
    np.testing.assert_allclose(actions.value[2:], [-2.0, 3.0])
