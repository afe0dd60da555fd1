"""Small cases to run, and files for them."""

from dataclasses import replace

import numpy as np

from jaxtrace.io.vtk_write import write_collection, write_nodes

SMALL = """
[flow]
name = "rotation"
rate = 6.283185307179586

[particles]
concentrations = {x = 4, y = 3, z = 1}
bounds_fraction = {x = [0.25, 0.75], y = [0.25, 0.75]}

[time]
time_span = [0, 1]
n_timesteps = 41

[boundary]
type = "reflective"
bounds = [-1, 1, -1, 1]

[output]
folder = "result"
"""

# Nothing but the store; it goes on where the table [output] stands.
NO_EXTRAS = """
formats = []
reports = false
page = false

[density]
methods = []

[pictures]
which = []
"""


def bare(case):
    """The case without all that follows the tracking."""
    output = replace(case.output, formats=(), reports=False, page=False)
    density, pictures = (
        replace(case.density, methods=()),
        replace(case.pictures, which=()),
    )
    return replace(case, output=output, density=density, pictures=pictures)


def write_small(folder, text=SMALL):
    """A case in a folder; its path."""
    path = folder / "case.toml"
    path.write_text(text)
    return path


def write_slices(folder, times=(0.0, 0.5, 1.0)):
    """A uniform velocity (1 + t, 0, 0) on a grid of 4 x 3 x 2 nodes, as a series."""
    axes = [np.linspace(0, 2, 4), np.linspace(0, 1, 3), np.linspace(0, 1, 2)]
    steps = []
    for index, time in enumerate(times):
        values = np.zeros((24, 3), np.float32)
        values[:, 0] = 1 + time
        path = folder / f"flow_{index}.vtr"
        facts = {"TimeValue": np.float64(time)}
        write_nodes(path, axes, point_data={"velocity": values}, field_data=facts)
        steps.append((time, path.name))
    return write_collection(folder / "flow.pvd", steps)
