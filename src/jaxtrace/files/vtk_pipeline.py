"""Driving a VTK reader: its class, its arrays, its instants, its complaints."""

import contextlib
import importlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from jaxrig.machine import missing_extra
from jaxtrace.files.vtk_messages import captured
from jaxtrace.files.vtk_snapshot import GHOSTS


def vtk_class(module: str, name: str) -> Any:
    """A class of VTK; ImportError with the remedy where VTK is not installed."""
    try:
        return getattr(importlib.import_module(f"vtkmodules.{module}"), name)
    except ImportError as error:
        raise missing_extra("reading VTK files needs vtk", "trace") from error


@contextlib.contextmanager
def reporting(path: Path, reader: Any) -> Iterator[None]:
    """Turn VTK's complaints into one ValueError that names the file."""
    with captured(reader) as transcript:
        yield
    failures = transcript.failures()
    if failures or reader.GetErrorCode():
        detail = "; ".join(failures) or f"error code {reader.GetErrorCode()}"
        raise ValueError(f"{path}: VTK cannot read the file: {detail}")


def select_arrays(reader: Any, names: Collection[str] | None) -> tuple[str, ...]:
    """Switch off the arrays not asked for; the names of all arrays there are."""
    found: list[str] = []
    for place in ("Point", "Cell"):
        getter = getattr(reader, f"Get{place}DataArraySelection", None)
        if getter is None:
            continue
        choice = getter()
        present = [choice.GetArrayName(i) for i in range(choice.GetNumberOfArrays())]
        found += present
        for name in present:
            if names is not None and name not in (*names, GHOSTS):
                choice.DisableArray(name)
    return tuple(name for name in dict.fromkeys(found) if name != GHOSTS)


def time_steps(reader: Any) -> tuple[float, ...]:
    """The instants a reader offers, from its header."""
    pipeline = vtk_class("vtkCommonExecutionModel", "vtkStreamingDemandDrivenPipeline")
    return reader.GetOutputInformation(0).Get(pipeline.TIME_STEPS()) or ()
