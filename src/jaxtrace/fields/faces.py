"""Faces of cells: which of them are one, and those that bound a mesh in pieces."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int

from jaxtrace.fields.curve import in_chunks

# Odd multipliers, fractions of the golden ratio and of roots, that mix corner numbers.
MIXERS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659)


WORTH_A_DEVICE = 2**20  # faces: fewer are paired on the host before a sort compiles


@jax.jit
def _pair_on_device(
    faces: Int[Array, "corners n"], same: Int[Array, " points"] | None
) -> tuple[Int[Array, " n"], Bool[Array, " n"]]:
    """Return another face with the same corners, and which have more than one."""
    if same is not None:
        faces = jnp.where(faces < 0, -1, same[faces])
    *corners, order = lax.sort(
        (*jnp.sort(faces, 0), jnp.arange(faces.shape[1], dtype=np.int32)),
        num_keys=faces.shape[0],
    )
    equal = jnp.stack([corner[1:] == corner[:-1] for corner in corners]).all(0)
    before, after = jnp.pad(equal, (1, 0)), jnp.pad(equal, (0, 1))
    none = jnp.full_like(order, -1)
    other = jnp.where(before, jnp.roll(order, 1), none)
    other = jnp.where(after, jnp.roll(order, -1), other)
    return none.at[order].set(other), jnp.zeros_like(before).at[order].set(
        before & after
    )


def pair_faces(
    faces: Int[np.ndarray, "corners n"],
    same: Int[np.ndarray, " points"] | None = None,
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " some"]]:
    """Return another face with the same corners (-1: none), and those with several.

    `same` names, for each node, the node that stands for it.
    """
    count = faces.shape[1]
    if jax.default_backend() == "gpu" and count >= WORTH_A_DEVICE:
        if same is not None:
            same = same.astype(np.int32)
        found, several = _pair_on_device(faces.astype(np.int32), same)
        return np.asarray(found), np.flatnonzero(np.asarray(several))
    ordered, keys = np.empty_like(faces), np.empty(count, np.uint64)
    bits = np.uint64(int(faces.max(initial=1)).bit_length())

    def fill(some: slice) -> None:
        rows = faces[:, some]
        if same is not None:
            rows = np.where(rows < 0, -1, same[rows])
        ordered[:, some] = np.sort(rows, 0)
        # The largest corner, then a mixture of all: faces of a node stay together.
        mixed = np.zeros(rows.shape[1], np.uint64)
        for row, mixer in zip(ordered[:, some], MIXERS, strict=False):
            mixed += row.astype(np.uint64) * np.uint64(mixer)
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(MIXERS[0])
        corner = ordered[-1, some].astype(np.uint64)
        keys[some] = corner << (np.uint64(64) - bits) | mixed >> bits

    in_chunks(count, fill)
    order = np.argsort(keys)
    joined = _repeats(ordered, order)
    if np.any(_repeats(keys[None], order) & ~joined):  # different faces of equal keys
        order = np.lexsort(ordered)
        joined = _repeats(ordered, order)
    other = np.full(count, -1, np.int32)
    other[order[joined]] = order[:-1][joined[1:]]
    after = np.append(joined[1:], False)
    other[order[after]] = order[1:][joined[1:]]
    return other, np.sort(order[joined & after])


def _repeats(rows: np.ndarray, order: np.ndarray) -> Bool[np.ndarray, " n"]:
    """Return which columns, in an order, equal the one before."""
    equal = np.ones(len(order), bool)
    equal[:1] = False

    def compare(some: slice) -> None:
        here = slice(max(some.start, 1), some.stop)
        for row in rows:
            ranked = row[order[here.start - 1 : here.stop]]
            equal[here] &= ranked[1:] == ranked[:-1]

    in_chunks(len(order), compare)
    return equal


def split_faces(faces: np.ndarray) -> tuple[np.ndarray, Int[np.ndarray, " parts"]]:
    """Split faces into triangles (edges in a plane); return their faces too."""
    width = faces.shape[1]
    everyone = np.arange(len(faces))
    if width < 4:
        return faces, everyone
    quads = np.flatnonzero(faces[:, 3] >= 0)
    parts = np.concatenate([faces[:, :3], faces[quads][:, [0, 2, 3]]])
    return parts, np.concatenate([everyone, quads])


def wall_normals(corners: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return normals as long as the triangle's area or the edge's length."""
    if corners.shape[1] == 3:
        sides = corners[:, 1:] - corners[:, :1]
        return np.cross(sides[:, 0], sides[:, 1]) / 2
    edge = corners[:, 1] - corners[:, 0]
    normals = np.zeros_like(edge)
    normals[:, axes[0]], normals[:, axes[1]] = -edge[:, axes[1]], edge[:, axes[0]]
    return normals
