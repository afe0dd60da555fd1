"""One moving flow in the public layouts of solvers, for runs without any editing.

The flow fills a leaning duct of hexahedra and is (1 + t) along its axis everywhere, so
a particle has moved by (t + t^2/2) along the axis at time t, whatever the format.
"""

from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np

AXIS = np.array([1.0, 0.23, 0.0])
SHAPE = (5, 4, 3)
TIMES = (0.0, 0.5, 1.0)
#: Corners of a hexahedron in VTK's order, and its six faces, each seen from outside.
CORNERS = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]
CORNERS += [(i, j, 1) for i, j, _ in CORNERS]
FACES = [(0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (3, 7, 6, 2), (0, 4, 7, 3)]
FACES += [(1, 2, 6, 5)]


def nodes(shape=SHAPE, size=(4, 1.5, 0.5), lean=AXIS[1]) -> np.ndarray:
    """Nodes (z, y, x, 3) of a duct: x fastest."""
    axes = [np.linspace(0, s, n) for n, s in zip(shape, size, strict=True)]
    z, y, x = np.meshgrid(*axes[::-1], indexing="ij")
    return np.stack([x, y + lean * x, z], -1)


def hexahedra(shape=SHAPE) -> np.ndarray:
    """Rows of eight nodes, cells along x fastest."""
    nx, ny, nz = shape
    number = np.arange(nx * ny * nz).reshape(nz, ny, nx)
    corners = [
        number[k : nz - 1 + k, j : ny - 1 + j, i : nx - 1 + i] for i, j, k in CORNERS
    ]
    return np.stack([corner.ravel() for corner in corners], 1)


def velocity(time: float) -> np.ndarray:
    """The velocity at one instant."""
    return (1 + time) * AXIS


def _list(items) -> str:
    items = list(items)
    return f"{len(items)}\n(\n" + "\n".join(items) + "\n)\n"


def _foam(path: Path, kind: str, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    head = "FoamFile {{ version 2.0; format ascii; class {}; object {}; }}\n"
    path.write_text(head.format(kind, path.name) + body + "\n")


def _poly_mesh(
    folder: Path, points: np.ndarray, cells: np.ndarray, patch: Collection[tuple] = ()
) -> None:
    """Write the mesh of some cells; faces in `patch` belong to a neighbor process."""
    used, local = np.unique(cells, return_inverse=True)
    local = local.reshape(cells.shape)
    sides: dict[tuple, list] = {}
    for cell, row in enumerate(local):
        for face in FACES:
            corners = [int(row[i]) for i in face]
            sides.setdefault(tuple(sorted(corners)), []).append((cell, corners))
    inner = sorted((s[0][0], s[1][0], s[0][1]) for s in sides.values() if len(s) == 2)
    shared, outer = [], []
    for key, side in sides.items():
        if len(side) == 1:
            whole = tuple(sorted(used[list(key)].tolist()))
            (shared if whole in patch else outer).append((side[0][0], *side[0][1:]))
    rows = [(owner, corners) for owner, _, corners in inner] + outer + shared
    mesh = folder / "constant" / "polyMesh"
    places = (f"({x} {y} {z})" for x, y, z in points.reshape(-1, 3)[used])
    _foam(mesh / "points", "vectorField", _list(places))
    text = (f"4({' '.join(map(str, corners))})" for _, corners in rows)
    _foam(mesh / "faces", "faceList", _list(text))
    _foam(mesh / "owner", "labelList", _list(str(owner) for owner, _ in rows))
    _foam(mesh / "neighbour", "labelList", _list(str(other) for _, other, _ in inner))
    patches = [f"walls {{ type wall; nFaces {len(outer)}; startFace {len(inner)}; }}"]
    if shared:
        start = len(inner) + len(outer)
        kind = "type processor; myProcNo 0; neighbProcNo 1"
        patches += [f"other {{ {kind}; nFaces {len(shared)}; startFace {start}; }}"]
    _foam(mesh / "boundary", "polyBoundaryMesh", _list(patches))


def _foam_times(folder: Path, rows: dict[float, np.ndarray]) -> None:
    """Write the velocities of cells (M, 3) by their times."""
    for time, row in rows.items():
        values = _list(f"({u} {v} {w})" for u, v, w in row)
        _foam(
            folder / f"{time:g}" / "U",
            "volVectorField",
            "dimensions [0 1 -1 0 0 0 0];\n"
            f"internalField nonuniform List<vector> {values};\n"
            "boundaryField { walls { type zeroGradient; } other { type processor; } }",
        )


def _foam_control(folder: Path) -> None:
    control = "startTime 0; endTime 1; deltaT 0.5; writeInterval 1;"
    _foam(folder / "system" / "controlDict", "dictionary", control)


def openfoam(folder: Path) -> list[Path]:
    """A case folder, without the empty .foam file that ParaView's users make."""
    _foam_control(folder)
    cells = hexahedra()
    _poly_mesh(folder, nodes(), cells)
    _foam_times(folder, {t: np.tile(velocity(t), (len(cells), 1)) for t in TIMES})
    return [folder]


def openfoam_decomposed(folder: Path) -> list[Path]:
    """The same in two processor folders, not put together again."""
    _foam_control(folder)
    cells = hexahedra()
    left = np.arange(len(cells)) % (SHAPE[0] - 1) < 2
    faces = [
        {tuple(sorted(int(row[i]) for i in face)) for row in part for face in FACES}
        for part in (cells[left], cells[~left])
    ]
    for number, part in enumerate((cells[left], cells[~left])):
        process = folder / f"processor{number}"
        _poly_mesh(process, nodes(), part, faces[0] & faces[1])
        _foam_times(process, {t: np.tile(velocity(t), (len(part), 1)) for t in TIMES})
    (folder / "run.foam").touch()
    return [folder / "run.foam"]


def write_openfoam(folder: Path, times=(0.0, 0.25, 0.5)) -> Path:
    """Two cubes along x; the velocity of a cell is (time, cell number, 1)."""
    _foam_control(folder)
    _poly_mesh(folder, nodes((3, 2, 2), (2, 1, 1), 0), hexahedra((3, 2, 2)))
    _foam_times(folder, {t: np.array([[t, 0, 1], [t, 1, 1]]) for t in times})
    (folder / "case.foam").touch()
    return folder / "case.foam"


def _ensight(
    folder: Path,
    name: str,
    parts: list[tuple[np.ndarray, np.ndarray]],
    values: dict[float, np.ndarray],
) -> Path:
    """Write EnSight Gold as text: parts of nodes and cells, a velocity per time."""
    lines = [name, "of hexahedra", "node id assign", "element id assign"]
    for part, (points, cells) in enumerate(parts, 1):
        lines += ["part", f"{part:10d}", name, "coordinates", f"{len(points):10d}"]
        lines += [f"{value:12.5e}" for value in points.T.ravel()]
        lines += ["hexa8", f"{len(cells):10d}"]
        lines += ["".join(f"{i + 1:10d}" for i in row) for row in cells]
    (folder / f"{name}.geo").write_text("\n".join(lines) + "\n")
    for index, value in enumerate(values.values()):
        lines = ["velocity"]
        for part, (points, _) in enumerate(parts, 1):
            lines += ["part", f"{part:10d}", "coordinates"]
            lines += [f"{v:12.5e}" for v in np.repeat(value, len(points))]
        (folder / f"{name}.vel{index:03d}").write_text("\n".join(lines) + "\n")
    case = folder / f"{name}.case"
    case.write_text(
        f"FORMAT\ntype: ensight gold\n\nGEOMETRY\nmodel: {name}.geo\n\nVARIABLE\n"
        f"vector per node: 1 velocity {name}.vel***\n\nTIME\ntime set: 1\n"
        f"number of steps: {len(values)}\nfilename start number: 0\n"
        f"filename increment: 1\ntime values: {' '.join(map(str, values))}\n"
    )
    return case


def ensight(folder: Path) -> list[Path]:
    """EnSight Gold as text, one file per instant."""
    parts = [(nodes().reshape(-1, 3), hexahedra())]
    return [_ensight(folder, "duct", parts, {t: velocity(t) for t in TIMES})]


def write_ensight(folder: Path, times=(0.5, 1.5, 4.0)) -> Path:
    """Two parts of one hexahedron each; the velocity is the time at every node."""
    cube = nodes((2, 2, 2), (1, 1, 1), 0).reshape(-1, 3)
    parts = [(cube + np.array([shift, 0, 0]), hexahedra((2, 2, 2))) for shift in (0, 1)]
    return _ensight(folder, "box", parts, {t: np.full(3, t) for t in times})


def plot3d(folder: Path) -> list[Path]:
    """A grid file, and a solution file per instant with the time in its header."""
    points = nodes().astype("<f4")
    head = np.array([1, *SHAPE], "<i4").tobytes()
    body = np.moveaxis(points, -1, 0).tobytes()
    (folder / "duct.xyz").write_bytes(head + body)
    files = [folder / "duct.xyz"]
    for index, time in enumerate(TIMES):
        density = np.full(SHAPE[::-1], 2.0, "<f4")
        momentum = [density * part for part in velocity(time)]
        energy = 10 + 0.5 * sum(m * m for m in momentum) / density
        state = np.array([0.5, 0.0, 100.0, time], "<f4").tobytes()
        columns = np.stack([density, *momentum, energy]).astype("<f4").tobytes()
        files.append(folder / f"duct_{index:03d}.q")
        files[-1].write_bytes(head + state + columns)
    return files


def exodus(folder: Path) -> list[Path]:
    """Exodus II: components as nodal variables, all instants in one file."""
    from scipy.io import netcdf_file

    points, cells = nodes().reshape(-1, 3), hexahedra()
    sizes = {"time_step": None, "num_dim": 3, "num_nodes": len(points)}
    sizes |= {"num_elem": len(cells), "num_el_blk": 1, "num_nod_var": 3}
    sizes |= {"num_el_in_blk1": len(cells), "num_nod_per_el1": 8, "len_name": 33}
    path = folder / "duct.exo"
    with netcdf_file(path, "w", version=2) as file:
        for name, size in sizes.items():
            file.createDimension(name, size)
        file.title, file.version = "duct", np.float32(5)
        file.api_version, file.floating_point_word_size = np.float32(5), np.int32(8)
        file.file_size = np.int32(1)

        def make(name, dims, data):
            made = file.createVariable(name, data.dtype.str[1:], dims)
            made[:] = data
            return made

        make("time_whole", ("time_step",), np.array(TIMES))
        for axis, column in zip("xyz", points.T, strict=True):
            make(f"coord{axis}", ("num_nodes",), column)
        connect = ("num_el_in_blk1", "num_nod_per_el1")
        make("connect1", connect, (cells + 1).astype("i4")).elem_type = "HEX8"
        make("eb_prop1", ("num_el_blk",), np.array([1], "i4")).name = "ID"
        names = np.array([f"vel_{axis}" for axis in "xyz"], "S33")
        letters = names.view("S1").reshape(3, 33)
        make("name_nod_var", ("num_nod_var", "len_name"), letters)
        for index in range(3):
            rows = np.array([np.full(len(points), velocity(t)[index]) for t in TIMES])
            make(f"vals_nod_var{index + 1}", ("time_step", "num_nodes"), rows)
    return [path]


def cgns(folder: Path) -> list[Path]:
    """A structured zone with a solution per instant, in CGNS over HDF5."""
    import h5py

    nx, ny, nz = SHAPE
    kinds = {"f8": "R8", "i4": "I4", "i8": "I8", "i1": "C1"}
    path = folder / "duct.cgns"

    def node(parent, name, label, data=None):
        group = parent.create_group(name)
        kind = "MT" if data is None else kinds[data.dtype.str[1:]]
        for key, text, size in (("name", name, 33), ("label", label, 33)):
            group.attrs.create(key, np.bytes_(text), dtype=f"S{size}")
        group.attrs.create("type", np.bytes_(kind), dtype="S3")
        group.attrs["flags"] = np.array([1], "i4")
        if data is not None:
            group.create_dataset(" data", data=data)
        return group

    words = lambda text: np.frombuffer(text.encode(), "i1")
    with h5py.File(path, "w") as file:
        file.attrs.create("name", np.bytes_("HDF5 MotherNode"), dtype="S33")
        file.attrs.create("label", np.bytes_("Root Node of HDF5 File"), dtype="S33")
        file.attrs.create("type", np.bytes_("MT"), dtype="S3")
        file.create_dataset(" format", data=words("IEEE_LITTLE_32\0"))
        file.create_dataset(" hdf5version", data=words("HDF5 Version 1.8".ljust(33)))
        version = np.array([3.1], "f4")
        kinds["f4"] = "R4"
        node(file, "CGNSLibraryVersion", "CGNSLibraryVersion_t", version)
        base = node(file, "Base", "CGNSBase_t", np.array([3, 3], "i4"))
        iterative = node(
            base, "Iterations", "BaseIterativeData_t", np.array([len(TIMES)], "i4")
        )
        node(iterative, "TimeValues", "DataArray_t", np.array(TIMES))
        size = np.array([[nx, ny, nz], [nx - 1, ny - 1, nz - 1], [0, 0, 0]], "i4")
        zone = node(base, "Duct", "Zone_t", size)
        node(zone, "ZoneType", "ZoneType_t", words("Structured"))
        grid = node(zone, "GridCoordinates", "GridCoordinates_t")
        for axis, name in enumerate("XYZ"):
            column = np.ascontiguousarray(nodes()[..., axis])
            node(grid, f"Coordinate{name}", "DataArray_t", column)
        names = [f"Solution{i}" for i in range(len(TIMES))]
        for name, time in zip(names, TIMES, strict=True):
            solution = node(zone, name, "FlowSolution_t")
            node(solution, "GridLocation", "GridLocation_t", words("Vertex"))
            for axis, part in zip("XYZ", velocity(time), strict=True):
                values = np.full(SHAPE[::-1], part)
                node(solution, f"Velocity{axis}", "DataArray_t", values)
        zonal = node(zone, "ZoneIterations", "ZoneIterativeData_t")
        table = np.array([list(n.ljust(32).encode()) for n in names], "i1")
        node(zonal, "FlowSolutionPointers", "DataArray_t", table)
    return [path]


FORMATS: dict[str, Callable[[Path], list[Path]]] = {
    "openfoam": openfoam,
    "openfoam_decomposed": openfoam_decomposed,
    "ensight": ensight,
    "plot3d": plot3d,
    "exodus": exodus,
    "cgns": cgns,
}
