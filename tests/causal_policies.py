"""A small policy over a small surrogate, untrained, for commands and pictures."""

import functools

import jax
import numpy as np

from acbo.policy.advisor import Policy
from acbo.policy.model import PolicyConfig, PolicyNetwork
from acbo.policy.problem import Candidate
from acbo.surrogate.model import SurrogateConfig, SurrogateNetwork
from acbo.surrogate.predictor import Surrogate
from causal_parameters import fill

SIZES = SurrogateConfig(
    dim=4, layers=1, heads=1, key_size=4, dropout=0.0, pair_dim=4, pair_layers=1
)


@functools.cache
def small_surrogate() -> Surrogate:
    return Surrogate(fill(SurrogateNetwork, SIZES, jax.random.key(0), scale=0.3))


@functools.cache
def small_policy() -> Policy:
    given = PolicyNetwork, PolicyConfig(dim=4), jax.random.key(0)
    return Policy(small_surrogate(), fill(*given, seed=1, scale=0.3))


class MiddleOfRanges:
    """Every variable at the middle of its range, the first the likeliest."""

    def explain_with_edges(self, history, posterior=None, levels=None):
        chances = np.linspace(2, 1, len(history.ranges))
        found = [
            Candidate(
                name, sum(ends) / 2, chance / chances.sum(), 0.25, 0.5, -1.5, 2, 1
            )
            for (name, ends), chance in zip(
                history.ranges.items(), chances, strict=True
            )
        ]
        d = len(history.names)
        return found, np.full((d, d), 0.25) * ~np.eye(d, dtype=bool)
