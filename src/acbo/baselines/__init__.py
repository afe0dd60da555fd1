"""Proposers and predictors to compare with: chance, truth, and the known methods.

`proposers()` and `predictors()` give all of them by name.
"""

from acbo.baselines.exact import ExactImprovement, ExactThompson
from acbo.baselines.gaussian import GaussianPairs, GaussianProcess
from acbo.baselines.parent_scale import ParentScale
from acbo.baselines.proposers import Greedy, Oracle, Random
from acbo.baselines.registry import predictors, proposers
from acbo.baselines.structure import Regression

__all__ = [
    "ExactImprovement",
    "ExactThompson",
    "GaussianPairs",
    "GaussianProcess",
    "Greedy",
    "Oracle",
    "ParentScale",
    "Random",
    "Regression",
    "predictors",
    "proposers",
]
