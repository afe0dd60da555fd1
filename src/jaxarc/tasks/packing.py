"""Many tasks as bit planes in a few NumPy arrays, and from there to the device at once.

Planes are kept at the largest side a word can hold, so one packed data set serves
every padded shape: rows are cut and words narrowed when a task is asked for. Sets that
share tasks are joined so that none is trained on and evaluated.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxarc.bit_planes import LARGEST_SIDE as SIDE
from jaxarc.bit_planes import PADDING, PLANES, pack_grid, unpack_rows, word_type
from jaxarc.config.groups import DatasetConfig
from jaxarc.tasks.task_json import GridArray, RawTask

if TYPE_CHECKING:
    from jaxarc.types import JaxArcTask

CHUNK = 4096  # grids unpacked at a time: some tens of megabytes


@dataclass(frozen=True, eq=False)
class PackedTasks:
    """Tasks on the host, one after another.

    Task `i` owns the next `2 * counts[i].sum()` grids: its demonstrations, then its
    tests, in each pair first the input. A missing answer has size 0.
    """

    ids: tuple[str, ...]
    counts: np.ndarray  # int32 (tasks, 2): demonstrations and tests
    planes: np.ndarray  # uint32 (grids, planes, SIDE)
    sizes: np.ndarray  # int32 (grids, 2)
    colors: np.ndarray  # int8 (grids,): the largest color, -1 for a missing answer
    problems: tuple[str, ...] = ()  # why other tasks of the source are not here

    def __post_init__(self):
        grids = 2 * int(self.counts.sum())
        expected = {
            "counts": (self.counts, np.int32, (len(self.ids), 2)),
            "planes": (self.planes, np.uint32, (grids, PLANES, SIDE)),
            "sizes": (self.sizes, np.int32, (grids, 2)),
            "colors": (self.colors, np.int8, (grids,)),
        }
        for name, (array, dtype, shape) in expected.items():
            if array.shape != shape or array.dtype != dtype:
                raise ValueError(
                    f"{name} is {array.dtype} {array.shape}: {len(self.ids)} tasks "
                    f"with these counts need {np.dtype(dtype)} {shape}"
                )

    @property
    def starts(self) -> np.ndarray:
        """The first grid of every task, and the end of the last."""
        return np.concatenate([[0], 2 * np.cumsum(self.counts.sum(axis=1))])

    @property
    def owners(self) -> np.ndarray:
        """The row of the task that every grid belongs to."""
        return np.repeat(np.arange(len(self.ids)), 2 * self.counts.sum(axis=1))


def pack_tasks(tasks: Sequence[RawTask]) -> PackedTasks:
    """Pack checked tasks, in the order given."""
    grids: list[GridArray | None] = []
    for task in tasks:
        for pair in (*task.train, *task.test):
            grids.extend(pair)
    counts = np.array([(len(t.train), len(t.test)) for t in tasks], np.int32)
    sizes = np.array([(0, 0) if g is None else g.shape for g in grids], np.int32)
    packed = [_pack_chunk(grids[at : at + CHUNK]) for at in range(0, len(grids), CHUNK)]
    planes, colors = zip(*packed, strict=True) if packed else ((), ())
    return PackedTasks(
        ids=tuple(task.id for task in tasks),
        counts=counts.reshape(-1, 2),
        planes=_joined(planes, (PLANES, SIDE), np.uint32),
        sizes=sizes.reshape(-1, 2),
        colors=_joined(colors, (), np.int8),
    )


def _pack_chunk(grids: Sequence[GridArray | None]) -> tuple[np.ndarray, np.ndarray]:
    cells = np.full((len(grids), SIDE, SIDE), PADDING, np.int8)
    for grid, target in zip(grids, cells, strict=True):
        if grid is not None:
            target[: grid.shape[0], : grid.shape[1]] = grid
    return pack_grid(cells), cells.max(axis=(1, 2))


def _joined(parts: Iterable[np.ndarray], shape: tuple[int, ...], dtype: Any) -> Any:
    return np.concatenate([np.zeros((0, *shape), dtype), *parts])


def select_tasks(tasks: PackedTasks, rows: Sequence[int]) -> PackedTasks:
    """Return some of the tasks, in the order asked for."""
    starts = tasks.starts
    grids = _joined([np.arange(starts[i], starts[i + 1]) for i in rows], (), np.int64)
    chosen = np.asarray(rows, np.int64)
    return PackedTasks(
        ids=tuple(tasks.ids[i] for i in rows),
        counts=tasks.counts[chosen],
        planes=tasks.planes[grids],
        sizes=tasks.sizes[grids],
        colors=tasks.colors[grids],
        problems=tasks.problems,
    )


def unpack_task(tasks: PackedTasks, row: int) -> RawTask:
    """Return one of the tasks as grids of their real size, without using JAX."""
    grids = slice(*tasks.starts[row : row + 2])
    cells = np.zeros((grids.stop - grids.start, SIDE, SIDE), np.int8)
    for plane in range(PLANES):
        cells |= unpack_rows(tasks.planes[grids, plane], SIDE) << np.int8(plane)
    found = [
        grid[:height, :width] if height else None
        for grid, (height, width) in zip(cells, tasks.sizes[grids], strict=True)
    ]
    pairs: Any = tuple(zip(found[0::2], found[1::2], strict=True))
    train = int(tasks.counts[row, 0])
    return RawTask(tasks.ids[row], pairs[:train], pairs[train:])


def find_misfits(tasks: PackedTasks, config: DatasetConfig) -> dict[int, str]:
    """Return which tasks do not fit, by row, and why; the reason names the remedy."""
    there, owners = tasks.sizes[:, 0] > 0, tasks.owners
    (train, test), (height, width) = tasks.counts.T, tasks.sizes.T
    too_small = lambda value, limit: there & (value < limit)
    rules = (
        ("max_train_pairs", train, np.greater, "train pairs"),
        ("max_test_pairs", test, np.greater, "test pairs"),
        ("max_grid_height", height, np.greater, "rows in a grid"),
        ("max_grid_width", width, np.greater, "columns in a grid"),
        ("min_grid_height", height, too_small, "rows in a grid"),
        ("min_grid_width", width, too_small, "columns in a grid"),
        ("max_colors", tasks.colors, np.greater_equal, "as a color"),
    )
    reasons: dict[int, str] = {}
    for name, values, breaks, unit in rules:
        limit = getattr(config, name)
        for at in np.flatnonzero(breaks(values, limit)):
            row = int(at if name.endswith("pairs") else owners[at])
            reason = (
                f"task {tasks.ids[row]!r} has {values[at]} {unit} and {name} is "
                f"{limit}: change {name} in the DatasetConfig or leave the task out"
            )
            reasons.setdefault(row, reason)
    return reasons


def stack_tasks(
    tasks: PackedTasks, config: DatasetConfig, task_indices: Sequence[int]
) -> "JaxArcTask":
    """Stack all the tasks on the device; ValueError if one does not fit."""
    return _on_device(_pad(tasks, config, task_indices), config)


def unstacked_task(
    tasks: PackedTasks, row: int, config: DatasetConfig, task_index: int
) -> "JaxArcTask":
    """Return one of the tasks on the device; ValueError if it does not fit."""
    arrays = _pad(select_tasks(tasks, [row]), config, [task_index])
    return _on_device([array[0] for array in arrays], config)


def _on_device(arrays: Sequence[Any], config: DatasetConfig) -> "JaxArcTask":
    # Imported here, so that looking at tasks does not load JAX.
    from jaxarc.types import JaxArcTask

    planes, sizes, train, test, indices = arrays
    return JaxArcTask.from_packed(
        *(planes, sizes, train, test, indices),
        width=config.max_grid_width,
        max_train_pairs=config.max_train_pairs,
    )


def _pad(
    tasks: PackedTasks, config: DatasetConfig, task_indices: Sequence[int]
) -> list[np.ndarray]:
    """Put every pair at its slot: demonstrations from 0, then tests."""
    misfits = find_misfits(tasks, config)
    if misfits:
        raise ValueError(next(iter(misfits.values())))
    height, most = (
        config.max_grid_height,
        (config.max_train_pairs, config.max_test_pairs),
    )
    dtype = word_type(height, config.max_grid_width)
    shape = (len(tasks.ids), sum(most), 2)
    planes = np.zeros((*shape, PLANES, height), dtype)
    sizes = np.zeros((*shape, 2), np.int32)
    filled = np.concatenate(
        [np.arange(most[part]) < tasks.counts[:, part, None] for part in (0, 1)], axis=1
    )
    rows = tasks.planes[..., :height].astype(dtype)
    planes[filled] = rows.reshape(-1, 2, *rows.shape[1:])
    sizes[filled] = tasks.sizes.reshape(-1, 2, 2)
    return [planes, sizes, *tasks.counts.T, np.asarray(task_indices, np.int32)]


def task_contents(tasks: PackedTasks) -> list[str]:
    """Return a digest of every task's pairs, whatever their order and their part.

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


def combine_tasks(
    parts: Iterable[PackedTasks], without: Iterable[PackedTasks] = ()
) -> PackedTasks:
    """Combine tasks of several sets, each once, without those of `without`.

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
    parts = list(parts)
    arrays = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("counts", "planes", "sizes", "colors")
    }
    whole = PackedTasks(
        ids=tuple(task_id for part in parts for task_id in part.ids),
        problems=tuple(problem for part in parts for problem in part.problems),
        **arrays,
    )
    kept = []
    for row, names in enumerate(zip(whole.ids, task_contents(whole), strict=True)):
        if seen.isdisjoint(names):
            kept.append(row)
            seen.update(names)
    return select_tasks(whole, kept)
