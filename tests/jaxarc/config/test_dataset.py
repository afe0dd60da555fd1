import logging
from pathlib import Path
from typing import Any

import pytest

from jaxarc.config.fields import ConfigValidationError
from jaxarc.config.groups import SPLITS, DatasetConfig, UnifiedDatasetConfig


def test_defaults_are_valid_and_take_the_smallest_grids():
    config = DatasetConfig()
    assert config.validate() == ()
    assert (config.min_grid_height, config.min_grid_width) == (1, 1)
    assert UnifiedDatasetConfig is DatasetConfig


@pytest.mark.parametrize("path", [r"C:\data", "https://host/x?y", Path("a/b"), ""])
def test_any_path_is_legal(path):
    assert DatasetConfig(dataset_path=path).validate() == ()


@pytest.mark.parametrize("split", SPLITS)
def test_every_split_is_legal(split):
    assert DatasetConfig(task_split=split).validate() == ()


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"dataset_name": " "}, "dataset.dataset_name is ' '"),
        ({"max_grid_height": 0}, "dataset.max_grid_height is 0"),
        ({"min_grid_width": 0}, "dataset.min_grid_width is 0"),
        ({"max_colors": 1}, "dataset.max_colors is 1"),
        ({"background_color": -2}, "dataset.background_color is -2"),
        ({"max_test_pairs": 0}, "dataset.max_test_pairs is 0"),
        ({"task_split": "validation"}, "dataset.task_split is 'validation'"),
        (
            {"max_grid_width": 4, "min_grid_width": 5},
            "dataset.max_grid_width is 4; it must be at least dataset.min_grid_width",
        ),
        (
            {"max_grid_height": 4, "min_grid_height": 5},
            "dataset.max_grid_height is 4; it must be at least dataset.min_grid_height",
        ),
        (
            {"background_color": 10},
            "dataset.background_color is 10; it must be below dataset.max_colors",
        ),
    ],
)
def test_illegal_values_are_named(changes, start):
    (error,) = DatasetConfig(**changes).validate()
    assert error.startswith(start)


def test_large_values_are_unusual(caplog):
    large: Any = {
        "max_grid_height": 201,
        "max_grid_width": 201,
        "max_colors": 51,
        "max_train_pairs": 21,
        "max_test_pairs": 6,
    }
    with caplog.at_level(logging.WARNING):
        assert DatasetConfig(**large).validate() == ()
    assert len(caplog.messages) == len(large)


def test_a_parser_is_not_named_here():
    with pytest.raises(ConfigValidationError, match="parser_entry_point has no effect"):
        DatasetConfig.from_hydra({"parser_entry_point": "x:y"})
