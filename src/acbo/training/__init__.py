"""Door for the performance guide: every name that it uses, from the modules below.

The training itself is in `acbo.training.surrogate`, `.policy` and `.grpo`.
"""

from acbo.surrogate.losses import (
    calibrated_loss,
    calibrated_loss_jax,
    kl_divergence_loss,
    kl_divergence_loss_jax,
    uncertainty_weighted_loss,
    uncertainty_weighted_loss_jax,
)
from acbo.training import mixed_precision
from acbo.training.config import (
    EvaluationConfig,
    ExplorationTrainingConfig,
    GRPOTrainingConfig,
    RewardTrainingConfig,
    SurrogateTrainingConfig,
    TrainingConfig,
)
from acbo.training.examples import (
    TrainingBatch,
    TrainingBatchJAX,
    TrainingExample,
    convert_to_jax_batch,
)
from acbo.training.experience import (
    SurrogateData,
    collect_experience,
    start_policy_params,
    update_policy_grpo,
    update_surrogate_jax,
)
from acbo.training.grpo import grpo_with_jax_surrogate
from acbo.training.measuring import (
    benchmark_sustained_performance,
    measure_compilation_speedup,
    monitor_memory_usage,
    prepare_static_args,
    restore_static_args,
)
from acbo.training.parent_set_model import (
    ParentSetModel,
    create_parent_set_model,
    predict_parent_posterior,
)
from acbo.training.progressive import (
    collect_observational_data,
    create_test_batch,
    create_test_model,
    create_training_batch,
    generate_scm_for_difficulty,
    optimized_progressive_learning,
    test_config,
)
from acbo.training.steps import (
    create_adaptive_train_step,
    create_jax_surrogate_train_step,
    create_surrogate_train_step,
)

__all__ = [
    "EvaluationConfig",
    "ExplorationTrainingConfig",
    "GRPOTrainingConfig",
    "ParentSetModel",
    "RewardTrainingConfig",
    "SurrogateData",
    "SurrogateTrainingConfig",
    "TrainingBatch",
    "TrainingBatchJAX",
    "TrainingConfig",
    "TrainingExample",
    "benchmark_sustained_performance",
    "calibrated_loss",
    "calibrated_loss_jax",
    "collect_experience",
    "collect_observational_data",
    "convert_to_jax_batch",
    "create_adaptive_train_step",
    "create_jax_surrogate_train_step",
    "create_parent_set_model",
    "create_surrogate_train_step",
    "create_test_batch",
    "create_test_model",
    "create_training_batch",
    "generate_scm_for_difficulty",
    "grpo_with_jax_surrogate",
    "kl_divergence_loss",
    "kl_divergence_loss_jax",
    "measure_compilation_speedup",
    "mixed_precision",
    "monitor_memory_usage",
    "optimized_progressive_learning",
    "predict_parent_posterior",
    "prepare_static_args",
    "restore_static_args",
    "start_policy_params",
    "test_config",
    "uncertainty_weighted_loss",
    "uncertainty_weighted_loss_jax",
    "update_policy_grpo",
    "update_surrogate_jax",
]
