"""Many tasks as bit planes in a few NumPy arrays, and from there to the device at once.

Planes are kept at the largest side a word can hold, so one packed data set serves
every padded shape: rows are cut and words narrowed when a task is asked for. Sets that
share tasks are joined so that none is trained on and evaluated.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from jaxarc import bits
from jaxarc.tasks.task_json import GridArray, RawTask
from jaxarc.types import JaxArcTask

SIDE = bits.LARGEST_SIDE
CHUNK = 4096  # grids unpacked at a time: some tens of megabytes


@dataclass(frozen=True)
class Dimensions:
    """The padded shape of a task: height, width, demonstration and test slots."""

    height: int
    width: int
    train_pairs: int
    test_pairs: int


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

    def __post_init__(self):
        grids = 2 * int(self.counts.sum())
        expected = {
            "counts": (self.counts, np.int32, (len(self.ids), 2)),
            "planes": (self.planes, np.uint32, (grids, bits.PLANES, SIDE)),
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
        planes=_joined(planes, (bits.PLANES, SIDE), np.uint32),
        sizes=sizes.reshape(-1, 2),
        colors=_joined(colors, (), np.int8),
    )


def _pack_chunk(grids: Sequence[GridArray | None]) -> tuple[np.ndarray, np.ndarray]:
    cells = np.full((len(grids), SIDE, SIDE), bits.PADDING, np.int8)
    for grid, target in zip(grids, cells, strict=True):
        if grid is not None:
            target[: grid.shape[0], : grid.shape[1]] = grid
    return bits.pack_grid(cells), cells.max(axis=(1, 2))


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
    )


def unpack_task(tasks: PackedTasks, row: int) -> RawTask:
    """Return one of the tasks as grids of their real size, without using JAX."""
    grids = slice(*tasks.starts[row : row + 2])
    cells = np.zeros((grids.stop - grids.start, SIDE, SIDE), np.int8)
    for plane in range(bits.PLANES):
        cells |= bits.unpack_rows(tasks.planes[grids, plane], SIDE) << np.int8(plane)
    found = [
        grid[:height, :width] if height else None
        for grid, (height, width) in zip(cells, tasks.sizes[grids], strict=True)
    ]
    pairs: Any = tuple(zip(found[0::2], found[1::2], strict=True))
    train = int(tasks.counts[row, 0])
    return RawTask(tasks.ids[row], pairs[:train], pairs[train:])


@dataclass(frozen=True)
class Limits:
    """What a task must keep to, beside having room: smallest grid and colors."""

    min_height: int = 1
    min_width: int = 1
    max_colors: int = 10


ANY_GRID = Limits()


def find_misfits(
    tasks: PackedTasks, room: Dimensions, limits: Limits = ANY_GRID
) -> dict[int, str]:
    """Return which tasks do not fit, by row, and why; the reason names the remedy."""
    owners = tasks.owners
    there = tasks.sizes[:, 0] > 0
    (train, test), (height, width) = tasks.counts.T, tasks.sizes.T
    most, least = np.greater, lambda value, limit: there & (value < limit)
    too_many = lambda value, limit: value >= limit
    rules = (
        ("max_train_pairs", train, most, room.train_pairs, "train pairs"),
        ("max_test_pairs", test, most, room.test_pairs, "test pairs"),
        ("max_grid_height", height, most, room.height, "rows in a grid"),
        ("max_grid_width", width, most, room.width, "columns in a grid"),
        ("min_grid_height", height, least, limits.min_height, "rows in a grid"),
        ("min_grid_width", width, least, limits.min_width, "columns in a grid"),
        ("max_colors", tasks.colors, too_many, limits.max_colors, "as a color"),
    )
    reasons: dict[int, str] = {}
    for name, values, breaks, limit, unit in rules:
        for at in np.flatnonzero(breaks(values, limit)):
            row = int(at if name.endswith("pairs") else owners[at])
            reason = (
                f"task {tasks.ids[row]!r} has {values[at]} {unit} and {name} is "
                f"{limit}: change {name} in the DatasetConfig or leave the task out"
            )
            reasons.setdefault(row, reason)
    return reasons


def stack_tasks(
    tasks: PackedTasks, room: Dimensions, task_indices: Sequence[int]
) -> JaxArcTask:
    """Stack all the tasks on the device; ValueError if one has no room."""
    return _as_task(_pad_slots(tasks, room), room, np.asarray(task_indices, np.int32))


def unstacked_task(
    tasks: PackedTasks, row: int, room: Dimensions, task_index: int
) -> JaxArcTask:
    """Return one of the tasks on the device; ValueError if it has no room."""
    arrays = _pad_slots(select_tasks(tasks, [row]), room)
    return _as_task([array[0] for array in arrays], room, np.int32(task_index))


def _as_task(arrays: Sequence[Any], room: Dimensions, task_index: Any) -> JaxArcTask:
    planes, sizes, counts = arrays
    return JaxArcTask.from_packed(
        planes,
        sizes,
        counts[..., 0],
        counts[..., 1],
        task_index,
        room.width,
        room.train_pairs,
    )


def _pad_slots(tasks: PackedTasks, room: Dimensions) -> tuple[np.ndarray, ...]:
    """Put every pair at its slot: demonstrations from 0, then tests."""
    misfits = find_misfits(tasks, room)
    if misfits:
        raise ValueError(next(iter(misfits.values())))
    dtype = bits.word_type(room.height, room.width)
    shape = (len(tasks.ids), room.train_pairs + room.test_pairs, 2)
    planes = np.zeros((*shape, bits.PLANES, room.height), dtype)
    sizes = np.zeros((*shape, 2), np.int32)
    slots = np.arange(room.train_pairs), np.arange(room.test_pairs)
    filled = np.concatenate(
        [slots[part] < tasks.counts[:, part, None] for part in (0, 1)], axis=1
    )
    rows = tasks.planes[..., : room.height].astype(dtype)
    planes[filled] = rows.reshape(-1, 2, *rows.shape[1:])
    sizes[filled] = tasks.sizes.reshape(-1, 2, 2)
    return planes, sizes, tasks.counts


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


def join_tasks(parts: Iterable[PackedTasks]) -> PackedTasks:
    """Concatenate sets of tasks, keeping all."""
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
    whole = join_tasks(parts)
    kept = []
    for row, names in enumerate(zip(whole.ids, task_contents(whole), strict=True)):
        if seen.isdisjoint(names):
            kept.append(row)
            seen.update(names)
    return select_tasks(whole, kept)
