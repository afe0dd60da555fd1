"""All baselines by name, ready to be evaluated beside a system of one's own."""

from typing import Any

from acbo.baselines import structure
from acbo.baselines.exact import ExactImprovement, ExactThompson
from acbo.baselines.gaussian import GaussianPairs, GaussianProcess, RandomPairs
from acbo.baselines.parent_scale import ParentScale
from acbo.baselines.proposers import Greedy, Oracle, ParentOracle, Random


def proposers() -> dict[str, Any]:
    """Return proposers by name; those on exact posteriors (`exact_...`) are for a dozen
    variables at most.
    """
    return {
        "random": Random(),
        "oracle": Oracle(),
        "parent_oracle": ParentOracle(),
        "greedy": Greedy(structure.Regression().predict),
        "gp": GaussianProcess(),
        "gp_pairs": GaussianPairs(),
        "random_pairs": RandomPairs(),
        "parent_scale": ParentScale(),
        "exact_thompson": ExactThompson(),
        "exact_ei": ExactImprovement(),
    }


def predictors() -> dict[str, Any]:
    """Return parent predictors by name."""
    return {
        "all": structure.Constant(1.0),
        "none": structure.Constant(0.0),
        "correlation": structure.Correlation(),
        "regression": structure.Regression(),
        "local": structure.local_predictor(),
        "exact": structure.exact_predictor(),
    }
