"""What notebooks show of fields and trajectories."""

import numpy as np

from jaxrig.report import Axis, ColorBar, Figure, Part, Section, Table
from jaxtrace.fields.base import Field
from jaxtrace.plot.canvas import MAP_COLORS, color_map, particle_canvas
from jaxtrace.trajectory import Trajectory

MOST = 2_000  # particles
ACROSS = 120  # nodes of a thumbnail


def show_trajectory(trajectory: Trajectory) -> Section:
    """Play the particles, and say how many there are and how far they went."""
    lengths = trajectory.compute_path_length()
    rows = [
        ("particles", trajectory.N),
        ("frames", trajectory.T),
        ("duration", float(trajectory.duration)),
        ("mean path length", float(np.mean(lengths))),
        ("longest path", float(np.max(lengths))),
        ("in the domain at the end", int(trajectory.alive[-1].sum())),
    ]
    canvas = particle_canvas(trajectory, max_particles=MOST, first=-1)
    return Section("Trajectory", canvas, Table(("what", "value"), rows))


def show_field(field: Field) -> Section:
    """Say where and when the field is known, and draw its speed across the middle."""
    low, high = field.get_spatial_bounds()
    begin, end = field.get_time_bounds()
    sphere = field.frozen.sphere
    rows = [
        ("kind", type(field).__name__),
        ("geometry", "flat" if sphere is None else "sphere, degrees"),
        *((axis, _ends(a, b)) for axis, a, b in zip("xyz", low, high, strict=True)),
        ("times", "steady" if begin == end else _ends(begin, end)),
    ]
    table = Table(("what", "value"), rows)
    corners = np.array([low, high], np.float64)
    if not np.isfinite(corners[:, :2]).all() or (corners[0] >= corners[1])[:2].any():
        return Section(type(field).__name__, table)
    when = begin if np.isfinite(begin) else 0.0
    return Section(type(field).__name__, *_thumbnail(field, corners, when), table)


def _ends(low: float, high: float) -> str:
    return f"{low:.6g} to {high:.6g}" if np.isfinite([low, high]).any() else "all"


def _thumbnail(field: Field, corners: np.ndarray, when: float) -> list[Part]:
    size = corners[1] - corners[0]
    up = max(2, min(ACROSS, round(ACROSS * float(size[1] / size[0]))))
    (left, bottom, _), (right, top, _) = corners.tolist()
    x, y = np.linspace(left, right, ACROSS), np.linspace(bottom, top, up)
    middle = corners[:, 2].mean() if np.isfinite(corners[:, 2]).all() else 0.0
    places = np.stack(np.meshgrid(x, y, [middle], indexing="ij"), -1).reshape(-1, 3)
    speed = np.linalg.norm(np.asarray(field(places, when), np.float64), axis=1)
    speed = speed.reshape(ACROSS, up)
    most = float(np.nanmax(speed, initial=0.0)) or 1.0
    named = Axis(f"speed at z = {middle:.4g}, t = {when:.4g}", 0, most)
    picture = color_map(speed, most, pixels=4)
    alt = "Speed across the middle of the field"
    return [Figure(picture, alt=alt), ColorBar(named, MAP_COLORS)]
