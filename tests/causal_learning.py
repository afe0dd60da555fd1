"""Recipes small enough to compile in tests."""

from acbo.policy.model import PolicyConfig
from acbo.policy.rl_environment import EpisodeConfig
from acbo.random_models import DataConfig, SCMConfig
from acbo.surrogate.model import SurrogateConfig
from acbo.training.policy import PolicyRecipe
from acbo.training.surrogate import SurrogateRecipe
from jaxrig.learn import GRPOConfig

SCMS = (SCMConfig(families=("chain",)),)
NETWORK = SurrogateConfig(
    dim=8, layers=1, heads=1, key_size=8, pair_dim=8, pair_layers=1, dropout=0.0
)
SURROGATE = SurrogateRecipe(
    model=NETWORK,
    data=(DataConfig(SCMS, 4, 16, (3, 4), (6, 10), (0, 4)),),
    batches=(8,),
    steps=8,
    steps_per_update=2,
    warmup=1,
    learning_rate=1e-2,
)
EPISODES = EpisodeConfig(
    scms=SCMS,
    variables=4,
    sizes=(3, 4),
    observational=(6, 10),
    interventional=(0, 2),
    steps=2,
    draws=4,
)
POLICY = PolicyRecipe(
    PolicyConfig(8),
    EPISODES,
    GRPOConfig(states=2, group_size=3, horizon=2, num_iterations=1),
)
