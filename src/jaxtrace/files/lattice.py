"""Mesh grids as VTK has them: even, spanned by axes, or curved; x runs fastest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

SUFFIXES = {".vti": "image", ".vtr": "axes", ".vts": "curved"}


@dataclass(frozen=True)
class Lattice:
    """A grid: its kind, the arguments of that kind's writer, values (Nx,Ny,Nz,...)."""

    kind: str
    arguments: tuple[Any, ...]
    values: np.ndarray


def flatten(values: np.ndarray) -> np.ndarray:
    """Values (Nx,Ny,Nz,...) as rows with x fastest."""
    rest = values.shape[3:]
    return values.transpose(2, 1, 0, *range(3, values.ndim)).reshape(-1, *rest)


def lattice(mesh: Sequence[np.ndarray], values: np.ndarray, suffix: str) -> Lattice:
    """The grid of three coordinate arrays of one shape, their axes in any order.

    The suffix .vti, .vtr or .vts asks for one kind; any other gets the plainest kind
    that holds the grid exactly to rounding.
    """
    shapes = {array.shape for array in mesh} | {values.shape[:3]}
    if len(shapes) != 1 or mesh[0].ndim != 3:
        raise ValueError(f"coordinates and values have the shapes {sorted(shapes)}")
    order = _order(mesh)
    if order is None:
        order = (0, 1, 2)
        kinds = ["curved"]
    else:
        kinds = ["axes", "curved"]
    mesh = [array.transpose(order) for array in mesh]
    values = values.transpose(*order, *range(3, values.ndim))
    spans = [np.moveaxis(array, i, 0)[:, 0, 0] for i, array in enumerate(mesh)]
    if "axes" in kinds and all(_is_even(span) for span in spans):
        kinds = ["image", *kinds]
    kind = SUFFIXES.get(suffix, kinds[0])
    if kind not in kinds:
        fits = [name for name, known in SUFFIXES.items() if known in kinds]
        raise ValueError(
            f"a {suffix} file cannot hold this grid, its lines are not straight and "
            f"evenly spaced enough: use {' or '.join(fits)}"
        )
    return Lattice(kind, _arguments(kind, mesh, spans), values)


def _arguments(
    kind: str, mesh: Sequence[np.ndarray], spans: Sequence[np.ndarray]
) -> tuple[Any, ...]:
    shape = mesh[0].shape
    if kind == "axes":
        return (spans,)
    if kind == "curved":
        return shape, flatten(np.stack(mesh, axis=-1))
    origin = [float(span[0]) for span in spans]
    return shape, origin, [_spacing(span) for span in spans]


def _order(mesh: Sequence[np.ndarray]) -> tuple[int, ...] | None:
    """Which array axis is x, y and z; None where coordinates follow no single axis."""
    free, order = [0, 1, 2], []
    for array in mesh:
        moving = [i for i in range(3) if _varies(array, i)]
        if len(moving) > 1:
            return None
        order.append(moving[0] if moving else None)
    if len({i for i in order if i is not None}) < sum(i is not None for i in order):
        return None
    free = [i for i in free if i not in order]
    # An axis of one node does not vary; the flat axes left over go to it in order.
    return tuple(free.pop(0) if i is None else i for i in order)


def _varies(array: np.ndarray, axis: int) -> bool:
    first = np.take(array, [0], axis)
    return bool(array.shape[axis] > 1 and np.any(array != first))


def _spacing(span: np.ndarray) -> float:
    if len(span) < 2:
        return 1.0
    return (float(span[-1]) - float(span[0])) / (len(span) - 1)


def _is_even(span: np.ndarray) -> bool:
    if len(span) < 2:
        return True
    exact = np.linspace(float(span[0]), float(span[-1]), len(span))
    rounding = 4 * np.finfo(span.dtype).eps * np.abs(exact).max()
    return bool(_spacing(span) > 0 and np.all(np.abs(span - exact) <= rounding))
