"""VTK's side of benchmarks/trace_vtk.py: its tracers, in an environment of its own.

python benchmarks/trace_vtk_peer.py eddy|grid|vessels FOLDER [FILE]

FOLDER holds `case.npz` with the seeds, the end time and, for `grid`, axes, times and
values; `ends.npz` is written beside it, NaN where VTK lost a particle.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import vtkmodules.all as vtk
from vtkmodules.util.numpy_support import numpy_to_vtk, vtk_to_numpy
from vtkmodules.util.vtkAlgorithm import VTKPythonAlgorithmBase

VERSION = "9.3.1"
INTERVAL = vtk.vtkStreamingDemandDrivenPipeline
POINTS = vtk.vtkDataObject.FIELD_ASSOCIATION_POINTS
STRIDE = 0.01  # of a stream line's steps, in sides of a vessel's cube


class Grids(VTKPythonAlgorithmBase):
    """A rectilinear grid whose velocity is an array (T,Nx,Ny,Nz,3) at given times."""

    def __init__(self, case):
        super().__init__(nInputPorts=0, outputType="vtkRectilinearGrid")
        self.case = case

    def RequestInformation(self, request, inInfo, outInfo):
        info, times = outInfo.GetInformationObject(0), self.case["times"].tolist()
        sides = [(0, len(self.case[axis]) - 1) for axis in "xyz"]
        info.Set(INTERVAL.WHOLE_EXTENT(), [i for side in sides for i in side], 6)
        info.Set(INTERVAL.TIME_STEPS(), times, len(times))
        info.Set(INTERVAL.TIME_RANGE(), [times[0], times[-1]], 2)
        return 1

    def RequestData(self, request, inInfo, outInfo):
        info = outInfo.GetInformationObject(0)
        time, times = info.Get(INTERVAL.UPDATE_TIME_STEP()), self.case["times"]
        values = self.case["values"][np.abs(times - time).argmin()]
        grid = vtk.vtkRectilinearGrid.GetData(info)
        grid.SetDimensions(*values.shape[:3])
        for axis in "xyz":
            nodes = numpy_to_vtk(self.case[axis], deep=True)
            getattr(grid, f"Set{axis.upper()}Coordinates")(nodes)
        rows = numpy_to_vtk(values.transpose(2, 1, 0, 3).reshape(-1, 3), deep=True)
        rows.SetName("velocity")
        grid.GetPointData().SetVectors(rows)
        return 1


def points_of(seeds):
    """Seeds as points in double precision, one vertex each."""
    points = vtk.vtkPoints()
    points.SetData(numpy_to_vtk(np.ascontiguousarray(seeds, np.float64), deep=True))
    data = vtk.vtkPolyData()
    data.SetPoints(points)
    return data


def unsteady(source, name, seeds, end):
    """End points of vtkParticleTracer: two Runge-Kutta steps from slice to slice."""
    tracer: Any = vtk.vtkParticleTracer()
    tracer.SetInputConnection(0, source.GetOutputPort())
    tracer.SetInputDataObject(1, points_of(seeds))
    tracer.SetInputArrayToProcess(0, 0, 0, POINTS, name)
    tracer.SetIntegratorType(tracer.RUNGE_KUTTA4)
    tracer.SetMeshOverTimeToStatic()
    tracer.SetInterpolatorTypeToCellLocator()
    tracer.SetComputeVorticity(False)
    tracer.SetTerminalSpeed(0.0)
    tracer.SetStartTime(0.0)
    tracer.SetTerminationTime(end)
    tracer.SetIgnorePipelineTime(1)
    tracer.Update()
    found = tracer.GetOutput()
    ends = np.full(seeds.shape, np.nan)
    if found.GetNumberOfPoints():
        which = vtk_to_numpy(found.GetPointData().GetArray("InjectedPointId"))
        ends[which] = vtk_to_numpy(found.GetPoints().GetData())
    return ends


def steady(data, seeds, end):
    """Points of vtkStreamTracer at the end time, between two of its short steps."""
    tracer = vtk.vtkStreamTracer()
    tracer.SetInputData(data)
    tracer.SetSourceData(points_of(seeds))
    tracer.SetInputArrayToProcess(0, 0, 0, POINTS, "velocity")
    tracer.SetIntegratorTypeToRungeKutta4()
    tracer.SetInterpolatorTypeToCellLocator()
    tracer.SetIntegrationStepUnit(tracer.LENGTH_UNIT)
    tracer.SetInitialIntegrationStep(STRIDE)
    speed = np.linalg.norm(
        vtk_to_numpy(data.GetPointData().GetArray("velocity")), axis=1
    )
    tracer.SetMaximumPropagation(1.01 * float(speed.max()) * end)
    tracer.SetMaximumNumberOfSteps(10**7)
    tracer.SetTerminalSpeed(0.0)
    tracer.SetComputeVorticity(False)
    tracer.Update()
    found = tracer.GetOutput()
    places = vtk_to_numpy(found.GetPoints().GetData()).astype(float)
    rates = vtk_to_numpy(found.GetPointData().GetArray("velocity")).astype(float)
    ends = np.full(seeds.shape, np.nan)
    seed_ids = vtk_to_numpy(found.GetCellData().GetArray("SeedIds"))
    for line, seed in enumerate(seed_ids):
        ids = found.GetCell(line).GetPointIds()
        whole = slice(ids.GetId(0), ids.GetId(ids.GetNumberOfIds() - 1) + 1)
        times = clock(places[whole], rates[whole])
        if times[-1] >= end:
            after = max(1, int(np.searchsorted(times, end)))
            ends[seed] = between(places[whole], times, rates[whole], after, end)
    return ends


def clock(places, rates):
    """When a stream line is where, by the trapezoidal rule.

    VTK's own IntegrationTime is of first order: a quarter of the step has a quarter of
    the error.
    """
    slowness = 1 / np.linalg.norm(rates, axis=1)
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    passed = steps * (slowness[1:] + slowness[:-1]) / 2
    return np.concatenate([[0.0], np.cumsum(passed)])


def between(places, times, rates, after, time):
    """The cubic that has both neighbors' places and velocities."""
    h = times[after] - times[after - 1]
    s = (time - times[after - 1]) / h
    (a, b), (u, v) = places[after - 1 : after + 1], rates[after - 1 : after + 1] * h
    held = (1 + 2 * s) * (1 - s) ** 2 * a + s**2 * (3 - 2 * s) * b
    return held + s * (1 - s) ** 2 * u - s**2 * (1 - s) * v


def vessels(file):
    """The pieces as one mesh, their cells' velocity averaged at the nodes."""
    reader = vtk.vtkXMLPUnstructuredGridReader()
    reader.SetFileName(file)
    join = vtk.vtkStaticCleanUnstructuredGrid()
    join.SetInputConnection(reader.GetOutputPort())
    nodes = vtk.vtkCellDataToPointData()
    nodes.SetInputConnection(join.GetOutputPort())
    nodes.Update()
    return nodes.GetOutput()


def eddy(file):
    """The solver's dumps, the elements joined."""
    reader = vtk.vtkNek5000Reader()
    reader.SetFileName(file)
    reader.CleanGridOn()
    reader.UpdateInformation()
    reader.EnableAllPointArrays()
    return reader


def main(kind, folder, file=""):
    """Trace one case and write where its particles end."""
    found = vtk.vtkVersion.GetVTKVersion()
    if found != VERSION:
        sys.exit(
            f"VTK {found} is no oracle: tracers newer than {VERSION} are wrong on "
            f"unsteady flow; name the Python of an environment with vtk=={VERSION}"
        )
    case = dict(np.load(Path(folder) / "case.npz"))
    seeds, end = case["seeds"], float(case["end"])
    if kind == "vessels":
        ends = steady(vessels(file), seeds, end)
    elif kind == "eddy":
        ends = unsteady(eddy(file), "Velocity", seeds, end)
    else:
        ends = unsteady(Grids(case), "velocity", seeds, end)
    np.savez(Path(folder) / "ends.npz", ends=ends)


if __name__ == "__main__":
    main(*sys.argv[1:])
