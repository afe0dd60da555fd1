import pytest

from jaxarc.config.fields import ConfigValidationError
from jaxarc.config.outputs import WandbConfig


def test_defaults_are_valid_and_report_nothing():
    assert WandbConfig().validate() == ()
    assert WandbConfig().enabled is False


def test_a_group_of_runs_has_a_name():
    assert WandbConfig.from_hydra({"group": "first", "tags": []}) == WandbConfig(
        group="first", tags=()
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("project_name", ""),
        ("entity", 3),
        ("tags", ("a", "a")),
        ("tags", "a"),
        ("job_type", ""),
        ("log_frequency", 0),
    ],
)
def test_illegal_values_are_named(field, value):
    (error,) = WandbConfig(**{field: value}).validate()
    assert error.startswith(f"wandb.{field} is {value!r}; it must be ")


def test_settings_without_effect_are_refused():
    with pytest.raises(ConfigValidationError, match="save_code has no effect here"):
        WandbConfig.from_hydra({"save_code": True})
