"""Checked and packed data sets on disk, so that files are parsed only once."""

import hashlib
import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxarc.data.packing import PackedTasks, pack_tasks
from jaxarc.data.parse import TaskError, parse_task
from jaxarc.data.sources import Source
from jaxrig.compilation import cache_folder
from jaxrig.container import ContainerError
from jaxrig.storage import BlobStore

SCHEMA = 2
ARRAYS = ("counts", "planes", "sizes", "colors")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class ParsedDataset:
    """The sound tasks of a source, and a sentence about each of the others."""

    tasks: PackedTasks
    problems: tuple[str, ...]


def parse_source(source: Source) -> ParsedDataset:
    """Read and check every task; those that are not sound become problems."""
    tasks, problems = [], []
    for entry in source.entries():
        try:
            tasks.append(parse_task(entry.load(), entry.id, entry.where))
        except TaskError as error:
            problems.append(str(error))
    return ParsedDataset(pack_tasks(tasks), tuple(problems))


def load_source(source: Source) -> ParsedDataset:
    """The data set, from the cache if that has it as the files now are.

    The cache is a convenience: a damaged entry is made again with a warning, and where
    the folder (`jaxrig.compilation.cache_folder`) cannot be written nothing is kept.
    """
    try:
        store = BlobStore(cache_folder() / "arc", compression_level=1)
    except OSError as error:
        logger.info("no cache for %s: %s", source.title, error)
        return parse_source(source)
    place = source.place.encode("utf-8", "surrogateescape")
    name = f"{source.title}-{hashlib.sha256(place).hexdigest()[:32]}"
    stamp = f"{SCHEMA} {source.stamp()}"
    cached = _load(store, name, stamp)
    if cached is not None:
        return cached
    parsed = parse_source(source)
    _save(store, name, stamp, parsed)
    return parsed


def _load(store: BlobStore, name: str, stamp: str) -> ParsedDataset | None:
    if not store.exists(name):
        return None
    try:
        blob = store.load(name)
        return _decode(blob) if blob["stamp"] == stamp else None
    except (ContainerError, ValueError, TypeError, KeyError, OSError) as error:
        logger.warning("cached data set %s is damaged, parsing again: %s", name, error)
        return None


def _save(store: BlobStore, name: str, stamp: str, parsed: ParsedDataset) -> None:
    blob: dict[str, Any] = {array: getattr(parsed.tasks, array) for array in ARRAYS}
    blob |= {"stamp": stamp, "ids": parsed.tasks.ids, "problems": parsed.problems}
    try:
        store.save(blob, name)
    except OSError as error:
        logger.info("data set %s was not kept in the cache: %s", name, error)


def _decode(blob: dict[str, Any]) -> ParsedDataset:
    arrays = {array: np.asarray(blob[array]) for array in ARRAYS}
    return ParsedDataset(PackedTasks(ids=blob["ids"], **arrays), blob["problems"])
