"""A model, a batch and settings of the size that the performance guide speaks of."""

import jax
import numpy as np
from jaxtyping import PyTree

from acbo.posterior import create_parent_set_posterior
from acbo.training.config import SurrogateTrainingConfig
from acbo.training.examples import TrainingBatch, TrainingExample
from acbo.training.parent_set_model import ParentSetModel, create_parent_set_model
from acbo.types import TARGET, VALUE

test_config = SurrogateTrainingConfig(
    model_hidden_dim=16, model_n_layers=2, dropout=0.0, batch_size=3
)


def create_test_model(
    config: SurrogateTrainingConfig = test_config, seed: int = 0
) -> tuple[ParentSetModel, PyTree]:
    """A small model and its first parameters."""
    model = create_parent_set_model(config.get_model_kwargs())
    return model, model.init(jax.random.key(seed))


def create_test_batch(
    n_examples: int = 3, n_samples: int = 20, seed: int = 0
) -> TrainingBatch:
    """Examples of three variables: Y = X + noise, Z apart, and a made-up expert."""
    random = np.random.default_rng(seed)
    names = ["X", "Y", "Z"]
    sets = [frozenset(), frozenset("X"), frozenset("Z"), frozenset("XZ")]
    examples = []
    for _ in range(n_examples):
        data = np.zeros((n_samples, 3, 3), np.float32)
        data[..., VALUE] = random.normal(size=(n_samples, 3))
        data[:, 1, VALUE] += data[:, 0, VALUE]
        data[:, 1, TARGET] = 1.0
        chances = random.dirichlet([1.0, 6.0, 1.0, 2.0])
        examples.append(
            TrainingExample(
                observational_data=data,
                target_variable="Y",
                variable_order=names,
                expert_posterior=create_parent_set_posterior("Y", sets, chances),
                expert_accuracy=float(chances[1]),
                scm_info={"n_nodes": 3, "true_parents": ("X",)},
                problem_difficulty="easy",
            )
        )
    return TrainingBatch(examples)
