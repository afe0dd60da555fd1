"""A small policy over a small surrogate, untrained, for commands and pictures."""

import functools

import jax
import numpy as np

from acbo.policy.advisor import Policy
from acbo.policy.model import PolicyConfig, PolicyNetwork
from acbo.policy.planning import EffectCurve, Plan
from acbo.policy.problem import Candidate, Experiment
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


def middle_of_ranges(seen, posterior, problem, levels):
    """In place of `plan`: every variable at the middle of its range, the first the
    likeliest.
    """
    chances = np.linspace(2, 1, len(seen.ranges))
    found = [
        Candidate(name, sum(ends) / 2, chance / chances.sum(), 0.25, 0.5, -1.5, 2, 1)
        for (name, ends), chance in zip(seen.ranges.items(), chances, strict=True)
    ]
    batch = [Experiment({each.variable: each.value}, -1.5, 2, 1) for each in found]
    curves = {
        name: EffectCurve(np.array(ends), np.full(2, -1.5), np.full(2, 2.0))
        for name, ends in seen.ranges.items()
    }
    return Plan(batch[:1], found, curves, 1.0)
