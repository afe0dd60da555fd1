"""Every documented import path leads to its names."""

import importlib
import importlib.metadata

import pytest

import jaxarc

PATHS = {
    "jaxarc": "ArcEnvironment ArcEnvState JaxArcConfig JaxArcTask Grid TaskPair "
    "ARCLEAction arc_reset arc_step create_arc_env_state get_jaxarc_config_dir "
    "load_jaxarc_config extend_jaxarc_config list_available_configs "
    "create_config_template",
    "jaxarc.envs": "JaxArcConfig EnvironmentConfig UnifiedDatasetConfig "
    "UnifiedActionConfig VisualizationConfig UnifiedRewardConfig StorageConfig "
    "LoggingConfig WandbConfig ConfigValidationError ArcEpisodeConfig "
    "ArcEpisodeManager ActionSpaceController ArcEnvironment ArcEnvState "
    "ArcObservation ObservationConfig PointAction BboxAction MaskAction "
    "StructuredAction create_point_action create_bbox_action create_mask_action "
    "get_action_handler arc_reset arc_step execute_grid_operation "
    "get_operation_name MultiBinary Space Environment EnvParams State TimeStep "
    "StepType reset step useful_operations possible_operations mask_useless GridSpace "
    "SelectionSpace ARCActionSpace Discrete Bounded DictSpace ActionRecord "
    "ActionHistoryTracker",
    "jaxarc.envs.action_history": "ActionRecord ActionHistoryTracker",
    "jaxarc.envs.functional": "arc_reset arc_step batch_reset batch_step "
    "create_observation create_batch_episode_runner analyze_batch_performance "
    "create_batch_keys split_key_for_batch_step validate_batch_keys "
    "ensure_deterministic_batch_keys reset step",
    "jaxarc.envs.structured_actions": "PointAction BboxAction MaskAction BaseAction "
    "StructuredAction create_point_action create_bbox_action create_mask_action",
    "jaxarc.utils.error_handling": "JAXErrorHandler assert_positive assert_in_range "
    "assert_shape_matches",
    "jaxarc.utils.serialization_utils": "extract_task_id_from_index",
    "jaxarc.types": "JaxArcTask Grid TaskPair",
}


@pytest.mark.parametrize(
    ("path", "name"),
    [(path, name) for path, names in PATHS.items() for name in names.split()],
)
def test_name_is_there(path, name):
    assert hasattr(importlib.import_module(path), name)


@pytest.mark.parametrize("path", ["jaxarc", "jaxarc.envs", "jaxarc.envs.functional"])
def test_what_is_listed_is_there(path):
    module = importlib.import_module(path)
    assert all(hasattr(module, name) for name in module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)


def test_the_version_is_that_of_the_distribution():
    assert jaxarc.__version__ == importlib.metadata.version("jaxrig")
