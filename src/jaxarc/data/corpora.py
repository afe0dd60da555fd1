"""The parsers of MiniARC and ConceptARC, and the choice of a parser by name."""

import logging
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from jaxarc.config.dataset import DatasetConfig
from jaxarc.data.packing import PackedTasks
from jaxarc.data.parsers import ArcAgiParser, TaskParser
from jaxarc.data.sources import (
    FolderSource,
    concept_folder_source,
    dataset_kind,
    mini_folder_source,
)
from jaxarc.types import JaxArcTask

MINI_SIDE = 5

logger = logging.getLogger(__name__)


class MiniArcParser(TaskParser):
    """MiniARC: tasks of grids up to 5x5; larger ones are left out with an error log."""

    title = "MiniARC"

    def __init__(self, config: DatasetConfig):
        super().__init__(config)
        sides = (config.max_grid_height, config.max_grid_width)
        if max(sides) > MINI_SIDE:
            logger.warning(
                "MiniARC grids are at most %d x %d, padding to %d x %d wastes memory",
                *(MINI_SIDE, MINI_SIDE, *sides),
            )

    def _find(self, folder: Path) -> FolderSource:
        return mini_folder_source(folder)

    def _left_out(self, tasks: PackedTasks) -> dict[int, str]:
        larger = (tasks.sizes > MINI_SIDE).any(axis=1)
        return {
            row: f"task {tasks.ids[row]!r} with a grid of {height} x {width}: those of "
            f"MiniARC are at most {MINI_SIDE} x {MINI_SIDE}, read it as ARC-AGI"
            for row, (height, width) in zip(
                tasks.owners[larger].tolist(), tasks.sizes[larger].tolist(), strict=True
            )
        }


class ConceptArcParser(TaskParser):
    """ConceptARC: ids are `<Concept>/<file>`, and tasks are grouped by concept."""

    title = "ConceptARC"

    def _find(self, folder: Path) -> FolderSource:
        return concept_folder_source(folder)

    def get_concept_groups(self) -> list[str]:
        """The concepts, sorted."""
        return sorted({_concept(task_id) for task_id in self.tasks.ids})

    def get_tasks_in_concept(self, concept: str) -> list[str]:
        """The ids of a concept's tasks, sorted."""
        ids = [task_id for task_id in self.tasks.ids if _concept(task_id) == concept]
        if not ids:
            groups = ", ".join(self.get_concept_groups())
            raise ValueError(f"concept {concept!r} is not one of: {groups}")
        return ids

    def get_random_task_from_concept(
        self, concept: str, key: PRNGKeyArray
    ) -> JaxArcTask:
        """One of a concept's tasks, all equally likely."""
        ids = self.get_tasks_in_concept(concept)
        return self.get_task_by_id(ids[int(jax.random.randint(key, (), 0, len(ids)))])

    def get_task_metadata(self, task_id: str) -> dict[str, Any]:
        """Concept, name, file and numbers of pairs of a task."""
        demonstrations, tests = self.tasks.counts[self._row(task_id)].tolist()
        concept, _, name = task_id.partition("/")
        files = dict(self.source.files) if self.source else {}
        return {
            "concept_group": concept,
            "task_name": name,
            "file_path": str(files[task_id]),
            "num_demonstrations": demonstrations,
            "num_test_inputs": tests,
        }

    def get_dataset_statistics(self) -> dict[str, Any]:
        """How many tasks there are, and per concept how many pairs they have."""
        groups = {}
        for concept in self.get_concept_groups():
            ids = self.get_tasks_in_concept(concept)
            means = np.mean([self.tasks.counts[self._row(i)] for i in ids], axis=0)
            groups[concept] = {
                "num_tasks": len(ids),
                "avg_demonstrations": float(means[0]),
                "avg_test_inputs": float(means[1]),
                "tasks": ids,
            }
        return {
            "total_tasks": len(self.tasks.ids),
            "total_concept_groups": len(groups),
            "concept_groups": groups,
        }


def _concept(task_id: str) -> str:
    return task_id.partition("/")[0]


def create_parser(config: DatasetConfig) -> TaskParser:
    """The parser of the data set that `config.dataset_name` means."""
    kind = dataset_kind(config.dataset_name)
    parsers = {"Mini": MiniArcParser, "Concept": ConceptArcParser}
    return parsers.get(kind, ArcAgiParser)(config)
