"""Tasks by data set and id, padded to what the data set holds."""

import dataclasses
import os

from jaxarc.config import DatasetConfig
from jaxarc.data.corpora import MINI_SIDE, create_parser
from jaxarc.data.parsers import TaskParser
from jaxarc.data.sources import dataset_kind

DATASET_TITLES = {
    "AGI1": "ARC-AGI-1",
    "AGI2": "ARC-AGI-2",
    "AGI12": "ARC-AGI-1 and ARC-AGI-2, shared tasks once",
    "Mini": "MiniARC",
    "Concept": "ConceptARC",
}


def open_dataset(
    dataset: str, path: str | os.PathLike[str] = "", split: str = "all"
) -> TaskParser:
    """A data set, with room for every pair of every task.

    >>> open_dataset("arc-agi-1", split="train").get_max_dimensions()
    (30, 30, 10, 3)
    """
    kind = dataset_kind(dataset)
    side = MINI_SIDE if kind == "Mini" else 30
    config = DatasetConfig(
        dataset_name=kind,
        dataset_path=os.fspath(path),
        task_split=split,
        max_grid_height=side,
        max_grid_width=side,
    )
    demonstrations, tests = create_parser(config).tasks.counts.max(axis=0).tolist()
    config = dataclasses.replace(
        config, max_train_pairs=demonstrations, max_test_pairs=tests
    )
    return create_parser(config)
