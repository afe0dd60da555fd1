"""Augmentation: the symmetries of the square and permutations of the colors.

Symmetry `s` is `np.rot90(np.fliplr(grid) if s >= 4 else grid, s % 4)`:

| s | effect | s | effect |
|---|---|---|---|
| 0 | none | 4 | left and right exchanged |
| 1 | a quarter turn against the clock | 5 | transposed |
| 2 | a half turn | 6 | top and bottom exchanged |
| 3 | a quarter turn with the clock | 7 | transposed on the other diagonal |

Odd ones exchange height and width and need a square padded shape. Only the active area
is moved, and it stays at the top left corner.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Int, PRNGKeyArray, UInt

from jaxarc import bits
from jaxarc.types import JaxArcTask, is_traced
from jaxrig.checks import check

SYMMETRIES = 8
COLORS = 10
# Columns: transpose first, then exchange rows, then exchange columns.
_STEPS = np.array(
    [
        [0, 0, 0],
        [1, 1, 0],
        [0, 1, 1],
        [1, 0, 1],
        [0, 0, 1],
        [1, 0, 0],
        [0, 1, 0],
        [1, 1, 1],
    ],
    bool,
)


def augment_task(
    task: JaxArcTask, symmetry: Int[ArrayLike, ""], permutation: Int[ArrayLike, " ten"]
) -> JaxArcTask:
    """Move inputs and outputs of every pair by a symmetry and recolor them alike.

    `permutation[c]` is what color `c` becomes. For a stack of tasks use `jax.vmap`.
    """
    symmetry, permutation = check_augmentation(
        symmetry, permutation, task.height, task.width
    )
    grid = lambda planes, size: transform_planes(
        planes, size, symmetry, permutation, task.width
    )
    pairs, sizes = jax.vmap(jax.vmap(grid))(task.pairs, task.sizes)
    return JaxArcTask.from_packed(
        pairs,
        sizes,
        task.num_train_pairs,
        task.num_test_pairs,
        task.task_index,
        task.width,
        task.max_train_pairs,
    )


def transform_planes(
    planes: UInt[Array, "planes h"],
    size: Int[Array, " two"],
    symmetry: Int[Array, ""],
    permutation: Int[Array, "10"],
    width: int,
) -> tuple[UInt[Array, "planes h"], Int[Array, " two"]]:
    """Move and recolor one grid, given as bit planes and its size."""
    planes = _recolor(planes, size, permutation)
    turned, flipped, mirrored = jnp.asarray(_STEPS)[symmetry]
    if planes.shape[-1] == width:
        planes = jnp.where(turned, bits.transpose(planes), planes)
        size = jnp.where(turned, size[::-1], size)
    planes = jnp.where(flipped, _exchange_rows(planes, size), planes)
    # The leftmost column last: the reversed word, brought back to bit 0. An empty grid
    # would shift by the whole word, which XLA leaves undefined.
    length = jnp.iinfo(planes.dtype).bits
    shift = bits.words(jnp.minimum(length - size[1], length - 1), planes.dtype)
    return jnp.where(mirrored, bits.reverse(planes) >> shift, planes), size


def random_augmentation(
    key: PRNGKeyArray, symmetries: bool = True, transposing: bool = True
) -> tuple[Int[Array, ""], Int[Array, "10"]]:
    """Return a symmetry and a permutation that leaves color 0, drawn uniformly.

    `transposing=False` draws from the four symmetries that keep height and width, for
    padded shapes that are not square; `symmetries=False` only recolors.
    """
    symmetry_key, color_key = jax.random.split(key)
    symmetry = jnp.zeros((), jnp.int32)
    if symmetries:
        step = 1 if transposing else 2
        drawn = jax.random.randint(symmetry_key, (), 0, SYMMETRIES // step, jnp.int32)
        symmetry = drawn * step
    colors = jnp.arange(COLORS, dtype=jnp.int32)
    shuffled = jax.random.permutation(color_key, colors[1:])
    return symmetry, jnp.concatenate([colors[:1], shuffled])


def check_augmentation(
    symmetry: Any, permutation: Any, height: int, width: int
) -> tuple[Int[Array, "*batch"], Int[Array, "*batch ten"]]:
    """Return symmetries of grids of this shape and permutations as arrays.

    What is neither is refused; where it is traced, when it is run.
    """
    allowed = np.arange(0, SYMMETRIES, 1 if height == width else 2, dtype=np.int32)
    rule = (
        f"on grids padded to {height} x {width} a symmetry is one of "
        f"{', '.join(map(str, allowed))}"
    )
    wanted = (*jnp.shape(symmetry), COLORS)
    if jnp.shape(permutation) != wanted:
        raise ValueError(
            f"permutation has shape {jnp.shape(permutation)}: it must be {wanted}, one "
            f"entry for each of the {COLORS} colors"
        )
    if not is_traced((symmetry, permutation)):
        numbers, colors = np.asarray(symmetry), np.asarray(permutation)
        if not np.isin(numbers, allowed).all():
            remedy = ", pad to a square to allow the odd ones" * (height != width)
            raise ValueError(f"symmetry {numbers}: {rule}{remedy}")
        if not (np.sort(colors, axis=-1) == np.arange(COLORS)).all():
            raise ValueError(f"{colors} is not a permutation of the colors 0 to 9")
    symmetry, permutation = (
        jnp.asarray(given, jnp.int32) for given in (symmetry, permutation)
    )
    if is_traced(symmetry):
        known = jnp.any(symmetry[..., None] == allowed, axis=-1)
        symmetry = check(symmetry, known, f"{rule}: draw it with random_augmentation")
    return symmetry, permutation


def _recolor(
    planes: UInt[Array, "planes h"],
    size: Int[Array, " two"],
    permutation: Int[Array, "10"],
) -> UInt[Array, "planes h"]:
    active = bits.active_rows(size, planes.shape[-1], planes.dtype)
    # Ten comparisons of bit planes are cheaper than a look-up for every cell.
    recolored = jnp.zeros_like(planes)
    for color in range(COLORS):
        cells = active
        for bit in range(bits.PLANES):
            cells = cells & (planes[bit] if color >> bit & 1 else ~planes[bit])
        recolored = recolored | bits.constant(permutation[color], cells)
    return recolored


def _exchange_rows(
    planes: UInt[Array, "planes h"], size: Int[Array, " two"]
) -> UInt[Array, "planes h"]:
    """Put the top row last; rows below the content stay empty."""
    row = jnp.arange(planes.shape[-1], dtype=jnp.int32)
    source = size[0] - 1 - row
    taken = jnp.take(planes, jnp.maximum(source, 0), axis=-1)
    return jnp.where((source >= 0)[None], taken, bits.words(0, planes.dtype))
