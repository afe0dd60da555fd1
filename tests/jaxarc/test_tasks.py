"""Oracle: the packed tasks themselves, and the sizes of the files on disk."""

import json

import pytest

from jaxarc.tasks.parsers import DATASET_TITLES, open_dataset


def task(side, demonstrations, tests):
    grid = [[1] * side for _ in range(side)]
    pair = {"input": grid, "output": grid}
    return json.dumps({"train": [pair] * demonstrations, "test": [pair] * tests})


def test_every_task_of_an_embedded_set_fits():
    parser = open_dataset("arc-agi-1")
    assert parser.get_fitting_task_ids() == parser.get_available_task_ids()


def test_room_follows_the_files(tmp_path):
    (tmp_path / "a.json").write_text(task(3, 2, 1))
    (tmp_path / "b.json").write_text(task(5, 4, 2))
    assert open_dataset("mini", tmp_path).get_max_dimensions() == (5, 5, 4, 2)
    assert open_dataset("AGI2", tmp_path).get_max_dimensions() == (30, 30, 4, 2)


def test_every_data_set_has_a_title():
    with pytest.raises(ValueError, match="not known"):
        open_dataset("nothing")
    assert set(DATASET_TITLES) == {"AGI1", "AGI2", "AGI12", "Mini", "Concept"}
