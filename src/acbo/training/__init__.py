"""Door for the performance guide: every name that it uses, from the modules below.

The training itself is in `acbo.training.surrogate` and `acbo.training.policy`.
"""

from acbo.named.samples import samples_to_avici_data, samples_to_avici_format
from acbo.surrogate.losses import (
    kl_divergence_loss,
    kl_divergence_loss_jax,
    uncertainty_weighted_loss,
    uncertainty_weighted_loss_jax,
)
from acbo.training import mixed_precision
from acbo.training.difficulty import (
    collect_observational_data,
    create_test_batch,
    create_test_model,
    create_training_batch,
    generate_scm_for_difficulty,
    optimized_progressive_learning,
    test_config,
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
    grpo_with_jax_surrogate,
    start_policy_params,
    update_policy_grpo,
    update_surrogate_jax,
)
from acbo.training.measuring import (
    benchmark_sustained_performance,
    measure_compilation_speedup,
    monitor_memory_usage,
    prepare_static_args,
    restore_static_args,
)
from acbo.training.parent_set_model import (
    ParentSetModel,
    SurrogateTrainingConfig,
    create_parent_set_model,
    predict_parent_posterior,
)
from acbo.training.steps import (
    TrainingMetrics,
    create_adaptive_train_step,
    create_jax_surrogate_train_step,
    create_surrogate_train_step,
)

__all__ = [
    "ParentSetModel",
    "SurrogateData",
    "SurrogateTrainingConfig",
    "TrainingBatch",
    "TrainingBatchJAX",
    "TrainingExample",
    "TrainingMetrics",
    "benchmark_sustained_performance",
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
    "samples_to_avici_data",
    "samples_to_avici_format",
    "start_policy_params",
    "test_config",
    "uncertainty_weighted_loss",
    "uncertainty_weighted_loss_jax",
    "update_policy_grpo",
    "update_surrogate_jax",
]
