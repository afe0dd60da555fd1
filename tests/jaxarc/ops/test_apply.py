"""Every operation equals the naive reference, for every kind of action and shape."""

import itertools

import jax
import numpy as np
import pytest

import arc_reference as reference
from jaxarc import bits
from jaxarc.actions import BboxAction, MaskAction, PointAction
from jaxarc.envs.select import select_active, select_raw
from jaxarc.ops.apply import apply_operation
from jaxarc.ops.canvas import Canvas

SHAPES = [(1, 7), (6, 13), (30, 30)]  # one for every length of a word
CASES = 700


def packed(grids):
    """Planes and sizes of a batch of grids."""
    sizes = np.array([reference.size_of(grid) for grid in grids], np.int32)
    return bits.pack_grid(grids), sizes


def packed_clipboards(clipboards):
    content = clipboards >= 0
    origins = [reference.box_of(c)[:2] if c.any() else (0, 0) for c in content]
    layers = [bits.pack_grid(clipboards), bits.pack_rows(content)[:, None]]
    return np.concatenate(layers, axis=1), np.array(origins, np.int32)


def random_case(rng, shape, kind):
    (r1, r2), (c1, c2) = reference.random_corners(rng, shape).T
    mask = np.zeros(shape, bool)
    if kind == "point":
        r2, c2 = r1, c1
    top, bottom, left, right = min(r1, r2), max(r1, r2), min(c1, c2), max(c1, c2)
    mask[top : bottom + 1, left : right + 1] = True
    if kind == "mask":
        mask &= rng.random(shape) < rng.choice([0.0, 0.1, 0.5, 1.0])
    return {
        "operation": np.int32(rng.integers(42)),
        "corners": np.asarray((r1, c1, r2, c2), np.int32),
        "mask": mask,
        "grid": reference.random_grid(rng, shape),
        "clipboard": reference.random_clipboard(rng, shape),
        "given": reference.random_grid(rng, shape),
    }


def make_action(kind, operation, corners, mask):
    if kind == "point":
        return PointAction(operation, corners[0], corners[1])
    if kind == "bbox":
        r1, c1, r2, c2 = corners
        return BboxAction(operation, r1, c1, r2, c2)
    return MaskAction(operation, mask)


def run(kind, shape, cases):
    def one(operation, corners, mask, arrays, given):
        planes, size, clipboard, origin = arrays
        canvas = Canvas(planes, size, clipboard, origin, shape[1])
        action = make_action(kind, operation, corners, mask)
        raw = select_raw(action, shape)
        selection = select_active(action, raw, canvas.size, canvas.active())
        after = apply_operation(operation, canvas, selection, raw, given)
        content = bits.unpack_grid(after.clipboard[:4], after.clipboard[4], shape[1])
        grid = bits.unpack_grid(after.planes, after.active(), shape[1])
        return grid, content

    batch = {name: np.stack([case[name] for case in cases]) for name in cases[0]}
    plain = (batch["operation"], batch["corners"], batch["mask"])
    canvases = (*packed(batch["grid"]), *packed_clipboards(batch["clipboard"]))
    return jax.jit(jax.vmap(one))(*plain, canvases, packed(batch["given"]))


# Masks are the general case: they alone meet the edges of every word length.
EDGES = [("mask", shape) for shape in ((1, 1), (5, 5), (8, 8), (16, 16), (32, 32))]


@pytest.mark.parametrize(
    ("kind", "shape"),
    [*itertools.product(["point", "bbox", "mask"], SHAPES), *EDGES],
)
def test_every_operation_equals_the_reference(kind, shape):
    rng = np.random.default_rng(sum(shape))
    cases = [random_case(rng, shape, kind) for _ in range(CASES)]
    grids, clipboards = map(np.asarray, run(kind, shape, cases))
    for case, grid, clipboard in zip(cases, grids, clipboards, strict=True):
        wanted, copied = reference.apply(
            case["operation"],
            case["grid"],
            case["clipboard"],
            case["mask"],
            case["given"],
        )
        if np.array_equal(grid, wanted) and np.array_equal(clipboard, copied):
            continue  # large grids take milliseconds to print: only where they differ
        message = f"operation {case['operation']}\n{case['grid']}\n{case['mask']}"
        np.testing.assert_array_equal(grid, wanted, err_msg=message)
        np.testing.assert_array_equal(clipboard, copied, err_msg=message)
