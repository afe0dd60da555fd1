"""The recipes by which the shipped surrogate and policy were trained."""

from dataclasses import replace

from acbo.datasets import DataConfig
from acbo.families import SCMConfig
from acbo.policy.environment import EpisodeConfig
from acbo.surrogate.model import SurrogateConfig
from acbo.training.policy import PolicyRecipe
from acbo.training.surrogate import SurrogateRecipe
from jaxrig.learn import GRPOConfig

# A name given more than once is drawn as often.
_SPARSE = ("er1", "er2") * 3 + ("scale_free",) * 2
_GRAPHS = ("chain", "fork", *_SPARSE, "collider", "mixed", "two_layer")
_NOISES = ("gaussian", "laplace", "uniform", "heteroscedastic")


def shipped_surrogate() -> SurrogateRecipe:
    """Linear models of three kinds, and others, in four sizes of data.

    `docs/baselines.md` tells how the steps were taken in several runs.
    """
    graphs = (*_GRAPHS, "random", "star")
    wide = SCMConfig(graphs, ("linear",), ("gaussian",), (0, 3), (0.2, 1), 0.7, 0.15)
    firm = SCMConfig(graphs, ("linear",), ("gaussian",), (0.5, 2), (0.5, 2), 0.6, 0.15)
    bent = SCMConfig(
        graphs,
        ("linear", "tanh", "mlp", "rff"),
        _NOISES,
        (0.3, 2.5),
        (0.2, 2),
        equal_noise=0.5,
        any_target=0.15,
    )
    wavy = SCMConfig(graphs, ("wave",), _NOISES, (0, 1), (0.3, 2), 0.5, 0.15)
    plain = SCMConfig(graphs, any_target=0.1)
    scms = (wide, wide, firm, firm, bent, wavy)
    few = tuple(
        replace(each, families=("er2", *graphs)) for each in (*scms, plain, plain)
    )
    return SurrogateRecipe(
        model=SurrogateConfig(
            dim=64,
            layers=2,
            heads=4,
            key_size=16,
            widening_factor=2,
            dropout=0.0,
            pair_dim=64,
            pair_layers=6,
            compute_dtype="bfloat16",
        ),
        data=(
            DataConfig((wide, firm), 4, 32, (2, 4), (8, 22), (0, 10), exact=True),
            DataConfig(few, 8, 32, (3, 8), (8, 22), (0, 10)),
            DataConfig((*scms, plain), 8, 128, (3, 8), (20, 100), (0, 28)),
            DataConfig(scms, 16, 128, (6, 16), (20, 100), (0, 28)),
        ),
        batches=(128, 512, 192, 96),
        steps=23_000,
        steps_per_update=20,
        learning_rate=1e-3,
        warmup=300,
        set_weight=0.2,
    )


def shipped_policy() -> PolicyRecipe:
    """Episodes of twenty experiments on models of three to eight variables."""
    graphs = ("chain", "fork", *("er1", "er2") * 2, "scale_free", *_GRAPHS[-3:])
    wide = SCMConfig(graphs, weights=(0, 3), noise=(0.3, 1), equal_noise=0.7)
    firm = SCMConfig(graphs, weights=(0.5, 2), noise=(0.5, 1.5), equal_noise=0.6)
    bent = SCMConfig(
        graphs,
        ("quadratic", "tanh", "mlp", "rff"),
        weights=(0.3, 2.5),
        noise=(0.3, 3.0),
        equal_noise=0.5,
    )
    wavy = SCMConfig(
        graphs, ("wave",), weights=(0, 1), noise=(0.5, 4.0), equal_noise=0.5
    )
    return PolicyRecipe(
        episodes=EpisodeConfig(
            scms=(wide, firm, bent, wavy, wavy),
            variables=8,
            sizes=(3, 8),
            observational=(10, 40),
            interventional=(0, 12),
            steps=20,
            draws=16,
        ),
        learner=GRPOConfig(
            states=96,
            group_size=16,
            horizon=20,
            num_iterations=2,
            learning_rate=7e-4,
            entropy_coeff=0.001,
            discount=0.97,
        ),
    )
