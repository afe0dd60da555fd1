"""What can be asked of posteriors over parent sets: measures, filters, comparison."""

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from acbo.posterior.distribution import (
    ParentSet,
    ParentSetPosterior,
    create_parent_set_posterior,
)


def get_most_likely_parents(
    posterior: ParentSetPosterior, k: int = 1
) -> list[ParentSet]:
    """The k likeliest parent sets, the likeliest first."""
    return [chosen for chosen, _ in posterior.top_sets(k)]


def get_parent_set_probability(
    posterior: ParentSetPosterior, parents: Iterable[str]
) -> float:
    """Probability of one parent set; 0.0 for a set that is no candidate."""
    return posterior.parent_set_probs.get(frozenset(parents), 0.0)


def get_marginal_parent_probabilities(
    posterior: ParentSetPosterior, all_variables: Collection[str] | None = None
) -> dict[str, float]:
    """P(variable is a direct cause) for every variable but the target."""
    return posterior.parent_probs(all_variables)


def compute_posterior_entropy(posterior: ParentSetPosterior) -> float:
    """Entropy of the posterior in nats."""
    return posterior.uncertainty


def compute_posterior_concentration(posterior: ParentSetPosterior) -> float:
    """exp(-entropy): 1 when all mass is on one set, 1/n when spread evenly over n.

    It is one over the effective number of parent sets.
    """
    return float(np.exp(-posterior.uncertainty))


def filter_parent_sets_by_probability(
    posterior: ParentSetPosterior, min_probability: float = 0.01
) -> ParentSetPosterior:
    """Only the sets of at least this probability, scaled to sum to one again."""
    kept = posterior.probabilities >= min_probability
    if not kept.any():
        raise ValueError(
            f"no parent set has probability {min_probability} or more: the likeliest "
            f"has {posterior.probabilities.max():.6g}, lower min_probability"
        )
    sets = [s for s, keep in zip(posterior.parent_sets, kept, strict=True) if keep]
    chances = posterior.probabilities[kept]
    metadata = {**posterior.metadata, "filtered_mass": float(chances.sum())}
    return create_parent_set_posterior(
        posterior.target_variable, sets, chances / chances.sum(), metadata
    )


def compare_posteriors(
    posterior1: ParentSetPosterior,
    posterior2: ParentSetPosterior,
    *,
    floor: float = 1e-12,
) -> dict[str, float]:
    """Divergences in nats, total variation and overlap of two posteriors of a target.

    Inside logarithms a set one posterior rules out counts as `floor`, which keeps the
    divergences finite; 0 gives the exact, possibly infinite, ones.
    """
    if posterior1.target_variable != posterior2.target_variable:
        raise ValueError(
            f"the targets {posterior1.target_variable!r} and "
            f"{posterior2.target_variable!r} differ: compare posteriors of one target"
        )
    sets = list(dict.fromkeys([*posterior1.parent_sets, *posterior2.parent_sets]))
    p, q = (
        np.array([posterior.parent_set_probs.get(s, 0.0) for s in sets])
        for posterior in (posterior1, posterior2)
    )
    forward, backward = _divergence(p, q, floor), _divergence(q, p, floor)
    common = set(posterior1.parent_sets) & set(posterior2.parent_sets)
    return {
        "kl_divergence_1_to_2": forward,
        "kl_divergence_2_to_1": backward,
        "symmetric_kl_divergence": (forward + backward) / 2,
        "total_variation_distance": float(np.abs(p - q).sum() / 2),
        "overlap": float(np.minimum(p, q).sum()),
        "n_common_parent_sets": len(common),
    }


def _divergence(p: np.ndarray, q: np.ndarray, floor: float) -> float:
    there = p > 0
    with np.errstate(divide="ignore"):
        terms = p[there] * (np.log(p[there]) - np.log(np.maximum(q[there], floor)))
    return float(terms.sum())


def summarize_posterior(posterior: ParentSetPosterior) -> dict[str, Any]:
    """The posterior in a few numbers: entropy, likeliest set, marginals."""
    best, chance = posterior.top_k_sets[0]
    return {
        "target_variable": posterior.target_variable,
        "n_parent_sets": len(posterior.parent_sets),
        "uncertainty_nats": posterior.uncertainty,
        "uncertainty_bits": posterior.uncertainty / float(np.log(2)),
        "concentration": compute_posterior_concentration(posterior),
        "most_likely_parents": set(best),
        "most_likely_probability": chance,
        "marginal_parent_probabilities": posterior.parent_probs(),
        "probability_mass_top_3": sum(p for _, p in posterior.top_k_sets[:3]),
        "effective_n_parent_sets": float(np.exp(posterior.uncertainty)),
        "metadata": dict(posterior.metadata),
    }
