"""Files of known content for the tests of the readers."""

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

DATA = Path(
    os.environ.get("JAXRIG_DATA", Path(__file__).parents[2] / "shared" / "data")
)
#: Ways of writing a VTK XML file: data mode, compression, byte order.
MODES = {
    "ascii": ("Ascii", True, "Little"),
    "inline": ("Binary", False, "Little"),
    "inline compressed": ("Binary", True, "Little"),
    "appended": ("Appended", False, "Little"),
    "appended compressed": ("Appended", True, "Little"),
    "appended big-endian": ("Appended", False, "Big"),
    "appended compressed big-endian": ("Appended", True, "Big"),
}


def data_folder(name: str) -> Path:
    """A folder of real data; the test is skipped where it is absent."""
    if not (DATA / name).is_dir():
        pytest.skip(f"no {name} in {DATA}; set JAXRIG_DATA to the folder that has it")
    return DATA / name


def unpack_vessels(folder: Path) -> Path:
    """The parallel file of the blood vessels, unpacked into `folder`."""
    with zipfile.ZipFile(data_folder("blood_vessels") / "blood_vessels.zip") as archive:
        archive.extractall(folder)
    return folder / "blood_vessels" / "T0000000500.pvtu"


def linear(points: np.ndarray) -> np.ndarray:
    """A velocity that tells every node and every component apart."""
    x, y, z = np.asarray(points, np.float64).T
    return np.stack([1 + x + 10 * y, 2 - y + 100 * z, 3 + z - 1000 * x], axis=-1)


def image(shape=(3, 4, 5), origin=(1.0, 2.0, 3.0), spacing=(0.5, 0.25, 2.0)):
    """An image with the linear velocity on its nodes."""
    import pyvista

    grid = pyvista.ImageData(dimensions=shape, origin=origin, spacing=spacing)
    grid["velocity"] = linear(grid.points)
    return grid


def hexahedra(shape=(3, 4, 5)):
    """The same as an unstructured grid of voxels, in arbitrary numbers of cells."""
    return image(shape).cast_to_unstructured_grid()


def write_xml(
    data, path: Path, mode: str = "appended", time: float | None = None
) -> Path:
    """Write a data set in one of `MODES`, with its time as field data."""
    import vtkmodules.vtkIOXML as xml

    if time is not None:
        data.field_data["TimeValue"] = np.array([time])
    kind = next(k for k in _KINDS if data.IsA(f"vtk{k}"))
    writer = getattr(xml, f"vtkXML{kind}Writer")()
    writer.SetInputData(data)
    writer.SetFileName(str(path))
    how, compressed, order = MODES[mode]
    getattr(writer, f"SetDataModeTo{how}")()
    getattr(writer, f"SetByteOrderTo{order}Endian")()
    if not compressed:
        writer.SetCompressorTypeToNone()
    assert writer.Write()
    return path


_KINDS = (
    "ImageData",
    "RectilinearGrid",
    "StructuredGrid",
    "UnstructuredGrid",
    "PolyData",
)


def write_legacy(data, path: Path, text: bool = False) -> Path:
    """Write a data set in the legacy format."""
    from vtkmodules.vtkIOLegacy import vtkDataSetWriter

    writer = vtkDataSetWriter()
    writer.SetInputData(data)
    writer.SetFileName(str(path))
    if text:
        writer.SetFileTypeToASCII()
    else:
        writer.SetFileTypeToBinary()
    assert writer.Write()
    return path
