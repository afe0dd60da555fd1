"""The least of everything that experience is collected with."""

import functools
from dataclasses import replace

import jax

import causal_learning
from acbo.policy.model import PolicyConfig, PolicyNetwork
from acbo.training.experience import (
    PolicyParams,
    Trajectories,
    collect_experience,
    start_policy_params,
)
from acbo.training.policy import PolicyRecipe
from causal_parameters import fill
from causal_surrogates import draw_parameters, small_model

NARROW = PolicyConfig(dim=4)
MODEL = small_model(layers=0, pair_layers=0)
EPISODES = replace(causal_learning.EPISODES, draws=2)
# Groups of single actions: later steps of a group are another copy of the environment
# in the program, and tests of GRPO itself take them.
LEARNER = replace(causal_learning.POLICY.learner, horizon=1)
RECIPE = PolicyRecipe(NARROW, EPISODES, LEARNER)


@functools.cache
def params():
    return draw_parameters(MODEL)


@functools.cache
def policy_params() -> PolicyParams:
    network = fill(PolicyNetwork, NARROW, jax.random.key(0), scale=0.3)
    return start_policy_params(jax.random.key(1), RECIPE, params(), network)


@functools.cache
def experience() -> Trajectories:
    return collect_experience(policy_params(), params())
