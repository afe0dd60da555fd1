"""Exact posteriors for linear-Gaussian data, draws from them, and plain baselines."""

from acbo.experts.exact import (
    edge_posterior,
    exact_edge_posterior,
    exact_parent_posterior,
    parent_posterior,
)
from acbo.experts.local import local_parent_posterior, local_posterior, marginals_of
from acbo.experts.models import (
    SampledModel,
    TargetLines,
    expected_target,
    mean_expected_target,
    sample_model,
    sample_models,
)
from acbo.experts.ols import ols_inclusion, ols_parents, regression_t
from acbo.experts.scores import ScorePrior

__all__ = [
    "SampledModel",
    "ScorePrior",
    "TargetLines",
    "edge_posterior",
    "exact_edge_posterior",
    "exact_parent_posterior",
    "expected_target",
    "local_parent_posterior",
    "local_posterior",
    "marginals_of",
    "mean_expected_target",
    "ols_inclusion",
    "ols_parents",
    "parent_posterior",
    "regression_t",
    "sample_model",
    "sample_models",
]
