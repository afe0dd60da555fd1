"""The finite-time Lyapunov exponent of a case over a plane: arrays and a picture."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from jaxrig.atomic import atomic_write
from jaxtrace.analysis.flow_maps import ftle
from jaxtrace.bounds import Box, box_bounds
from jaxtrace.plot.pictures import plot_field_2d
from jaxtrace.workflow.case import Case
from jaxtrace.workflow.prepare import find_domain, find_span, make_field, working


@dataclass(frozen=True, eq=False)
class FTLEMap:
    """Exponents (across, up) at the nodes of two axes, from t0 over T."""

    x: Float[np.ndarray, " across"]
    y: Float[np.ndarray, " up"]
    values: Float[np.ndarray, "across up"]
    t0: float
    T: float
    level: float

    @property
    def title(self) -> str:
        """What it shows, in words."""
        return f"t = {self.t0:.4g} to {self.t0 + self.T:.4g}"


def compute_ftle(case: Case) -> FTLEMap:
    """Return the exponents of a case over its plane."""
    table = case.ftle
    with working(case):
        field, _ = make_field(case)
        box = (
            find_domain(case, field)
            if table.bounds is None
            else box_bounds(table.bounds)
        )
        first, last = find_span(case, field)
        t0 = first if table.t0 is None else table.t0
        T = last - first if table.T is None else table.T
        if not T:
            raise ValueError("ftle.T is 0: set an integration time")
        level = (box.lo[2] + box.hi[2]) / 2 if table.level is None else table.level
        x, y = plane_axes(box, table.resolution)
        values = ftle(field, (x, y), t0, T, level=float(level), dt=table.dt)
    return FTLEMap(x, y, np.asarray(values), t0, T, float(level))


def plane_axes(box: Box, resolution: int) -> tuple[np.ndarray, np.ndarray]:
    """Return evenly spaced nodes: `resolution` along the longer axis.

    >>> [axis.size for axis in plane_axes(box_bounds([0, 2, 0, 1]), 101)]
    [101, 51]
    """
    width, height = box.size[:2]
    if not (width > 0 and height > 0):
        raise ValueError("the domain is flat along x or y: give bounds in [ftle]")
    spacing = max(width, height) / (resolution - 1)
    counts = [max(2, round(length / spacing) + 1) for length in (width, height)]
    ends = zip(box.lo[:2], box.hi[:2], counts, strict=True)
    x, y = (np.linspace(low, high, count) for low, high, count in ends)
    return x, y


def save_ftle(found: FTLEMap, folder: Path) -> list[Path]:
    """Write `ftle.npz` and `ftle.png` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays, picture = folder / "ftle.npz", folder / "ftle.png"
    with atomic_write(arrays) as file:
        np.savez_compressed(
            file, x=found.x, y=found.y, ftle=found.values, t0=found.t0, T=found.T
        )
    plot_field_2d(
        found.values,
        (found.x, found.y),
        label="FTLE",
        title=found.title,
        show=False,
        save_path=picture,
    )
    return [arrays, picture]
