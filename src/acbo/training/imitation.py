"""Training a surrogate on demonstrations: examples that an expert has labeled."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jaxtyping import PyTree

from acbo.surrogate.losses import (
    calibrated_loss,
    kl_divergence_loss,
    uncertainty_weighted_loss,
)
from acbo.training.batches import convert_to_jax_batch
from acbo.training.config import SurrogateTrainingConfig
from acbo.training.curriculum import progressive_curriculum_sampling
from acbo.training.examples import (
    TrainingBatch,
    TrainingExample,
    create_training_batch_from_examples,
    extract_training_data_from_demonstrations,
)
from acbo.training.optimizers import create_optimizer
from acbo.training.parent_set_model import ParentSetModel, create_parent_set_model
from acbo.training.steps import CompiledStep, create_jax_surrogate_train_step
from acbo.training.validation import validate_surrogate_performance
from jaxrig.keys import named_key

LOSSES: dict[str, Callable[..., Any]] = {
    "kl_divergence": kl_divergence_loss,
    "uncertainty_weighted": uncertainty_weighted_loss,
    "calibrated": calibrated_loss,
}


def train_surrogate_model(
    demos: Sequence[Any],
    config: SurrogateTrainingConfig,
    loss_type: str = "kl_divergence",
    use_curriculum: bool = True,
    validation_split: float = 0.2,
    random_seed: int = 42,
    *,
    model: ParentSetModel | None = None,
    expert_seconds: float = float("nan"),
) -> tuple[ParentSetModel, PyTree, dict[str, list[Any]]]:
    """Train on demonstrations; returns model, best parameters and the history.

    The history has `losses` and `step_times` by step, and `validation_metrics` by
    validation. Training ends early when the divergence from the expert was not lowered
    in `early_stopping_patience` validations. `expert_seconds` per example lets
    the validation say how much faster the model is.
    """
    if loss_type not in LOSSES:
        raise ValueError(f"loss_type={loss_type!r} is not one of: {', '.join(LOSSES)}")
    training, held_out = extract_training_data_from_demonstrations(
        demos, validation_split
    )
    if not training:
        raise ValueError(
            f"{len(held_out)} demonstrations and validation_split={validation_split} "
            "leave none to train on"
        )
    if model is None:
        model = create_parent_set_model(config.get_model_kwargs())
    per_epoch = -(-len(training) // config.batch_size)
    optimizer = create_optimizer(
        config.learning_rate, config.max_epochs * per_epoch, config.weight_decay
    )
    step = create_jax_surrogate_train_step(
        model, optimizer, LOSSES[loss_type], config, l2_in_loss=False
    )
    key = jax.random.key(random_seed)
    params = model.init(named_key(key, "parameters"))
    draw = functools.partial(_draw, training, config, model, use_curriculum)
    check = functools.partial(
        validate_surrogate_performance,
        model,
        validation_examples=held_out,
        expert_timing=expert_seconds,
    )
    return _run(step, params, draw, check if held_out else None, config, per_epoch, key)


def _draw(
    examples: list[TrainingExample],
    config: SurrogateTrainingConfig,
    model: ParentSetModel,
    use_curriculum: bool,
    step: int,
    key: Any,
) -> TrainingBatch:
    size, largest = config.batch_size, model.max_parent_size
    if use_curriculum:
        return progressive_curriculum_sampling(
            examples, size, step, None, key, max_parent_size=largest
        )
    return create_training_batch_from_examples(examples, size, key, largest)


def _run(
    step: CompiledStep,
    params: PyTree,
    draw: Callable[[int, Any], TrainingBatch],
    check: Callable[..., Any] | None,
    config: SurrogateTrainingConfig,
    per_epoch: int,
    key: Any,
) -> tuple[ParentSetModel, PyTree, dict[str, list[Any]]]:
    history: dict[str, list[Any]] = {
        "losses": [],
        "validation_metrics": [],
        "step_times": [],
    }
    state, best, least, waited = step.start(params), params, float("inf"), 0
    for epoch in range(config.max_epochs):
        for index in range(epoch * per_epoch, (epoch + 1) * per_epoch):
            choose, drop = jax.random.split(jax.random.fold_in(key, index))
            batch = convert_to_jax_batch(draw(index, choose))
            params, state, metrics = step.timed(params, state, batch.arrays, drop)
            history["losses"].append(metrics.total_loss)
            history["step_times"].append(metrics.step_time)
        last = epoch + 1 == config.max_epochs
        if check is None or not (
            last or (epoch + 1) % config.validation_frequency == 0
        ):
            continue
        found = check(params)
        history["validation_metrics"].append(found)
        waited = 0 if found.posterior_kl_divergence < least else waited + 1
        if waited == 0:
            best, least = params, found.posterior_kl_divergence
        if waited >= config.early_stopping_patience:
            break
    return step.model, params if check is None else best, history
