"""Random puzzles and actions for episodes, and what a state shows."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import arc_reference as operations
from arc_episode_reference import NUM_OPERATIONS, SUBMIT, Puzzle
from jaxarc import config
from jaxarc.actions import BboxAction, MaskAction, PointAction
from jaxarc.state import ArcEnvState

KINDS = ("point", "bbox", "mask")
FIELDS = (
    "working_grid",
    "working_grid_mask",
    "target_grid",
    "target_grid_mask",
    "step_count",
    "episode_done",
    "current_example_idx",
    "selected",
    "clipboard",
    "clipboard_mask",
    "similarity_score",
    "episode_mode",
    "available_demo_pairs",
    "available_test_pairs",
    "demo_completion_status",
    "test_completion_status",
    "action_history",
    "action_history_length",
    "action_history_write_pos",
    "allowed_operations_mask",
)


def make_config(shape=(5, 5), *, steps=100, action: Any = None, **groups):
    """A configuration of this shape, point format unless told otherwise."""
    height, width = shape
    action = {"selection_format": "point"} | (action or {})
    return config.JaxArcConfig(
        environment=config.EnvironmentConfig(max_episode_steps=steps),
        dataset=config.DatasetConfig(max_grid_height=height, max_grid_width=width),
        action=config.ActionConfig(**action),
        reward=config.RewardConfig(**groups.get("reward", {})),
        episode=config.ArcEpisodeConfig(**groups.get("episode", {})),
        history=config.HistoryConfig(**groups.get("history", {})),
    )


def random_pair(rng, shape, answered=True):
    """An input and an output that differs from it in few cells, or in size."""
    given = operations.random_grid(rng, shape, colors=int(rng.integers(1, 11)))
    wanted = given.copy()
    if rng.random() < 0.3:
        wanted = operations.random_grid(rng, shape, colors=2)
    for _ in range(rng.integers(0, 4)):
        row, column = rng.integers(0, operations.size_of(wanted))
        wanted[row, column] = rng.integers(10)
    return given, wanted if answered else np.full(shape, -1, np.int32)


def random_puzzle(rng, shape, demos=3, tests=3, room=(4, 3), answered=0.8):
    return Puzzle(
        [random_pair(rng, shape) for _ in range(demos)],
        [random_pair(rng, shape, rng.random() < answered) for _ in range(tests)],
        room,
    )


@dataclass
class Move:
    """An action in plain numbers; `corners` is (r1, c1, r2, c2)."""

    kind: str
    operation: int
    corners: tuple
    mask: np.ndarray = field(repr=False)

    def action(self):
        operation = np.int32(self.operation)
        numbers = [np.int32(corner) for corner in self.corners]
        if self.kind == "point":
            return PointAction(*map(jnp.asarray, (operation, *numbers[:2])))
        if self.kind == "bbox":
            return BboxAction(*map(jnp.asarray, (operation, *numbers)))
        return MaskAction(jnp.asarray(operation), jnp.asarray(self.mask))

    def raw(self):
        """The cells it selects, coordinates clipped into the grid."""
        if self.kind == "mask":
            return self.mask
        shape = self.mask.shape
        r1, c1, r2, c2 = (
            min(max(value, 0), shape[axis % 2] - 1)
            for axis, value in enumerate(self.corners)
        )
        if self.kind == "point":
            r2, c2 = r1, c1
        cells = np.zeros(shape, bool)
        rows, columns = sorted((r1, r2)), sorted((c1, c2))
        cells[rows[0] : rows[1] + 1, columns[0] : columns[1] + 1] = True
        return cells

    def clipped_operation(self):
        return min(max(self.operation, 0), NUM_OPERATIONS - 1)


def random_move(rng, shape, kind, outside=0):
    """Anything at all, up to `outside` beyond what is in range."""
    low, high = -outside, np.array((*shape, *shape)) + outside
    if rng.random() < 0.15:
        operation = int(rng.choice([SUBMIT, *range(35, 42), *range(35, 42)]))
    else:
        operation = int(rng.integers(low, SUBMIT))
    if outside and rng.random() < 0.1:
        operation = int(rng.integers(42, 42 + outside))
    corners = tuple(rng.integers(low, high).tolist())
    mask = rng.random(shape) < rng.choice([0.0, 0.05, 0.5, 1.0])
    return Move(kind, operation, corners, mask)


def helpful_move(rng, kind, episode):
    """One step towards the answer: the size first, then a cell, then Submit."""
    wanted = episode.pairs[episode.pair][1]
    if not (wanted >= 0).any() or np.array_equal(wanted, episode.grid):
        operation, cell = int(rng.choice([SUBMIT, 35, 37, 40, 41])), (0, 0)
    elif operations.size_of(wanted) != operations.size_of(episode.grid):
        height, width = operations.size_of(wanted)
        operation, cell = 33, (height - 1, width - 1)
    else:
        cells = np.argwhere(wanted != episode.grid)
        cell = tuple(cells[rng.integers(len(cells))].tolist())
        operation = int(wanted[cell])
    mask = np.zeros(wanted.shape, bool)
    mask[cell] = True
    return Move(kind, operation, (*cell, *cell), mask)


@jax.jit
def shown(state):
    """Every documented field of a state."""
    return {name: getattr(state, name) for name in FIELDS}


@jax.jit
def row(tree, index):
    """One row of a batch of anything."""
    return jax.tree.map(lambda x: x[index], tree)


@jax.jit
def stack(trees):
    """A batch of things that are alike."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def assert_equal(one, other):
    """The same structure, the same types, the same bits; tasks are shared or not."""
    one, other = jax.tree.map(
        lambda x: (x.tasks, x.episode) if isinstance(x, ArcEnvState) else x,
        (one, other),
        is_leaf=lambda x: isinstance(x, ArcEnvState),
    )
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for got, wanted in zip(*map(jax.tree.leaves, (one, other)), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)
