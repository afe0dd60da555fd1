"""Distributions over the parent sets of a target, and what can be asked of them."""

from acbo.posterior.distribution import (
    ParentSetPosterior,
    create_parent_set_posterior,
)
from acbo.posterior.measures import (
    compare_posteriors,
    compute_posterior_concentration,
    compute_posterior_entropy,
    filter_parent_sets_by_probability,
    get_marginal_parent_probabilities,
    get_most_likely_parents,
    get_parent_set_probability,
    summarize_posterior,
)

__all__ = [
    "ParentSetPosterior",
    "compare_posteriors",
    "compute_posterior_concentration",
    "compute_posterior_entropy",
    "create_parent_set_posterior",
    "filter_parent_sets_by_probability",
    "get_marginal_parent_probabilities",
    "get_most_likely_parents",
    "get_parent_set_probability",
    "summarize_posterior",
]
