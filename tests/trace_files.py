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


def write_ensight(folder: Path, times=(0.5, 1.5, 4.0)) -> Path:
    """Two parts of one hexahedron each; the velocity is the time at every node."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    nodes = np.concatenate([corners, corners + np.array([0, 0, 1])]).astype(float)
    geometry = ["a", "b", "node id off", "element id off"]
    for part in (1, 2):
        columns = (nodes + np.array([part - 1, 0, 0])).T.ravel()
        geometry += ["part", f"{part:10d}", f"part {part}", "coordinates", f"{8:10d}"]
        geometry += [f"{value:12.5e}" for value in columns]
        geometry += ["hexa8", f"{1:10d}", "".join(f"{i:10d}" for i in range(1, 9))]
    (folder / "box.geo").write_text("\n".join(geometry) + "\n")
    for index, time in enumerate(times):
        lines = ["velocity"]
        for part in (1, 2):
            lines += ["part", f"{part:10d}", "coordinates"] + [f"{time:12.5e}"] * 24
        (folder / f"box.vel{index:03d}").write_text("\n".join(lines) + "\n")
    case = folder / "box.case"
    case.write_text(ensight_text("box.geo", "velocity box.vel***", times))
    return case


def ensight_text(geometry, variable, times):
    """The text of an EnSight case with one vector, numbered from 0."""
    return (
        f"FORMAT\ntype: ensight gold\n\nGEOMETRY\nmodel: {geometry}\n\nVARIABLE\n"
        f"vector per node: 1 {variable}\n\nTIME\ntime set: 1\n"
        f"number of steps: {len(times)}\nfilename start number: 0\n"
        f"filename increment: 1\ntime values: {' '.join(map(str, times))}\n"
    )


def write_openfoam(folder: Path, times=(0.0, 0.25, 0.5)) -> Path:
    """Two cubes along x; the velocity of a cell is (time, cell number, 1)."""
    nodes = [(x, y, z) for z in (0, 1) for y in (0, 1) for x in (0, 1, 2)]
    number = {node: index for index, node in enumerate(nodes)}

    def face(*corners):
        return f"4({' '.join(str(number[c]) for c in corners)})"

    inner = [face((1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 0, 1))]
    outer, owner = [], [0]
    for cell in (0, 1):
        a, b = cell, cell + 1
        sides = [
            face((a, 0, 0), (a, 1, 0), (b, 1, 0), (b, 0, 0)),
            face((a, 0, 1), (b, 0, 1), (b, 1, 1), (a, 1, 1)),
            face((a, 0, 0), (b, 0, 0), (b, 0, 1), (a, 0, 1)),
            face((a, 1, 0), (a, 1, 1), (b, 1, 1), (b, 1, 0)),
        ]
        end = 0 if cell == 0 else 2
        corners = [(end, 0, 0), (end, 0, 1), (end, 1, 1), (end, 1, 0)]
        sides.append(face(*(corners if cell == 0 else corners[::-1])))
        outer += sides
        owner += [cell] * 5
    mesh = folder / "constant" / "polyMesh"
    mesh.mkdir(parents=True)
    _foam(
        mesh / "points",
        "vectorField",
        _foam_list(f"({x} {y} {z})" for x, y, z in nodes),
    )
    _foam(mesh / "faces", "faceList", _foam_list(inner + outer))
    _foam(mesh / "owner", "labelList", _foam_list(map(str, owner)))
    _foam(mesh / "neighbour", "labelList", _foam_list(["1"]))
    walls = "walls { type wall; nFaces 10; startFace 1; }"
    _foam(mesh / "boundary", "polyBoundaryMesh", _foam_list([walls]))
    (folder / "system").mkdir()
    control = "startTime 0; endTime 1; deltaT 0.25; writeInterval 1;"
    _foam(folder / "system" / "controlDict", "dictionary", control)
    for time in times:
        step = folder / f"{time:g}"
        step.mkdir()
        values = _foam_list(f"({time:g} {cell} 1)" for cell in (0, 1))
        _foam(
            step / "U",
            "volVectorField",
            "dimensions [0 1 -1 0 0 0 0];\n"
            f"internalField nonuniform List<vector> {values};\n"
            "boundaryField { walls { type zeroGradient; } }",
        )
    case = folder / "case.foam"
    case.touch()
    return case


def _foam_list(items) -> str:
    items = list(items)
    return f"{len(items)}\n(\n" + "\n".join(items) + "\n)\n"


def _foam(path: Path, kind: str, body: str) -> None:
    head = (
        f"FoamFile {{ version 2.0; format ascii; class {kind}; object {path.name}; }}"
    )
    path.write_text(f"{head}\n{body}\n")
