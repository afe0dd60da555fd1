import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxarc.config.fields import ConfigValidationError
from jaxarc.config.groups import (
    HistoryConfig,
    get_action_record_fields,
    get_selection_data_size,
)

USE_CASES = st.sampled_from(["development", "training", "evaluation"])
FORMATS = st.sampled_from(["point", "bbox", "mask"])


@pytest.mark.parametrize(
    ("selection_format", "fields"), [("point", 6), ("bbox", 8), ("mask", 904)]
)
def test_records_have_the_documented_sizes(selection_format, fields):
    assert get_selection_data_size(selection_format, 30, 30) == fields - 4
    assert get_action_record_fields(selection_format, 30, 30) == fields
    usage = HistoryConfig().estimate_memory_usage(selection_format)
    assert usage["total_bytes"] == fields * 4 * 1000


def test_an_unknown_format_is_named():
    with pytest.raises(ValueError, match="'circle' is not one of: point, bbox, mask"):
        get_selection_data_size("circle")


def test_memory_is_explained():
    usage = HistoryConfig(max_history_length=10).estimate_memory_usage("mask", 5, 4, 2)
    assert usage == {
        "total_bytes": 480,
        "human_readable": "480 bytes",
        "breakdown": {
            "records": 10,
            "selection_bytes": 400,
            "metadata_bytes": 80,
            "fields_per_record": 24,
        },
    }
    assert HistoryConfig().estimate_memory_usage()["human_readable"] == "3.6 MB"


def test_what_is_not_kept_takes_no_memory():
    assert HistoryConfig(enabled=False).estimate_memory_usage()["total_bytes"] == 0
    thin = HistoryConfig(store_selection_data=False).estimate_memory_usage("mask")
    assert thin["total_bytes"] == 16_000


@pytest.mark.parametrize("length", [0, -1])
def test_no_length_is_refused_at_construction(length):
    with pytest.raises(ConfigValidationError, match=f"max_history_length is {length}"):
        HistoryConfig(max_history_length=length)


def test_other_wrong_lengths_are_findings():
    (error,) = HistoryConfig.from_hydra({"max_history_length": "long"}).validate()
    assert error.startswith("history.max_history_length is 'long'; it must be")


def test_a_long_history_is_unusual(caplog):
    with caplog.at_level(logging.WARNING):
        assert HistoryConfig(max_history_length=10_001).validate() == ()
    assert "history.max_history_length is 10001" in caplog.text


@pytest.mark.parametrize(
    "name", ["store_intermediate_grids", "compress_repeated_actions"]
)
def test_settings_without_effect_are_refused(name):
    with pytest.raises(ConfigValidationError, match=f"{name} has no effect here"):
        HistoryConfig.from_hydra({name: True})


@pytest.mark.parametrize(
    ("use_case", "expected"),
    [
        ("development", HistoryConfig(max_history_length=100)),
        ("training", HistoryConfig(max_history_length=1000)),
        ("evaluation", HistoryConfig(True, 500, store_selection_data=False)),
    ],
)
def test_a_use_case_has_its_history(use_case, expected):
    assert HistoryConfig.get_recommended_config(use_case=use_case) == expected


def test_a_short_budget_drops_selections_then_records():
    recommend = HistoryConfig().get_recommended_config
    selections = recommend("mask", memory_budget_mb=1, use_case="training")
    assert selections == HistoryConfig(True, 1000, store_selection_data=False)
    records = recommend("mask", memory_budget_mb=160 / 2**20, use_case="training")
    assert records == HistoryConfig(True, 10, store_selection_data=False)


@given(FORMATS, st.integers(1, 40), st.floats(1e-4, 10), USE_CASES)
def test_recommendations_fit(selection_format, size, budget, use_case):
    config = HistoryConfig.get_recommended_config(
        selection_format, size, size, budget, use_case
    )
    usage = config.estimate_memory_usage(selection_format, size, size)
    assert usage["total_bytes"] <= budget * 2**20
    assert config.validate() == ()


def test_what_cannot_be_recommended_is_said():
    with pytest.raises(ValueError, match="use case 'fun' is not one of: development"):
        HistoryConfig.get_recommended_config(use_case="fun")
    with pytest.raises(ValueError, match="holds no record of 16 bytes; raise it"):
        HistoryConfig.get_recommended_config(memory_budget_mb=0)
