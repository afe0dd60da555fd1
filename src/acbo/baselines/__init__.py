"""Proposers and predictors to compare with: chance, truth, and the known methods."""

from acbo.baselines.gaussian import GaussianPairs, GaussianProcess, RandomPairs
from acbo.baselines.parent_scale import ParentScale
from acbo.baselines.proposers import (
    ExactImprovement,
    ExactThompson,
    Greedy,
    Oracle,
    ParentOracle,
    Random,
)
from acbo.baselines.structure import (
    Correlation,
    Everything,
    Nothing,
    Regression,
    SetPosterior,
    exact_predictor,
    local_predictor,
)
from acbo.baselines.table import predictors, proposers

__all__ = [
    "Correlation",
    "Everything",
    "ExactImprovement",
    "ExactThompson",
    "GaussianPairs",
    "GaussianProcess",
    "Greedy",
    "Nothing",
    "Oracle",
    "ParentOracle",
    "ParentScale",
    "Random",
    "RandomPairs",
    "Regression",
    "SetPosterior",
    "exact_predictor",
    "local_predictor",
    "predictors",
    "proposers",
]
