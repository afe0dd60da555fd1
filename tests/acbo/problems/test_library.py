import numpy as np
import pytest

from acbo import problems
from acbo.types import lower_is_better

SUITE_KEYS = (
    *("fork_3var", "chain_3var", "collider_3var", "diamond_4var", "dense_4var"),
    *("mixed_coeffs_4var", "butterfly_5var", "sparse_5var", "chain_5var"),
)
FIELD_KEYS = ("toy_graph", "complete_graph", "psa", "synthetic2", "two_bumps")


def test_every_documented_name_is_there():
    assert set(SUITE_KEYS) == set(problems.SUITE)
    assert {*SUITE_KEYS, *FIELD_KEYS} <= set(problems.names())
    with pytest.raises(ValueError, match="'fork_9var' is not one of: fork_3var"):
        problems.get("fork_9var")


@pytest.mark.parametrize("name", problems.names())
def test_every_problem_is_consistent(name):
    problem = problems.get(name)
    assert problem.name == name
    assert problem.target not in problem.ranges
    assert problem.scm.names[int(problem.scm.target)] == problem.target
    sign = lower_is_better(problem.direction)
    assert sign * problem.optimum.outcome < sign * problem.observational_mean
    np.testing.assert_allclose(
        problem.expected_outcome(problem.optimum.intervention), problem.optimum.outcome
    )
    if problem.best_pair is not None:
        assert sign * problem.best_pair.outcome < sign * problem.optimum.outcome
        assert len(problem.best_pair.intervention) == 2


def test_suite_sizes_follow_their_names():
    for name in SUITE_KEYS:
        assert f"{len(problems.get(name).scm.names)}var" in name
