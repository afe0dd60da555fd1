"""The least of everything that experience is collected with."""

import functools

import jax

from acbo.policy.environment import EpisodeConfig
from acbo.policy.model import PolicyConfig, PolicyNetwork
from acbo.training.config import (
    EvaluationConfig,
    GRPOTrainingConfig,
    SurrogateTrainingConfig,
    TrainingConfig,
)
from acbo.training.curriculum import CurriculumLevel, episodes_of
from acbo.training.experience import (
    ExperienceRecipe,
    PolicyParams,
    Trajectories,
    collect_experience,
    start_policy_params,
)
from acbo.training.policy import PolicyRecipe
from causal_parameters import fill
from causal_surrogates import draw_parameters, small_model

LEVEL = CurriculumLevel((3, 4), (2, 4), (0.1, 0.3), 0.8, 0.2, 1000, 50)
EPISODES = EpisodeConfig(observational=(6, 10), interventional=(0, 2), steps=2, draws=2)
NARROW = PolicyConfig(dim=4)
MODEL = small_model(layers=0, pair_layers=0)
SURROGATE = SurrogateTrainingConfig(batch_size=2, learning_rate=1e-2)
TRAINING = TrainingConfig(
    total_steps=2,
    warmup_steps=1,
    log_frequency=2,
    save_frequency=1,
    grpo=GRPOTrainingConfig(group_size=8, num_iterations=2),
    evaluation=EvaluationConfig(2, 2, (3, 4)),
)
RECIPE = ExperienceRecipe(
    PolicyRecipe(NARROW, episodes_of(LEVEL, EPISODES), TRAINING.grpo.learner(2))
)


@functools.cache
def params():
    return draw_parameters(MODEL)


@functools.cache
def policy_params() -> PolicyParams:
    network = fill(PolicyNetwork, NARROW, jax.random.key(0), scale=0.3)
    return start_policy_params(jax.random.key(1), RECIPE, network)


@functools.cache
def experience() -> Trajectories:
    return collect_experience(policy_params(), params())
