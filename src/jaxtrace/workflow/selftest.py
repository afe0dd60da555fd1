"""Runs whose outcome is known: what an installation must get right."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jaxtrace.fields.analytic import DoubleGyre, UniformFlow
from jaxtrace.fields.grid import make_grid_field
from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.tracking.boundary import (
    continuous_inlet_boundary_factory,
    no_boundary,
    reflective_boundary,
)
from jaxtrace.tracking.tracker import create_tracker

# Where particles of the double gyre are after ten units of time, to ten digits.
GYRE_STARTS = np.array([[0.5, 0.5, 0.0], [1.2, 0.3, 0.0]])
GYRE_ENDS = np.array(
    [[0.0505505306, 0.1110201488, 0.0], [1.2011275652, 0.9590826449, 0.0]]
)
TURN = np.array([[0.3, 0.1, 0.0], [0.0, -0.4, 0.2]])  # starts of a solid rotation


@dataclass(frozen=True)
class Trial:
    """A run that answers how far off it is, and how far off it may be."""

    name: str
    allowed: float
    run: Callable[[], float]


def gyre_error() -> float:
    """Return the error of paths through an unsteady formula, by reference values."""
    tracker = create_tracker("rk4", DoubleGyre(), reflective_boundary([0, 2, 0, 1]))
    found = tracker.track_particles(GYRE_STARTS, (0.0, 10.0), 201)
    return float(np.abs(found.positions[-1] - GYRE_ENDS).max())


def grid_error() -> float:
    """Return the error of one turn of a solid rotation, which a grid holds exactly."""
    axis = np.linspace(-1, 1, 5)
    nodes = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1)
    field = make_grid_field(_rotation(nodes), (axis, axis, axis))
    return _turn_error(field)


def mesh_error() -> float:
    """Return the error of one solid rotation, which tetrahedra hold exactly."""
    corners = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    points = np.concatenate([corners, np.zeros((1, 3))])
    faces = [(0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6)]
    faces += [(0, 2, 6, 4), (1, 3, 7, 5)]
    cells = [(a, b, c, 8) for a, b, c, _ in faces] + [
        (a, c, d, 8) for a, _, c, d in faces
    ]
    field = make_mesh_field(points, np.array(cells), _rotation(points), kind="tetra")
    return _turn_error(field)


def inlet_error() -> float:
    """Return how far particles that reenter a channel are from their own lanes."""
    bounds = [[0, 0, 0], [1, 1, 1]]
    counts = {"x": 1, "y": 5, "z": 5}
    boundary = continuous_inlet_boundary_factory(bounds, concentrations=counts)
    lanes = np.linspace(0, 1, 5)
    seeds = np.array([[0.1, y, z] for y in lanes for z in lanes])
    tracker = create_tracker("rk4", UniformFlow(), boundary)
    found = tracker.track_particles(seeds, (0.0, 4.0), 51)
    entered = np.abs(found.generation[-1] - 3).max()
    return float(np.abs(found.positions[-1, :, 1:] - seeds[:, 1:]).max() + entered)


def _rotation(points: np.ndarray) -> np.ndarray:
    x, y = points[..., 0], points[..., 1]
    return 2 * np.pi * np.stack([-y, x, np.zeros_like(x)], -1)


def _turn_error(field: object) -> float:
    tracker = create_tracker("rk4", field, no_boundary())
    found = tracker.track_particles(TURN, (0.0, 1.0), 201)
    return float(np.abs(found.positions[-1] - TURN).max())


TRIALS = (
    Trial("an unsteady analytic flow", 1e-4, gyre_error),
    Trial("a grid", 1e-5, grid_error),
    Trial("a mesh", 1e-5, mesh_error),
    Trial("a continuous inlet", 1e-6, inlet_error),
)
