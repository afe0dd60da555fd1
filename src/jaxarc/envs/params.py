"""What an environment is made of: tasks, rules, and which of the tasks it draws."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from jaxarc.config import JaxArcConfig
from jaxarc.envs.arguments import checked_config, checked_mode
from jaxarc.pairs import is_stack
from jaxarc.types import JaxArcTask


class EnvParams(eqx.Module):
    """Tasks (arrays, held once) and rules (static).

    `subset_indices` are the rows of the buffer that episodes draw from; None: all.
    `augment` shows every episode's task in one of eight symmetries with its colors
    renamed (black stays black).
    """

    buffer: JaxArcTask
    subset_indices: Int[Array, " rows"] | None
    config: JaxArcConfig = eqx.field(static=True)
    episode_mode: int = eqx.field(static=True)
    augment: bool = eqx.field(static=True)

    @classmethod
    def from_config(
        cls,
        config: Any,
        buffer: Any,
        episode_mode: Any = None,
        subset_indices: Any = None,
        augment: bool = False,
    ) -> "EnvParams":
        """Checked parameters; `environment.strict_validation` off only logs rules."""
        config = checked_config(config)
        if not isinstance(buffer, JaxArcTask):
            raise TypeError(
                f"the buffer is a {type(buffer).__name__}: pass tasks, for instance "
                "parser.buffer() or stack_task_list([...])"
            )
        if not is_stack(buffer):
            raise ValueError(
                "the buffer is a single task: stack it with stack_task_list([task])"
            )
        mode = checked_mode(episode_mode, config)
        rows = _checked_rows(subset_indices, buffer.pairs.shape[0])
        if rows is not None and not config.dataset.shuffle_tasks:
            _refuse_repeats(np.asarray(rows))
        return cls(buffer, rows, config, mode, augment)

    @property
    def choices(self) -> int:
        """How many tasks episodes draw from."""
        if self.subset_indices is None:
            return self.buffer.pairs.shape[0]
        return self.subset_indices.shape[0]

    def row(self, choice: Int[Array, "*batch"]) -> Int[Array, "*batch"]:
        """The row of the buffer behind a choice."""
        if self.subset_indices is None:
            return choice
        return self.subset_indices[choice]


def _refuse_repeats(rows: np.ndarray) -> None:
    if len(np.unique(rows)) < len(rows):
        raise ValueError(
            f"subset_indices is {rows.tolist()}: list every row once, or set "
            "dataset.shuffle_tasks, since rows that repeat have no order to walk"
        )


def _checked_rows(indices: Any, count: int) -> Int[Array, " rows"] | None:
    if indices is None:
        return None
    rows = np.asarray(indices)
    whole = np.issubdtype(rows.dtype, np.integer)
    if rows.ndim != 1 or rows.size == 0 or not whole:
        raise ValueError(
            f"subset_indices is {indices!r}: give a list of rows of the buffer"
        )
    if rows.min() < 0 or rows.max() >= count:
        raise ValueError(
            f"subset_indices goes from {rows.min()} to {rows.max()}: the buffer has "
            f"rows 0 to {count - 1}"
        )
    return jnp.asarray(rows, jnp.int32)
