"""Tasks made up for demonstrations, examples and tests."""

import numpy as np

from jaxarc.types import JaxArcTask

BLOCK = 3  # cells a side


def create_demo_task(
    height: int = 30,
    width: int = 30,
    max_train_pairs: int = 1,
    max_test_pairs: int = 1,
) -> JaxArcTask:
    """Recolor a centered 3x3 block from 1 to 2: one demonstration, one test.

    The block is cut to grids that are smaller.
    """
    given = np.zeros((height, width), np.int32)
    top, left = max(0, (height - BLOCK) // 2), max(0, (width - BLOCK) // 2)
    given[top : top + BLOCK, left : left + BLOCK] = 1
    return _one_grid_task(
        given, 2 * given, (1, 1), (max_train_pairs, max_test_pairs), 0
    )


def create_mock_task(height: int = 30, width: int = 30) -> JaxArcTask:
    """Three demonstrations and a test of all-zero grids: solved as it is given."""
    blank = np.zeros((height, width), np.int32)
    return _one_grid_task(blank, blank, (3, 1), (3, 1), -1)


def _one_grid_task(
    given: np.ndarray,
    wanted: np.ndarray,
    counts: tuple[int, int],
    room: tuple[int, int],
    task_index: int,
) -> JaxArcTask:
    """The same pair in every used slot."""
    arrays = []
    for used, slots in zip(counts, room, strict=True):
        mask = np.broadcast_to(
            np.arange(slots)[:, None, None] < used, (slots, *given.shape)
        )
        for grid in (given, wanted):
            arrays += [np.where(mask, grid[None], np.int32(-1)), mask]
        arrays.append(used)
    return JaxArcTask(*arrays, task_index=task_index)
