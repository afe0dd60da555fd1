"""Parsers: a data set behind one set of methods, read once, packed for the device."""

import dataclasses
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from jaxarc.config.groups import DatasetConfig
from jaxarc.tasks import packing, sources
from jaxarc.tasks.identity import register_task, registered_id
from jaxarc.tasks.task_json import RawTask, parse_task
from jaxrig.settings import nearest

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray

    from jaxarc.types import JaxArcTask

logger = logging.getLogger(__name__)

P = TypeVar("P", bound="TaskParser")


class TaskParser(ABC):
    """The tasks of one data set; subclasses say where they are.

    Making a parser only looks for the files. They are read when the first task or the
    list of ids is asked for, all at once, from the cache if it has them. A file that
    is not a sound task is named in a warning and left out. A sound task that does not
    fit the configured sizes is listed, but a ValueError when it is asked for.
    """

    title: ClassVar[str] = "data set"

    def __init__(self, config: DatasetConfig):
        self.config = config.checked()
        self._load: Callable[[], packing.PackedTasks]
        if config.dataset_path:
            folder = Path(config.dataset_path).expanduser().absolute()
            self._load = partial(sources.load_source, self._find(folder))
        else:
            self._load = self._embedded()

    @classmethod
    def from_hydra(cls: type[P], cfg: Any) -> P:
        """Return a parser from the dataset group of a Hydra configuration."""
        return cls(DatasetConfig.from_hydra(cfg))

    @abstractmethod
    def _find(self, folder: Path) -> sources.Source:
        """Return the files of this data set below a folder."""

    def _embedded(self) -> Callable[[], packing.PackedTasks]:
        """Return how to load what comes with the package."""
        raise RuntimeError(
            f"{self.title} is not included in the package: give its folder as "
            "dataset_path (--path on the command line), or download it with "
            f"`jaxrig arc download {self.title.lower()}`; AGI1 and AGI2 are included"
        )

    def _left_out(self, tasks: packing.PackedTasks) -> dict[int, str]:
        """Return sound tasks that are not of this data set, by row, and why."""
        return {}

    @cached_property
    def tasks(self) -> packing.PackedTasks:
        """The sound tasks, sorted by id, packed on the host."""
        tasks = self._load()
        for problem in tasks.problems:
            logger.warning("skipped %s", problem)
        left_out = self._left_out(tasks)
        for reason in left_out.values():
            logger.error("skipped %s", reason)
        kept = [row for row in range(len(tasks.ids)) if row not in left_out]
        if not kept:
            reasons = [*tasks.problems, *left_out.values(), "there are no files"]
            raise RuntimeError(
                f"{self.title}: no usable task is left, the first reason: {reasons[0]}"
            )
        tasks = packing.select_tasks(tasks, kept) if left_out else tasks
        for task_id in tasks.ids:
            register_task(task_id)
        return tasks

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {task_id: row for row, task_id in enumerate(self.tasks.ids)}

    @cached_property
    def _misfits(self) -> dict[int, str]:
        misfits = packing.find_misfits(self.tasks, self.config)
        if misfits:
            logger.warning(
                "%s: %d of %d tasks do not fit the configured sizes; the first: %s",
                self.title,
                len(misfits),
                len(self.tasks.ids),
                next(iter(misfits.values())),
            )
        return misfits

    def _row(self, task_id: str) -> int:
        row = self._rows.get(task_id)
        if row is None:
            raise ValueError(
                f"task {task_id!r} is not one of the {len(self.tasks.ids)} tasks of "
                f"{self.title} (split {self.config.task_split!r}): "
                f"{nearest(str(task_id), self.tasks.ids)}"
            )
        return row

    def get_available_task_ids(self) -> list[str]:
        """Return the ids of all sound tasks, sorted."""
        return list(self.tasks.ids)

    def get_fitting_task_ids(self) -> list[str]:
        """Return the ids of the tasks within the configured sizes, sorted."""
        misfits = self._misfits
        return [t for row, t in enumerate(self.tasks.ids) if row not in misfits]

    def get_task_by_id(self, task_id: str) -> "JaxArcTask":
        """Return one task; ValueError if there is none, or it does not fit."""
        row, index = self._row(task_id), register_task(task_id)
        return packing.unstacked_task(self.tasks, row, self.config, index)

    def get_raw_task(self, task_id: str) -> RawTask:
        """Return the grids of one task on the host, of any size."""
        return packing.unpack_task(self.tasks, self._row(task_id))

    def get_random_task(self, key: "PRNGKeyArray") -> "JaxArcTask":
        """Return one of the fitting tasks, all equally likely."""
        import jax

        ids = self.get_fitting_task_ids()
        if not ids:
            raise RuntimeError(
                f"{self.title}: none of {len(self.tasks.ids)} tasks fits; the first "
                f"reason: {next(iter(self._misfits.values()))}"
            )
        return self.get_task_by_id(ids[int(jax.random.randint(key, (), 0, len(ids)))])

    def buffer(self, ids: Sequence[str] | None = None) -> "JaxArcTask":
        """Stack these tasks, by default all, on the device, in this order."""
        ids = self.tasks.ids if ids is None else ids
        if not ids:
            raise ValueError("no ids: a buffer holds at least one task")
        rows = [self._row(task_id) for task_id in ids]
        tasks = packing.select_tasks(self.tasks, rows)
        misfits = packing.find_misfits(tasks, self.config)
        if misfits:
            raise ValueError(
                f"{len(misfits)} of {len(rows)} tasks do not fit, the first: "
                f"{next(iter(misfits.values()))} (get_fitting_task_ids() lists those "
                "that fit)"
            )
        return packing.stack_tasks(tasks, self.config, [*map(register_task, ids)])

    def get_task_index_for_id(self, task_id: str) -> int:
        """Return the process-wide number of one of the tasks."""
        self._row(task_id)
        return register_task(task_id)

    def get_task_by_index(self, task_index: Any) -> "JaxArcTask":
        """Return the task of a process-wide number; ValueError if it is not here."""
        known = self._rows
        task_id = registered_id(int(task_index))
        if task_id not in known:
            stands = "stands for no task" if task_id is None else f"is task {task_id!r}"
            raise ValueError(
                f"task index {int(task_index)} {stands}, which {self.title} does not "
                "have: indices follow the order of registration, use "
                "get_task_index_for_id"
            )
        return self.get_task_by_id(task_id)

    def preprocess_task_data(
        self, raw: Any, key: "PRNGKeyArray | None" = None, task_id: str | None = None
    ) -> "JaxArcTask":
        """Return a task from its JSON object, checked and padded; `key` is not needed.

        With an id the task gets a process-wide number, without one it is -1.
        """
        tasks = packing.pack_tasks([parse_task(raw, task_id or "task")])
        index = -1 if task_id is None else register_task(task_id)
        return packing.unstacked_task(tasks, 0, self.config, index)

    def get_max_dimensions(self) -> tuple[int, int, int, int]:
        """Return padded height and width, demonstration slots and test slots."""
        config = self.config
        return (
            config.max_grid_height,
            config.max_grid_width,
            config.max_train_pairs,
            config.max_test_pairs,
        )


class ArcAgiParser(TaskParser):
    """ARC-AGI-1 and -2 from a folder, or embedded when `dataset_path` is empty."""

    title = "ARC-AGI"

    def _find(self, folder: Path) -> sources.Source:
        return sources.arc_folder_source(folder, self.config.task_split)

    def _embedded(self) -> Callable[[], packing.PackedTasks]:
        kind = sources.dataset_kind(self.config.dataset_name)
        if not kind.startswith("AGI"):
            raise ValueError(
                f"dataset_name is {self.config.dataset_name!r} and dataset_path is "
                "empty: only arc-agi-1 and arc-agi-2 are embedded, give the folder of "
                "the others as dataset_path (--path on the command line)"
            )
        for one in ("AGI1", "AGI2") if kind == sources.BOTH else (kind,):
            sources.embedded_source(
                one, self.config.task_split
            )  # or say what is missing
        return partial(sources.load_embedded, kind, self.config.task_split)


class MiniArcParser(TaskParser):
    """MiniARC: tasks of grids up to 5x5; larger ones are left out with an error log."""

    title = "MiniARC"

    def __init__(self, config: DatasetConfig):
        super().__init__(config)
        sides = (config.max_grid_height, config.max_grid_width)
        if max(sides) > sources.MINI_SIDE:
            logger.warning(
                "MiniARC grids are at most %d x %d, padding to %d x %d wastes memory",
                *(sources.MINI_SIDE, sources.MINI_SIDE, *sides),
            )

    def _find(self, folder: Path) -> sources.Source:
        return sources.mini_folder_source(folder)

    def _left_out(self, tasks: packing.PackedTasks) -> dict[int, str]:
        larger = (tasks.sizes > sources.MINI_SIDE).any(axis=1)
        most = f"{sources.MINI_SIDE} x {sources.MINI_SIDE}"
        return {
            row: f"task {tasks.ids[row]!r} with a grid of {height} x {width}: those of "
            f"MiniARC are at most {most}, read it as ARC-AGI"
            for row, (height, width) in zip(
                tasks.owners[larger].tolist(), tasks.sizes[larger].tolist(), strict=True
            )
        }


class ConceptArcParser(TaskParser):
    """ConceptARC: ids are `<Concept>/<file>`, and tasks are grouped by concept."""

    title = "ConceptARC"

    def _find(self, folder: Path) -> sources.Source:
        return sources.concept_folder_source(folder)

    def get_concept_groups(self) -> list[str]:
        """Return the concepts, sorted."""
        return sorted({_concept(task_id) for task_id in self.tasks.ids})

    def get_tasks_in_concept(self, concept: str) -> list[str]:
        """Return the ids of a concept's tasks, sorted."""
        ids = [task_id for task_id in self.tasks.ids if _concept(task_id) == concept]
        if not ids:
            groups = ", ".join(self.get_concept_groups())
            raise ValueError(f"concept {concept!r} is not one of: {groups}")
        return ids


def _concept(task_id: str) -> str:
    return task_id.partition("/")[0]


def create_parser(config: DatasetConfig) -> TaskParser:
    """Return the parser of the data set that `config.dataset_name` means."""
    kind = sources.dataset_kind(config.dataset_name)
    parsers = {"Mini": MiniArcParser, "Concept": ConceptArcParser}
    return parsers.get(kind, ArcAgiParser)(config)


def open_dataset(
    dataset: str, path: str | os.PathLike[str] = "", split: str = "all"
) -> TaskParser:
    """Return a data set, with room for every pair of every task.

    >>> open_dataset("arc-agi-1", split="train").get_max_dimensions()
    (30, 30, 10, 3)
    """
    kind = sources.dataset_kind(dataset)
    config = DatasetConfig(
        dataset_name=kind,
        dataset_path=os.fspath(path),
        task_split=split,
        **sources.DATASETS[kind].sizes,
    )
    parser = create_parser(config)
    demonstrations, tests = parser.tasks.counts.max(axis=0).tolist()
    # The tasks are read already: a second parser would read them again.
    parser.config = dataclasses.replace(
        config, max_train_pairs=demonstrations, max_test_pairs=tests
    )
    return parser
