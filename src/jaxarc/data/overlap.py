"""Tasks that occur in more than one data set, and how they are joined without leaks."""

import hashlib
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from jaxarc.data.packing import PackedTasks, select_tasks


def task_contents(tasks: PackedTasks) -> list[str]:
    """A digest of every task's pairs, whatever their order and their part.

    ARC-AGI-2 carries most tasks of ARC-AGI-1 with the pairs in another order, so the
    order says nothing about whether two tasks are the same.
    """
    starts = tasks.starts
    contents = []
    for begin, end in pairwise(starts):
        pairs = sorted(
            tasks.planes[at : at + 2].tobytes() + tasks.sizes[at : at + 2].tobytes()
            for at in range(begin, end, 2)
        )
        contents.append(hashlib.sha256(b"".join(pairs)).hexdigest())
    return contents


def join_tasks(parts: Iterable[PackedTasks]) -> PackedTasks:
    """One after another, nothing left out."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    arrays = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("counts", "planes", "sizes", "colors")
    }
    return PackedTasks(ids=tuple(i for part in parts for i in part.ids), **arrays)


def combine_tasks(
    parts: Iterable[PackedTasks], without: Iterable[PackedTasks] = ()
) -> PackedTasks:
    """Tasks of several sets, each once, none that is in a set of `without`.

    Two tasks are the same if they have the same id or the same pairs; the first one
    given is kept. For a training side pass the evaluation splits as `without`: a task
    that will be evaluated is then not trained on.

    What this meets in the two published sets (pairs compared whatever their order):
    of the 400 training tasks of ARC-AGI-1, 391 ids and 392 contents are training tasks
    of ARC-AGI-2, and one content is an evaluation task of ARC-AGI-1 as well; of its
    400 evaluation tasks, 376 ids and 375 contents are *training* tasks of ARC-AGI-2,
    and 6 are evaluation tasks of ARC-AGI-2.
    """
    seen: set[str] = set()
    for part in without:
        seen.update(part.ids, task_contents(part))
    whole = join_tasks(parts)
    kept = []
    for row, names in enumerate(zip(whole.ids, task_contents(whole), strict=True)):
        if seen.isdisjoint(names):
            kept.append(row)
            seen.update(names)
    return select_tasks(whole, kept)
