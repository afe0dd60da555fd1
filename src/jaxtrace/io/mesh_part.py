"""Unstructured meshes in labeled files: UGRID, and as FVCOM, SCHISM and others write.

In longitudes and latitudes a mesh is one of triangles on the sphere, whose levels are
depths, shares of the depth (sigma), or heights in the file; in meters it is flat.
"""

import re
from typing import Any, NamedTuple

import numpy as np

from jaxtrace.fields.curved_grid import CurvilinearGrid
from jaxtrace.fields.quads import unit_vectors
from jaxtrace.fields.terrain import SHALLOWEST, Stretching
from jaxtrace.io.cf import (
    Vertical,
    axis_role,
    degrees,
    follows_terrain,
    is_geographic,
    lon_first,
)
from jaxtrace.io.decoding import Dates, Levels, read_values, split_units
from jaxtrace.io.geometry import Cells, gather
from jaxtrace.io.grid_part import Choices, Part, Sites

NO_HEIGHT = 1e5  # meters: fill values of models, stated or not, are beyond
_CODES = {3: 5, 4: 9}  # VTK's numbers of triangles and quads
#: Of models without UGRID: connectivity, dimensions of faces and nodes.
_MODELS = {
    "FVCOM": ("nv", "nele", "node"),
    "ADCIRC": ("element", "nele", "node"),
    "FESOM": ("elements", "elem", "nod2"),
    "FESOM mesh": ("face_nodes", "elem", "nod2"),
    "ICON": ("vertex_of_cell", "ncells", "vertex"),
    "MPAS": ("verticesOnCell", "nCells", "nVertices"),
    "SCHISM": (
        "SCHISM_hgrid_face_nodes", "nSCHISM_hgrid_face", "nSCHISM_hgrid_node",
    ),
}  # fmt: skip
_POSITIONS = (
    ("x", "y"), ("lon", "lat"), ("vlon", "vlat"), ("lonVertex", "latVertex"),
    ("SCHISM_hgrid_node_x", "SCHISM_hgrid_node_y"),
)  # fmt: skip
_HEIGHTS = ("zcor", "zCoordinates")  # of levels, per node and instant: SCHISM
#: Flags of nodes and faces, and what they are where it is dry.
_DRY = {
    "wetdry_node": 1, "dryFlagNode": 1, "wet_nodes": 0,
    "wetdry_elem": 1, "dryFlagElement": 1, "wet_cells": 0,
}  # fmt: skip


class Topology(NamedTuple):
    """Nodes of each face, counted from 0 with -1 for none, and what they belong to."""

    faces: np.ndarray
    coordinates: tuple[tuple[str, str], ...]
    face_dimension: str
    node_dimension: str
    words: str


def find_topology(dataset: Any) -> Topology | None:
    """Return the mesh that a dataset states, by UGRID or by the names of a model."""
    for name in dataset.variables:
        attributes = dataset[name].attrs
        # A file may also have meshes of lines, which have no faces.
        flat = "face_node_connectivity" in attributes
        if attributes.get("cf_role") == "mesh_topology" and flat:
            return _from_ugrid(dataset, attributes)
    for model, (connectivity, face, node) in _MODELS.items():
        known = connectivity in dataset.variables
        if not known or not {face, node} <= set(dataset.dims):
            continue
        faces = _counted(dataset[connectivity].transpose(face, ...), 1)
        if "nEdgesOnCell" in dataset.variables:  # MPAS fills up with any number
            past = np.arange(faces.shape[1]) >= dataset["nEdgesOnCell"].values[:, None]
            faces = np.where(past, -1, faces)
        placed = {n for n, v in dataset.variables.items() if v.dims == (node,)}
        pairs = tuple(
            pair
            for pair in _POSITIONS
            if placed >= set(pair) and all(dataset[n].values.any() for n in pair)
        )
        return Topology(faces, pairs, face, node, f"{model}: {connectivity}")
    return None


def _from_ugrid(dataset: Any, attributes: Any) -> Topology:
    stored = dataset[attributes["face_node_connectivity"]]
    face = attributes.get("face_dimension", stored.dims[0])
    names = str(attributes["node_coordinates"]).split()
    both = zip(names[::2], names[1::2], strict=False)
    pairs = tuple(lon_first(pair, dataset) for pair in both)
    faces = _counted(stored.transpose(face, ...), stored.attrs.get("start_index", 0))
    node = dataset[names[0]].dims[0]
    return Topology(faces, pairs, str(face), str(node), "UGRID")


def _counted(stored: Any, start: int) -> np.ndarray:
    """Return node numbers from 0; what is masked, or a fill below it, is -1."""
    numbers = np.nan_to_num(np.asarray(stored.values, np.float64), nan=start - 1)
    return np.maximum(numbers.astype(np.int64) - int(start), -1)


class MeshPart(Part):
    """One dataset of velocities at the nodes or on the faces of a mesh."""

    def __init__(
        self, dataset: Any, label: str, choices: Choices, topology: Topology
    ) -> None:
        self._topology, self._falls = topology, False
        super().__init__(dataset, label, choices)

    def _find_dimensions(self, dataset: Any, choices: Choices) -> None:
        first, mesh = self._variables[0], self._topology
        self._ocean, self._nodes = True, dataset.sizes[mesh.node_dimension]
        self._find_positions(dataset, choices)
        places = {mesh.face_dimension, mesh.node_dimension} & set(first.dims)
        self.roles = {}
        for dimension in first.dims:
            if dimension in places:
                continue
            known = dimension in first.coords
            attributes = first.coords[dimension].attrs if known else {}
            if axis_role(str(dimension), attributes) == "t":
                self.roles["t"] = dimension
            elif "edge" in f"{first.attrs.get('location')} {dimension}".lower():
                raise ValueError(
                    f"{self.label}: {first.name!r} is on the edges of the mesh, and "
                    "velocities are understood at nodes and on faces: give "
                    "velocity_field_name= variables that are"
                )
            elif first.sizes[dimension] > 1:
                self._find_levels(dataset, str(dimension))
        for variable in self._variables:
            if not places or set(variable.dims) != set(first.dims):
                raise ValueError(
                    f"{self.label}: {', '.join(self.names)} are not on the same nodes "
                    "or faces of the mesh: give velocity_field_name= variables that are"
                )
        self._place_dimension = places.pop()
        self._find_dry(dataset)
        self._on_faces = self._place_dimension == mesh.face_dimension
        averaged = ", averaged from faces to nodes" if self._on_faces else ""
        self._said.append(f"mesh by {mesh.words}{averaged}")

    def _find_positions(self, dataset: Any, choices: Choices) -> None:
        """Choose positions in meters where there are, unless a sphere is asked for."""
        self._sites = None
        for names in self._topology.coordinates:
            x, y = (dataset[name] for name in names)
            bare = not any("units" in each.attrs for each in (x, y))
            if names[0] == "lonVertex" and bare:  # early MPAS
                x, y = (each.assign_attrs(units="radian") for each in (x, y))
            round_ = is_geographic({"x": x, "y": y}, self.label)
            if names[0].startswith("SCHISM") and bare and round_ is None:
                round_ = self._guess_degrees(x, y, choices.geometry)
            if choices.geometry == "flat" or not round_:
                self._sites = None
                if choices.geometry != "sphere":
                    break
            else:
                self._sites = Sites(x, y, degrees(x), degrees(y), {}, None)
        else:
            if self._sites is None:
                raise ValueError(
                    f"{self.label}: the mesh has no "
                    f"{'longitudes and latitudes' if choices.geometry else 'positions'}"
                    " of its nodes: add them to the file"
                )
            names = (str(self._sites.lon.name), str(self._sites.lat.name))
        self._positions = names
        self._said.append(f"positions: {', '.join(names)}")

    def _guess_degrees(self, x: Any, y: Any, geometry: str | None) -> str | None:
        """Return whether SCHISM's positions without units may be degrees."""
        if geometry is None and np.abs(x).max() <= 360 and np.abs(y).max() <= 90:
            raise ValueError(
                f"{self.label}: {x.name!r} and {y.name!r} have no units, and may be "
                "degrees or meters: give geometry='sphere' or 'flat'"
            )
        return "stated" if geometry == "sphere" else None

    def _find_dry(self, dataset: Any) -> None:
        """Find where the file says that nodes or faces are dry: nothing flows there."""
        self._dry: tuple[Any, int] | None = None
        places = (self._place_dimension, self._topology.face_dimension)
        for place in places:
            for name, dry in _DRY.items():
                there = dataset.get(name)
                if there is None or self._dry is not None:
                    continue
                if set(there.dims) == {place, self.roles.get("t")}:
                    self._dry = there, dry
                    self._said.append(f"no flow where {name} is {dry}")

    def _is_dry(self, row: int) -> np.ndarray:
        """Return which places are dry; a node is if all of its faces are."""
        assert self._dry is not None
        flags, value = self._dry
        dry = np.asarray(flags.isel({self.roles["t"]: row}).values) == value
        faces = self._topology.faces
        if self._on_faces or dry.size != len(faces):
            return dry
        wet = np.zeros(len(self._points), bool)
        wet[faces[~dry][faces[~dry] >= 0]] = True
        return ~wet

    def _find_radius(self, dataset: Any, choices: Choices) -> float | None:
        """Return the radius of a sphere; None for a mesh in meters."""
        if self._sites is None:
            pairs = zip("xy", self._positions, strict=True)
            axes = {role: dataset[name] for role, name in pairs}
            self._factors = self._flat_factors(axes, choices)
            return None
        return super()._find_radius(dataset, choices)

    def _find_levels(self, dataset: Any, dimension: str) -> None:
        """Find what the levels of a dimension are: depths, or shares of the depth."""
        first = self._variables[0]
        # Asked for without being there, a dimension would be counted.
        known = dimension in dataset.variables
        levels = dataset[dimension] if known else None
        remedy = 'give velocity_field_name=("ua", "va") or other variables of one level'
        self.roles["z"] = dimension
        node = self._topology.node_dimension
        for name in _HEIGHTS:
            there = dataset.get(name)
            if there is not None and {node, dimension} <= set(there.dims):
                return self._follow_heights(there, dataset.get("depth"))
        if levels is None:
            levels = self._find_shares(dataset, dimension)
        if levels is None:
            raise ValueError(
                f"{self.label}: the levels {dimension!r} of {first.name!r} have no "
                f"depths: {remedy}, or the file with {' or '.join(_HEIGHTS)} too"
            )
        if not follows_terrain(levels):
            if self._sites is None:
                raise ValueError(
                    f"{self.label}: {first.name!r} has the levels {dimension!r}, and "
                    "flat meshes of labeled files are read on one level, or on levels "
                    f"that follow the terrain: {remedy}, or geometry='sphere' if the "
                    "file has longitudes and latitudes"
                )
            return
        depth, surface = self._find_column(dataset, levels)
        share = np.asarray(levels.values, np.float64)
        shared = np.ptp(share.reshape(len(share), -1), axis=1).max() < 1e-5
        if depth is None or not (shared or levels.dims[1:] == (node,)):
            raise ValueError(
                f"{self.label}: the levels {dimension!r} are understood as shares of "
                "the depth h at the nodes, and "
                f"{'there is no h' if depth is None else 'they differ'}: {remedy}"
            )
        share = share.reshape(len(share), -1)
        self._falls = bool(share[1, 0] < share[0, 0])
        share = share[:: -1 if self._falls else 1].T
        share = share[0] if shared else share[:, None]
        stretching = Stretching(share, share, 0.0, 2)
        self._follow_terrain(depth, stretching, surface, "sigma")

    def _find_shares(self, dataset: Any, dimension: str) -> Any:
        """Return the shares of the depth of levels that have another name."""
        for name in dataset.variables:
            there = dataset[name]
            if there.dims == (dimension,) and follows_terrain(there):
                return there
        return None

    def _find_column(self, dataset: Any, levels: Any) -> tuple[Any, Any]:
        """Return the depth and the surface: h and zeta, or those that levels name."""
        stated = str(levels.attrs.get("formula_terms", ""))
        terms = dict(re.findall(r"(\w+):\s*(\w+)", stated))
        surface = dataset.get(terms.get("eta", "zeta"))
        depth, bed = (dataset.get(terms.get(k, "h")) for k in ("depth", "bedlevel"))
        if "bedlevel" in terms and bed is not None:
            depth = -bed
        time = self.roles.get("t")
        if depth is not None and surface is not None and time in depth.dims:
            depth = (depth - surface).isel({time: 0})  # of the water, not at rest
        return depth, surface

    def _follow_heights(self, stored: Any, depth: Any) -> None:
        """Take levels whose heights the file has, at each node and instant."""
        order = [self._topology.node_dimension, self.roles["z"]]
        time = self.roles.get("t")
        levels, moving = stored.sizes[order[1]], time in stored.dims
        deepest = 1.0 if depth is None else max(float(depth.max()), SHALLOWEST)

        def heights(row: int | None) -> np.ndarray:
            if row is None:
                return np.linspace([-deepest], 0, levels, axis=1)
            now = stored.isel({time: row}) if moving else stored
            z = read_values(now.squeeze(drop=True).transpose(*order))
            z = hold_floor(np.where(np.abs(z) < NO_HEIGHT, z, np.nan).astype(float))
            return np.nan_to_num(z, nan=-deepest)[:, None]

        self._terrain = Levels(heights, moving)
        self._vertical = Vertical(words=f"z up, depth = -z, levels of {stored.name}")
        self._said.append(f"levels at the heights {stored.name}")

    def _at_nodes(self, columns: np.ndarray) -> np.ndarray:
        """Return what is known of nodes, or of faces, as the one column of nodes."""
        faces = self._topology.faces
        if columns.size != self._nodes:
            at = (faces >= 0) & np.isfinite(columns)[:, None]
            each = np.repeat(columns, at.sum(1))[:, None]
            columns = gather(faces[at], each, self._nodes)[:, 0]
        return columns[:, None]

    def _place(self, dataset: Any) -> Any:
        mesh = self._topology
        sizes = (mesh.faces >= 0).sum(axis=1)
        if sizes.min(initial=3) < 3:
            raise ValueError(f"{self.label}: a face of the mesh has fewer than 3 nodes")
        if self.radius is not None or self._terrain is not None:
            return self._place_round(dataset)
        x, y = (np.asarray(dataset[n].values, np.float64) for n in self._positions)
        self._points = np.stack([x, y, np.zeros_like(x)], axis=-1)
        faces = mesh.faces
        if sizes.max() > max(_CODES):
            faces = _fans(faces)
            sizes = np.full(len(faces), 3)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        types = np.array([_CODES[n] for n in sizes.tolist()], np.uint8)
        return Cells(self._points, faces[faces >= 0], offsets, types)

    def _place_round(self, dataset: Any) -> CurvilinearGrid:
        """Return triangles, on the sphere or on levels; other faces are split."""
        sites, terrain = self._sites, self._terrain
        if sites is not None:
            x, y = sites.x, sites.y
            self._points = unit_vectors(x, y)
        else:
            x, y = (np.asarray(dataset[n].values, np.float64) for n in self._positions)
            self._points = np.stack([x, y, np.ones_like(x)], -1)
        if terrain is not None:
            z = terrain.axis()
        else:
            z = self._vertical.factor * self._coordinate(self._variables[0], "z")
            self._falls = bool(z.size > 1 and z[1] < z[0])
            z = z[::-1] if self._falls else z
        return CurvilinearGrid(
            x[:, None],
            y[:, None],
            z,
            self.radius,
            scalar=self.scalar,
            **self._folds(),
            triangles=_fans(self._topology.faces),
        )

    def _times(self, dataset: Any, variable: Any) -> np.ndarray:
        found = super()._times(dataset, variable)
        if {"Itime", "Itime2"} <= set(dataset.variables) and "t" in self.roles:
            # FVCOM's `time` in float32 is off by minutes; these are days and msec.
            days, milliseconds = dataset["Itime"], dataset["Itime2"]
            seconds = 86400.0 * days.values + 1e-3 * milliseconds.values
            units = variable[self.roles["t"]].attrs.get("units", "")
            reference = split_units(days.attrs.get("units", units))[1]
            self.dates = Dates(seconds, reference or None, "standard")
        return found

    def read(self, row: int, dtype: np.dtype) -> np.ndarray:
        """Return the velocity at the nodes; faces without one do not count.

        It is (N, 3), on a sphere (N, 1, levels, 3).
        """
        roles = {**self.roles, "n": self._place_dimension}
        parts = [
            self._slab(variable, roles, "nz", row, np.float64) * factor
            for variable, factor in zip(self._variables, self._factors, strict=True)
        ]
        parts += [np.zeros_like(parts[0])] * (3 - len(parts))
        values = np.stack(parts, -1)
        if self._dry is not None:
            values[self._is_dry(row)] = 0
        if self._on_faces:
            values = self._to_nodes(values)
        if isinstance(self.axes, Cells):
            return values[:, 0].astype(dtype)
        values = values[:, None]
        values = (np.flip(values, 2) if self._falls else values).astype(dtype)
        levels = self._terrain
        if levels is None:
            return values
        if not any(levels.added):  # below the floor of SCHISM there is nothing
            values = np.moveaxis(hold_floor(np.moveaxis(values, 2, -1)), -1, 2)
        return levels.complete(values, row, 2)

    def _to_nodes(self, values: np.ndarray) -> np.ndarray:
        """Return means over the faces around nodes, by area; of vectors in space."""
        faces, points = self._topology.faces, self._points
        at = faces >= 0
        corners = points[np.where(at, faces, faces[:, :1])]
        edges = corners - corners[:, :1]
        area = np.linalg.norm(np.cross(edges[:, :-1], edges[:, 1:]).sum(1), axis=-1)
        shape = (-1, *[1] * (values.ndim - 2), 3)
        turns = self.radius is not None and not self.scalar
        if turns:
            east, north = (d.reshape(shape) for d in directions(corners.mean(1)))
            u, v, w = (values[..., c, None] for c in range(3))
            values = np.concatenate([u * east + v * north, w], -1)
        flat = values.reshape(len(values), -1)
        known = np.isfinite(flat)
        weighed = np.concatenate([np.where(known, flat, 0), known], 1) * area[:, None]
        each = np.repeat(weighed, at.sum(1), axis=0)
        total, weight = np.split(gather(faces[at], each, len(points)), 2, axis=1)
        mean = np.where(weight > 0, total / np.where(weight > 0, weight, 1), np.nan)
        mean = mean.reshape(-1, *values.shape[1:])
        if not turns:
            return mean
        along = [(mean[..., :3] * d.reshape(shape)).sum(-1) for d in directions(points)]
        return np.stack([*along, mean[..., 3]], -1)


def hold_floor(levels: np.ndarray) -> np.ndarray:
    """Return columns (..., levels) with the lowest known value also below it."""
    known = np.isfinite(levels)
    lowest = np.take_along_axis(levels, known.argmax(-1)[..., None], -1)
    below = np.arange(levels.shape[-1]) < known.argmax(-1)[..., None]
    return np.where(below, lowest, levels)


def directions(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the directions east and north at points of a sphere."""
    turn = np.arctan2(points[:, 1], points[:, 0])
    east = np.stack([-np.sin(turn), np.cos(turn), np.zeros_like(turn)], -1)
    up = points / np.linalg.norm(points, axis=-1, keepdims=True)
    return east, np.cross(up, east)


def _fans(faces: np.ndarray) -> np.ndarray:
    """Return triangles that fan out from the first node of each face."""
    fans = [faces[:, [0, k, k + 1]] for k in range(1, faces.shape[1] - 1)]
    split = np.stack(fans, 1).reshape(-1, 3)
    return split[(split >= 0).all(1)]
