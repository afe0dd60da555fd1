"""C- and B-grids as ocean models write them: velocities on faces, or at corners.

Models differ in where faces lie among the centers of cells along an axis: a face more
than centers ("outer"), one less ("inner": ROMS, CROCO), as many, each before its center
("left": MITgcm) or after it ("right": NEMO). All are brought to cells with a face at
both ends. On B-grids (POP, MOM) corner [j, i] is the north-east one of cell [j, i]:
over a layer u and v are constant; w is constant across a cell and linear from its
bottom to its top.
"""

import dataclasses
import re
from typing import Any, NamedTuple

import numpy as np

from jaxtrace.fields.curved_grid import CurvilinearGrid
from jaxtrace.fields.quads import close_columns, unit_vectors
from jaxtrace.fields.terrain import face_thickness, stepped_heights
from jaxtrace.io.cf import (
    canonical,
    degrees,
    find_positions,
    lon_first,
    place_nodes,
    read_rise,
    read_vertical,
)
from jaxtrace.io.decoding import dimension_roles, read_thickness
from jaxtrace.io.grid_part import Choices, Part, Sites
from jaxtrace.sphere import RADIAN

#: Names of longitudes and latitudes at corners of cells.
CORNERS = (
    ("lon_psi", "lat_psi"), ("glamf", "gphif"), ("XG", "YG"),
    ("geolon_c", "geolat_c"), ("geolonb", "geolatb"),
)  # fmt: skip
_NEMO = {"vozocrtx": "vomecrty", "uo": "vo", "sozocrtx": "somecrty", "u": "v"}
_LEFT = re.compile(r"(.*_g|[xy]g|.*_left)$", re.IGNORECASE)
_PADDING = {"none": "outer", "low": "right", "high": "left", "both": "inner"}
#: Names of lengths of faces: of those that u and that v goes through.
_LENGTHS = (("e2u", "e1v"), ("dyG", "dxG"), ("dyCu", "dxCv"))

#: Names of depths between levels, one more than there are levels: MITgcm, MOM6.
_FACES = ("Zp1", "zi")


class Staggering(NamedTuple):
    """Where faces lie among centers along x and y, and who says so."""

    x: str
    y: str
    words: str


def find_staggering(dataset: Any, names: tuple[str, ...]) -> Staggering | None:
    """Return where the faces of a C-grid lie; None where velocities share points."""
    u, v = dataset[names[0]], dataset[names[1]]
    if u.name == v.name or min(u.ndim, v.ndim) < 2:
        return None
    for topology in _sgrid(dataset):
        return _from_sgrid(topology.attrs, u, v)
    if u.dims[-2:] == v.dims[-2:]:
        return _from_nemo(dataset, u, v)
    sides = []
    for axis in (-1, -2):
        face, center = (u, v) if axis == -1 else (v, u)
        if face.dims[axis] == center.dims[axis]:
            return None
        sides.append(_side(face, center, axis))
    x, y = sides
    return Staggering(x, y, "dimensions of u and v differ")


def _sgrid(dataset: Any) -> list[Any]:
    """Return the variables that state a staggered grid, of which there is one."""
    known = dataset.variables.values()
    return [v for v in known if v.attrs.get("cf_role") == "grid_topology"]


def _from_sgrid(attributes: Any, u: Any, v: Any) -> Staggering | None:
    """Return the padding that SGRID states for the dimensions of cells."""
    if u.dims[-2:] == v.dims[-2:]:
        return None
    text = str(attributes.get("face_dimensions", attributes.get("volume_dimensions")))
    found = re.findall(r"(\w+)\s*:\s*\w+\s*\(padding:\s*(\w+)\)", text)
    kinds = [_PADDING.get(padding) for _, padding in found[:2]]
    if len(kinds) < 2 or None in kinds:
        return None
    return Staggering(str(kinds[0]), str(kinds[1]), "SGRID")


def _from_nemo(dataset: Any, u: Any, v: Any) -> Staggering | None:
    """Return NEMO's convention where u and v share dimensions but not points."""
    words = None
    if "glamf" in dataset.variables:
        words = "NEMO: glamf, gphif"
    elif _NEMO.get(str(u.name)) == v.name:
        places = [find_positions(dataset, each) for each in (u, v)]
        if any(d in dataset.dims for d in ("depthu", "depthv")) and u.dims != v.dims:
            words = "NEMO: depthu and depthv"
        elif None not in places and not _coincide(*places):
            words = "NEMO: u and v are at different positions"
    return None if words is None else Staggering("right", "right", words)


def _coincide(one: Any, other: Any) -> bool:
    pairs = zip(one, other, strict=True)
    # Both lack the positions of processors that have only land.
    near = lambda a, b: np.allclose(a.values, b.values, atol=1e-6, equal_nan=True)
    return all(near(a, b) for a, b in pairs)


def _side(face: Any, center: Any, axis: int) -> str:
    """Return where the faces of one axis lie: by numbers, attributes, places, names."""
    more = face.shape[axis] - center.shape[axis]
    if more:
        return {1: "outer", -1: "inner"}.get(more, "right")
    name = face.dims[axis]
    there, middle = _along(face, name), _along(center, center.dims[axis])
    if there is not None and "c_grid_axis_shift" in there.attrs:
        return "left" if float(there.attrs["c_grid_axis_shift"]) < 0 else "right"
    if there is not None and middle is not None and there.dtype.kind == "f":
        at = np.asarray(middle.values, np.float64)
        ahead = np.median(np.asarray(there.values, np.float64) - at)
        step = np.median(np.diff(at))
        if not 0.25 < abs(ahead) / abs(step) < 0.75:
            raise ValueError(
                f"{name!r} of {face.name!r} and {center.dims[axis]!r} of "
                f"{center.name!r} are neither the same positions nor half a cell "
                "apart: bring the components to the same points first"
            )
        return "left" if ahead * step < 0 else "right"
    return "left" if _LEFT.match(str(name)) else "right"


class _Columns(NamedTuple):
    """Which faces and which centers along an axis make the cells."""

    faces: np.ndarray
    centers: np.ndarray


def _columns(side: str, faces: int) -> _Columns:
    """Return the cells that have a face at both ends."""
    first = {"outer": 0, "left": 0, "right": 1, "inner": 1}[side]
    return _Columns(np.arange(faces), np.arange(first, first + faces - 1))


class StaggeredPart(Part):
    """One dataset of velocities on the faces of cells."""

    _guesses = False  # corners have the names of models, whose files lack units
    _between = True

    def __init__(
        self, dataset: Any, label: str, choices: Choices, staggering: Staggering
    ) -> None:
        self._staggering = staggering
        super().__init__(dataset, label, choices)

    def _find_dimensions(self, dataset: Any, choices: Choices) -> None:
        self._said.append(f"C-grid ({self._staggering.words})")
        self._ocean = True
        self._all_roles = []
        for variable in self._variables:
            known = {"y": variable.dims[-2], "x": variable.dims[-1]}
            self._all_roles.append(dimension_roles(variable, self.label, known))
        self.roles = self._all_roles[0]
        u, v = self._variables[:2]
        self._x = _columns(self._staggering.x, u.shape[-1])
        self._y = _columns(self._staggering.y, v.shape[-2])
        lon, lat, x, y = self._corners(dataset, u, v)
        self._sites = Sites(lon, lat, x, y, {}, None)
        self._find_terrain(dataset)

    def _find_terrain(self, dataset: Any) -> None:
        """Find levels that follow the terrain; w is then that of continuity."""
        super()._find_terrain(dataset)
        if self._terrain is not None:
            self._said.append("rise between levels from continuity")
            self.names, self._variables = self.names[:2], self._variables[:2]
            self._all_roles = self._all_roles[:2]

    def _at_nodes(self, columns: np.ndarray) -> np.ndarray:
        """Return means of what is known of cells at corners between four of them."""
        shape = (self._y.faces.size + 1, self._x.faces.size + 1)
        if columns.shape != shape:
            raise ValueError(
                f"{self.label}: the depth h is {columns.shape}, and the centers of the "
                f"cells are {shape}; add the file of the grid, or give a file of one "
                "level"
            )
        around = columns[1:, 1:], columns[1:, :-1], columns[:-1, 1:], columns[:-1, :-1]
        known = [np.isfinite(c) for c in around]
        total = sum(np.nan_to_num(c) for c in around)
        return total / np.maximum(sum(k.astype(float) for k in known), 1)

    def _corners(self, dataset: Any, u: Any, v: Any) -> tuple[Any, Any, Any, Any]:
        """Return longitudes and latitudes of corners, rows first."""
        shape = (v.shape[-2], u.shape[-1])
        stated = [there.attrs.get("node_coordinates", "") for there in _sgrid(dataset)]
        for names in (*(tuple(text.split()) for text in stated if text), *CORNERS):
            if all(name in dataset.variables for name in names):
                # Without dimensions of one, such as the time of a mesh file.
                ordered = lon_first(names, dataset)
                lon, lat = (dataset[name].squeeze(drop=True) for name in ordered)
                x, y = place_nodes(lon, lat)
                if x.ndim == y.ndim == 1:
                    x, y = np.meshgrid(x, y)
                if x.shape == shape:
                    return lon, lat, x, y
        lon, lat = _along(u, u.dims[-1]), _along(v, v.dims[-2])
        if lon is not None and lat is not None:
            return lon, lat, *np.meshgrid(degrees(lon), degrees(lat))
        return self._halfway(dataset, u, shape)

    def _halfway(self, dataset: Any, u: Any, shape: tuple[int, int]) -> Any:
        """Return corners between what positions there are: of cells, else of u."""
        self._said.append("corners taken between the positions in the file")
        for names in (("lon_rho", "lat_rho"), ("x_rho", "y_rho")):
            if not set(names) <= set(dataset.variables):
                continue
            x, y = (dataset[name] for name in names)
            plain = names[0] == "x_rho"
            p = np.stack([x, y], -1) if plain else unit_vectors(degrees(x), degrees(y))
            p = (p[1:, 1:] + p[1:, :-1] + p[:-1, 1:] + p[:-1, :-1]) / 4
            if p.shape[:2] == shape:
                return x, y, *(np.moveaxis(p, -1, 0) if plain else _degrees_of(p))
        found = find_positions(dataset, u)
        if found is None:
            raise ValueError(
                f"{self.label}: the C-grid of {self.names[0]!r} and {self.names[1]!r} "
                "has no longitudes and latitudes; add the file of the grid (glamf and "
                "gphif, lon_psi and lat_psi, XG and YG) to the files"
            )
        p = unit_vectors(*place_nodes(*found))
        if self._staggering.y in ("left", "inner"):
            p = p[::-1]
        middle = p[1:] + p[:-1]
        middle /= np.linalg.norm(middle, axis=-1, keepdims=True)
        p = np.concatenate([middle, 2 * p[-1:] - middle[-1:]])
        p = p[::-1] if self._staggering.y in ("left", "inner") else p
        return *found, *_degrees_of(p[: shape[0]])

    def _place(self, dataset: Any) -> CurvilinearGrid:
        """Return the cells; a grid that goes round is closed by its first column."""
        sites = self._sites
        assert sites is not None
        x, y = sites.x, sites.y
        repeated, open_ = 0, False
        if self.radius is not None:
            repeated, open_ = close_columns(unit_vectors(x, y))
        faces, centers = self._x
        if repeated == 2:
            faces, centers = faces[:-1], centers[:-1]
        elif open_ and self._staggering.x in ("left", "right"):
            faces = np.append(faces, 0)
            last = faces.size - 2 if self._staggering.x == "left" else 0
            centers = np.append(centers, last)
        self._x = _Columns(faces, centers)
        lengths = self._face_lengths(dataset)
        z = self._level_faces(dataset)
        self._keep[0] = faces
        thin = self._thin_cells(dataset)
        if thin:
            z = thin.pop("z")
        return CurvilinearGrid(
            x[:, faces],
            y[:, faces],
            z,
            self.radius,
            faces=True,
            lengths=lengths,
            **(thin or self._folds()),
        )

    def _thin_cells(self, dataset: Any) -> dict[str, Any]:
        """Return the levels of a grid whose lowest cells are thinner; else nothing."""
        self._shares: list[np.ndarray] = []
        if self._levels == 1 or self._terrain is not None:
            return {}
        (u, middle_x), (v, middle_y) = self._x, self._y
        places = (middle_y, middle_x), (middle_y, u), (v, middle_x)
        found, said = read_thickness(dataset, self._levels, self._falls, places)
        self._said.extend(said)
        if found is None:
            return {}
        whole, cells, *stated = found
        z = -np.append(np.cumsum(whole[::-1])[::-1], 0.0)
        heights = stepped_heights(z, cells)
        # Faces are as high as the lower of the cells beside them.
        wide = np.pad(cells, ((0, 1), (0, 1), (0, 0)), "edge")
        beside = [np.minimum(wide, np.roll(wide, 1, axis)) for axis in (1, 0)]
        means = face_thickness(heights)
        for own, known, mean in zip(beside, stated, means, strict=True):
            if known is not None:
                own[: known.shape[0], : known.shape[1]] = known
            open_ = mean[..., :-1] > 0
            share = np.where(open_, own / np.where(open_, mean[..., :-1], 1), 0)
            self._shares.append(share)
        stay = len(self._variables) == 2
        return {"z": z, "heights": heights, "stepped": True, "stay": stay}

    def _face_lengths(self, dataset: Any) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the model's own lengths of faces, where it gives both."""
        for names in _LENGTHS:
            if all(name in dataset.variables for name in names):
                of_u, of_v = (dataset[n].squeeze(drop=True).values for n in names)
                if of_u.ndim == of_v.ndim == 2:
                    rows, columns = self._y.faces.size, self._x.faces.size
                    found = np.zeros((2, rows, columns))
                    found[0, :-1] = of_u[np.ix_(self._y.centers, self._x.faces)]
                    found[1, :, :-1] = of_v[np.ix_(self._y.faces, self._x.centers)]
                    self._said.append(f"lengths of faces: {', '.join(names)}")
                    return found[0], found[1]
        return None

    def _level_faces(self, dataset: Any) -> np.ndarray:
        """Return heights of the faces between levels, upward; 0 without levels."""
        self._levels = 1
        u, dimension = self._variables[0], self.roles.get("z")
        if dimension is None or u.sizes[dimension] == 1:
            return np.zeros(1)
        self._levels = u.sizes[dimension]
        if self._terrain is not None:
            return self._terrain.axis()
        if dimension not in u.coords:
            raise ValueError(
                f"{self.label}: the levels {dimension!r} of {u.name!r} have no depths; "
                "give one level, or a file with them"
            )
        middle = self._vertical.factor * np.asarray(u.coords[dimension].values, float)
        self._falls = bool(middle[1] < middle[0])
        middle = middle[::-1] if self._falls else middle
        for stated in (self._w_faces(middle), self._stated_faces(dataset, middle)):
            if stated is not None:
                return stated
        between = (middle[1:] + middle[:-1]) / 2
        top = min(2 * middle[-1] - between[-1], 0.0) if middle[-1] <= 0 else np.inf
        top = max(top, middle[-1]) if np.isfinite(top) else 2 * middle[-1] - between[-1]
        self._said.append("faces between levels taken halfway")
        return np.concatenate([[2 * middle[0] - between[0]], between, [top]])

    def _w_faces(self, middle: np.ndarray) -> np.ndarray | None:
        """Return the heights that w is at, completed by the bottom."""
        if len(self._variables) < 3:
            return None
        w, dimension = self._variables[2], self._all_roles[2].get("z")
        if dimension is None or dimension not in w.coords:
            return None
        z = self._vertical.factor * np.asarray(w.coords[dimension].values, float)
        z = z[::-1] if self._falls else z
        return join_faces(middle, z, self.label, (str(w.name), self.names[0]))

    def _stated_faces(self, dataset: Any, middle: np.ndarray) -> np.ndarray | None:
        """Return the heights of faces that the levels of u name, or a model has."""
        levels = self._variables[0].coords[self.roles["z"]]
        for name in (levels.attrs.get("edges"), levels.attrs.get("bounds"), *_FACES):
            if name not in dataset.variables:
                continue
            there = np.asarray(dataset[name].values, np.float64)
            if there.ndim == 2:  # bounds: what is below a level is above the next
                there = np.append(there[:, 0], there[-1, 1])
            z = np.sort(self._vertical.factor * there)
            between = z.size == middle.size + 1
            if between and np.all((z[1:] > middle) & (z[:-1] < middle)):
                self._said.append(f"faces between levels: {name}")
                return z
        return None

    def read(self, row: int, dtype: np.dtype) -> np.ndarray:
        """Return one instant: speeds through the first faces of cells, rows first."""
        rows, columns = self._y.faces.size, self._x.faces.size
        levels, slabs = self._levels, []
        for variable, roles, factor in zip(
            self._variables, self._all_roles, self._factors, strict=True
        ):
            slab = self._slab(variable, roles, "yxz", row, dtype) * dtype.type(factor)
            slabs.append(slab[..., ::-1] if levels > 1 and self._falls else slab)
        out = np.zeros((*self.axes.shape, 3), dtype)
        u = slabs[0][np.ix_(self._y.centers, self._x.faces)]
        v = slabs[1][np.ix_(self._y.faces, self._x.centers)]
        out[: rows - 1, :, :levels, 0] = u
        out[:, : columns - 1, :levels, 1] = v
        # What passes is that of the face in the file; the field has faces of its own.
        for component, share in enumerate(self._shares):
            out[:, :, :levels, component] *= share
        if len(slabs) > 2 and levels > 1:
            w = slabs[2][np.ix_(self._y.centers, self._x.centers)]
            missing = levels + 1 - w.shape[2]  # a bottom that is not stored is closed
            out[: rows - 1, : columns - 1, missing:, 2] = np.nan_to_num(w)
        return out if self._terrain is None else self._terrain.complete(out, row, 2)


def has_layers(dataset: Any, names: tuple[str, ...]) -> bool:
    """Return whether a third component lies between the levels of the first two."""
    if len(names) < 3:
        return False
    u, w = dataset[names[0]], dataset[names[2]]
    apart = set(w.dims) - set(u.dims)
    return u.ndim == w.ndim > 2 and u.shape[-2:] == w.shape[-2:] and bool(apart)


def join_faces(
    middle: np.ndarray, between: np.ndarray, label: str, names: tuple[str, str]
) -> np.ndarray:
    """Return heights of all faces around levels, upward: a missing end is added."""
    z = between
    if z.size == middle.size and not np.allclose(z, middle):
        if z[0] < middle[0]:  # bottoms, without the surface
            z = np.append(z, min(2 * middle[-1] - z[-1], 0.0))
        else:
            z = np.concatenate([[2 * middle[0] - z[0]], z])
    apart = z.size == middle.size + 1
    if not (apart and np.all((z[1:] > middle) & (z[:-1] < middle))):
        raise ValueError(
            f"{label}: {between.size} depths of {names[0]!r} do not lie between the "
            f"{middle.size} of {names[1]!r}; to stay on levels give "
            "velocity_field_name= the two horizontal variables only"
        )
    return z


class LayeredPart(Part):
    """One dataset of a B-grid with vertical velocities."""

    def _find_dimensions(self, dataset: Any, choices: Choices) -> None:
        *self._variables, self._rise = self._variables
        super()._find_dimensions(dataset, choices)
        known = {"y": self._rise.dims[-2], "x": self._rise.dims[-1]}
        self._rise_roles = dimension_roles(self._rise, self.label, known)
        self._as_sites()
        self._said.append("B-grid: u and v constant over a layer, w linear")

    def _place(self, dataset: Any) -> CurvilinearGrid:
        grid, w = super()._place(dataset), self._rise
        round_ = self.radius is not None and self._terrain is None
        if not (isinstance(grid, CurvilinearGrid) and round_):
            raise ValueError(
                f"{self.label}: B-grids are understood on a sphere, on levels that do "
                "not follow the terrain; give "
                "velocity_field_name= the two horizontal variables only"
            )
        units = canonical(w.attrs.get("units", "m/s"))
        self._rise_factor = read_rise(w, units, self._vertical, self.label)
        levels = w.coords[self._rise_roles["z"]]
        factor = read_vertical(levels, self._ocean, self.label).factor
        z = factor * np.asarray(levels.values, np.float64)
        self._falls = bool(z[-1] < z[0])
        z = np.sort(z)
        faces = join_faces(grid.z, z, self.label, (str(w.name), self.names[0]))
        self._first = 0 if np.isclose(faces[0], z[0]) else 1
        return dataclasses.replace(grid, z=faces, layered=True)

    def read(self, row: int, dtype: np.dtype) -> np.ndarray:
        """Return one instant: u and v of layers, and w through their bottoms."""
        out = np.zeros((*self.axes.shape, 3), dtype)
        out[:, :, :-1] = super().read(row, dtype)
        out[:, :, -1, :2] = out[:, :, -2, :2]  # of no layer, but masked as the last
        w = self._slab(self._rise, self._rise_roles, "yxz", row, dtype)
        w = np.nan_to_num(w)
        w = (np.flip(w, -1) if self._falls else w) * self._rise_factor
        w = w[1:, self._keep[0][1:]]
        out[:-1, :-1, self._first : self._first + w.shape[-1], 2] = w
        return out


def _along(variable: Any, dimension: Any) -> Any:
    """Return the coordinate of a dimension; `get` would count where there is none."""
    if dimension not in variable.coords:
        return None
    return variable.coords[dimension]


def _degrees_of(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y, z = np.moveaxis(points, -1, 0)
    return RADIAN * np.arctan2(y, x), RADIAN * np.arctan2(z, np.hypot(x, y))
