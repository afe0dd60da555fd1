import pytest

from jaxarc.config.fields import ConfigValidationError
from jaxarc.config.outputs import StorageConfig


def test_defaults_are_valid_and_delete_nothing():
    assert StorageConfig().validate() == ()
    assert StorageConfig().clear_output_on_start is False


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("policy", "all"),
        ("base_output_dir", ""),
        ("run_name", ""),
        ("visualization_dir", ""),
        ("logs_dir", ""),
        ("max_episodes_per_run", 0),
        ("max_storage_gb", 0.0),
        ("cleanup_policy", "random"),
        ("keep_recent_episodes", -1),
        ("clear_output_on_start", None),
    ],
)
def test_illegal_values_are_named(field, value):
    (error,) = StorageConfig(**{field: value}).validate()
    assert error.startswith(f"storage.{field} is {value!r}; it must be ")


def test_a_run_may_have_a_name():
    assert StorageConfig(run_name="first").validate() == ()


def test_settings_without_effect_are_refused():
    with pytest.raises(ConfigValidationError, match="auto_cleanup has no effect here"):
        StorageConfig.from_hydra({"auto_cleanup": True})
