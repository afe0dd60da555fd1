"""Training of surrogate and policy; every name of the performance guide."""

from acbo.named import (
    NamedSCM,
    create_linear_mechanism,
    create_sample,
    create_scm,
    sample_from_scm,
    samples_to_avici_data,
    samples_to_avici_format,
)
from acbo.posterior import (
    ParentSetPosterior,
    compare_posteriors,
    create_parent_set_posterior,
    get_marginal_parent_probabilities,
    get_most_likely_parents,
)
from acbo.surrogate.losses import (
    calibrated_loss,
    calibrated_loss_jax,
    kl_divergence_loss,
    kl_divergence_loss_jax,
    multi_target_loss,
    uncertainty_weighted_loss,
    uncertainty_weighted_loss_jax,
)
from acbo.training import mixed_precision
from acbo.training.batches import TrainingBatchJAX, convert_to_jax_batch
from acbo.training.config import (
    EvaluationConfig,
    ExplorationTrainingConfig,
    GRPOTrainingConfig,
    RewardTrainingConfig,
    SurrogateTrainingConfig,
    TrainingConfig,
)
from acbo.training.convergence import (
    ConvergenceConfig,
    ConvergenceState,
    observe_episode,
)
from acbo.training.curriculum import (
    CURRICULUM_SCHEDULE,
    LEVELS,
    CurriculumLevel,
    Mix,
    Progress,
    advance,
    classify_difficulty,
    progressive_curriculum_sampling,
)
from acbo.training.demonstrations import (
    create_training_batch,
    example_from_samples,
    expert_posterior,
)
from acbo.training.examples import (
    TrainingBatch,
    TrainingExample,
    create_training_batch_from_examples,
    extract_training_data_from_demonstrations,
)
from acbo.training.experience import (
    ExperienceRecipe,
    PolicyParams,
    SurrogateData,
    Trajectories,
    collect_experience,
    start_policy_params,
    update_policy_grpo,
    update_surrogate_jax,
)
from acbo.training.grpo import TrainedSystem, grpo_with_jax_surrogate
from acbo.training.imitation import train_surrogate_model
from acbo.training.measuring import (
    benchmark_sustained_performance,
    measure_compilation_speedup,
    monitor_memory_usage,
)
from acbo.training.optimizers import create_optimizer, create_schedule
from acbo.training.parent_set_model import (
    ParentSetModel,
    create_parent_set_model,
    predict_parent_posterior,
)
from acbo.training.progressive import (
    collect_observational_data,
    evaluate_on_held_out_set,
    generate_scm_for_difficulty,
    optimized_progressive_learning,
    train_on_difficulty_level,
)
from acbo.training.records import TrainingMetrics, ValidationResults
from acbo.training.samples import create_test_batch, create_test_model, test_config
from acbo.training.static_arguments import prepare_static_args, restore_static_args
from acbo.training.steps import (
    create_adaptive_train_step,
    create_jax_surrogate_train_step,
    create_surrogate_train_step,
)
from acbo.training.validation import validate_surrogate_performance

__all__ = [
    "CURRICULUM_SCHEDULE",
    "LEVELS",
    "ConvergenceConfig",
    "ConvergenceState",
    "CurriculumLevel",
    "EvaluationConfig",
    "ExperienceRecipe",
    "ExplorationTrainingConfig",
    "GRPOTrainingConfig",
    "Mix",
    "NamedSCM",
    "ParentSetModel",
    "ParentSetPosterior",
    "PolicyParams",
    "Progress",
    "RewardTrainingConfig",
    "SurrogateData",
    "SurrogateTrainingConfig",
    "TrainedSystem",
    "TrainingBatch",
    "TrainingBatchJAX",
    "TrainingConfig",
    "TrainingExample",
    "TrainingMetrics",
    "Trajectories",
    "ValidationResults",
    "advance",
    "benchmark_sustained_performance",
    "calibrated_loss",
    "calibrated_loss_jax",
    "classify_difficulty",
    "collect_experience",
    "collect_observational_data",
    "compare_posteriors",
    "convert_to_jax_batch",
    "create_adaptive_train_step",
    "create_jax_surrogate_train_step",
    "create_linear_mechanism",
    "create_optimizer",
    "create_parent_set_model",
    "create_parent_set_posterior",
    "create_sample",
    "create_schedule",
    "create_scm",
    "create_surrogate_train_step",
    "create_test_batch",
    "create_test_model",
    "create_training_batch",
    "create_training_batch_from_examples",
    "evaluate_on_held_out_set",
    "example_from_samples",
    "expert_posterior",
    "extract_training_data_from_demonstrations",
    "generate_scm_for_difficulty",
    "get_marginal_parent_probabilities",
    "get_most_likely_parents",
    "grpo_with_jax_surrogate",
    "kl_divergence_loss",
    "kl_divergence_loss_jax",
    "measure_compilation_speedup",
    "mixed_precision",
    "monitor_memory_usage",
    "multi_target_loss",
    "observe_episode",
    "optimized_progressive_learning",
    "predict_parent_posterior",
    "prepare_static_args",
    "progressive_curriculum_sampling",
    "restore_static_args",
    "sample_from_scm",
    "samples_to_avici_data",
    "samples_to_avici_format",
    "start_policy_params",
    "test_config",
    "train_on_difficulty_level",
    "train_surrogate_model",
    "uncertainty_weighted_loss",
    "uncertainty_weighted_loss_jax",
    "update_policy_grpo",
    "update_surrogate_jax",
    "validate_surrogate_performance",
]
