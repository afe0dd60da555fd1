"""Where a place lies within a cell: reference coordinates from positions.

Each cell keeps the inverse of its linear part about one of its corners, so that
coordinates are of order one whatever the scale and wherever the mesh lies; cells whose
faces are not parallel need a few Newton steps on their product terms besides.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxtrace.fields.box_tree import rows
from jaxtrace.fields.cells import KINDS, Kind, Values, later_weights, side_values
from jaxtrace.fields.curve import in_chunks
from jaxtrace.fields.topology import Mesh, corner_places, expand, invert_linear

# Newton steps from a good guess, by bytes of a number: each about doubles the digits.
QUICK_STEPS = {4: 4, 8: 6}
PATIENT_STEPS = 16
REACH = 1.5  # coordinates beyond this say no more than that the place is far away
FACTORS = ((0, 1), (1, 2), (2, 0), (0, 1, 2))  # the coordinates of each product term


class Records(eqx.Module):
    """One row per cell: a corner, the inverse map about it, tolerance, products.

    A row holds corner, inverse (row by row) and tolerance; cells that are not simplices
    add the coordinates of that corner and, if any is warped, its products.
    """

    table: Float[Array | np.ndarray, "*batch cells numbers"]
    kind: Int[Array | np.ndarray, "*batch some"]  # one per cell if kinds are mixed
    kinds: tuple[str, ...] = eqx.field(static=True)
    dimension: int = eqx.field(static=True)
    warped: bool = eqx.field(static=True)

    @property
    def mixed(self) -> bool:
        """Return whether cells differ in kind."""
        return len(self.kinds) > 1

    @property
    def simplices(self) -> bool:
        """Return whether every cell is a simplex."""
        return all(KINDS[name].simplex for name in self.kinds)

    @property
    def products(self) -> tuple[int, ...]:
        """Return which product terms any of the kinds has."""
        if not self.warped:
            return ()
        first = 1 + self.dimension
        used: set[int] = set()
        for name in self.kinds:
            terms = KINDS[name].expansion[first:]
            used |= {i for i, row in enumerate(terms) if any(row)}
        return tuple(sorted(used))


def make_records(mesh: Mesh, points: np.ndarray, dtype: np.dtype) -> Records:
    """Return records in a dtype of cells over points that are exact in that dtype."""
    d, kinds, eps = mesh.dimension, mesh.kinds, np.finfo(dtype).eps
    empty = np.zeros(0, np.int32)
    records = Records(
        empty[:, None].astype(dtype),
        mesh.kind if len(kinds) > 1 else empty,
        kinds,
        d,
        not all(KINDS[name].simplex for name in kinds),
    )
    at = d + d * d  # where the tolerance is
    width = at + 1 + (0 if records.simplices else d * (1 + len(records.products)))
    columns = np.ascontiguousarray(points.T)
    table = np.zeros((len(mesh.nodes), width), dtype)
    spread, bend = np.empty(len(table)), np.zeros(len(table))

    def fill(kind: Kind, cells: Int[np.ndarray, " cells"]) -> None:
        corners = corner_places(columns, mesh.nodes[cells], kind.corners)
        terms = expand(corners, kind)
        cofactors, volume = invert_linear(terms[1 : 1 + d])
        inverse = cofactors / volume
        extent = np.ptp(corners, axis=0)
        spread[cells] = (np.abs(inverse) * extent).sum((0, 1))
        numbers = [*corners[0], *inverse.reshape(d * d, -1), spread[cells]]
        if not records.simplices:
            numbers += [*-(inverse * terms[0]).sum(1)]
            for i in records.products:
                product = np.zeros((d, len(cells)))
                if 1 + d + i < len(terms):
                    product = (inverse * terms[1 + d + i]).sum(1)
                bend[cells] += np.abs(product).sum(0)
                numbers += [*product]
        table[cells] = np.stack(numbers, 1)

    for index, name in enumerate(kinds):
        cells = mesh.members(index)
        work = lambda some, k=KINDS[name], c=cells: fill(k, c[some])
        in_chunks(len(cells), work)
    warped = bool(np.any(bend > 4 * eps * spread))
    table[:, at] = 4 * eps * (spread + 2 * bend * warped)
    if records.warped and not warped:
        table = np.ascontiguousarray(table[:, : at + 1 + d])
    return dataclasses.replace(records, table=table, warped=warped)


class Local(eqx.Module):
    """A cell's record opened for one place: what Newton's method works on."""

    target: Values  # coordinates of the place under the linear part alone
    products: list[Values]
    tolerance: Float[Array, " n"]
    kind: Int[Array, " n"] | None


def open_records(
    records: Records, x: Float[Array, "n dim"], cell: Int[Array, " n"]
) -> Local:
    """Return the places under the linear part of their cells' maps."""
    d = records.dimension
    row = rows(records.table, cell)
    wide = np.promote_types(x.dtype, row.dtype)
    offset = [
        (x[:, k].astype(wide) - row[:, k].astype(wide)).astype(row.dtype)
        for k in range(d)
    ]
    target = []
    for i in range(d):
        terms = [row[:, d + d * i + k] * offset[k] for k in range(d)]
        target.append(sum(terms[1:], start=terms[0]))
    at = d + d * d
    tolerance = row[:, at]
    products = []
    if not records.simplices:
        target = [t + row[:, at + 1 + i] for i, t in enumerate(target)]
        base = at + 1 + d
        for j in range(len(records.products)):
            products.append([row[:, base + d * j + i] for i in range(d)])
    kind = rows(records.kind, cell) if records.mixed else None
    return Local(target, products, tolerance, kind)


def invert(
    records: Records, local: Local, waiting: Bool[Array, " n"] | None = None
) -> tuple[Values, Bool[Array, " n"]]:
    """Return reference coordinates, and whether Newton's method settled on them.

    A few steps are enough near a cell; with `waiting`, steps are taken until all
    places that wait for an answer, and may be in their cell, have one.
    """
    sure = jnp.ones(local.tolerance.shape, bool)
    if not records.warped:
        return local.target, sure
    near = np.sqrt(np.finfo(local.tolerance.dtype).eps)
    guess = [jnp.clip(c, -REACH, REACH) for c in local.target]
    carry = (guess, jnp.full_like(local.tolerance, np.inf), 0)

    def improve(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        p, _, step = carry
        change = _solve(_jacobian(records, local, p), _errors(records, local, p))
        p = [jnp.clip(c - e, -REACH, REACH) for c, e in zip(p, change, strict=True)]
        largest = functools.reduce(jnp.maximum, map(jnp.abs, change))
        return p, largest, step + 1

    if waiting is not None:
        hopeful = waiting & _may_hold(records, local)
        going = lambda c: (c[2] < PATIENT_STEPS) & jnp.any(hopeful & (c[1] >= near))
        carry = lax.while_loop(going, improve, carry)
    else:
        steps = QUICK_STEPS[local.tolerance.dtype.itemsize]
        # A GPU keeps the steps in registers, 9 % faster; on a CPU XLA would repeat all
        # earlier steps for each coordinate of a later one, at half the rate.
        unroll = jax.default_backend() != "cpu"
        work = lambda _, carry: improve(carry)
        carry = lax.fori_loop(0, steps, work, carry, unroll=unroll)
    return carry[0], carry[1] < near


def _may_hold(records: Records, local: Local) -> Bool[Array, " n"]:
    """Return whether product terms could still bring a place inside its cell."""
    # Within a cell no product exceeds 1/3, and no side grows faster than a coordinate.
    bend = jnp.zeros_like(local.tolerance)
    for product in local.products:
        for part in product:
            bend = bend + jnp.abs(part) / 3
    least = functools.reduce(jnp.minimum, sides(records, local, local.target))
    return least >= -(bend + local.tolerance)


def _errors(records: Records, local: Local, p: Values) -> Values:
    """Return by how much the map of coordinates misses the place."""
    errors = [c - target for c, target in zip(p, local.target, strict=True)]
    for (term, _), part in zip(
        _products(records, local, p), local.products, strict=True
    ):
        errors = [error + c * term for error, c in zip(errors, part, strict=True)]
    return errors


def _jacobian(records: Records, local: Local, p: Values) -> list[list[Any]]:
    matrix: list[list[Any]] = np.eye(records.dimension).tolist()
    for (_, slopes), part in zip(
        _products(records, local, p), local.products, strict=True
    ):
        for k, slope in slopes.items():
            for row, c in zip(matrix, part, strict=True):
                row[k] = row[k] + c * slope
    return matrix


def _products(
    records: Records, local: Local, p: Values
) -> list[tuple[Array, dict[int, Array]]]:
    """Return product terms, each with its slopes along the coordinates it has."""
    product = lambda some: functools.reduce(operator.mul, [p[i] for i in some])
    found = []
    for index in records.products:
        of = FACTORS[index]
        term, slopes = product(of), {k: product(i for i in of if i != k) for k in of}
        if index == 0 and "pyramid" in records.kinds:
            term, slopes = _over_height(records, local, p, term, slopes)
        found.append((term, slopes))
    return found


def _over_height(
    records: Records, local: Local, p: Values, term: Array, slopes: dict[int, Array]
) -> tuple[Array, dict[int, Array]]:
    """Return the first product, in pyramids over the distance from the apex."""
    height = jnp.maximum(1 - p[2], np.finfo(p[2].dtype).eps)
    u, v = (jnp.clip(c / height, -1, 1) for c in p[:2])
    along = {0: v, 1: u, 2: u * v}
    if not records.mixed:
        return u * v * height, along
    here = local.kind == records.kinds.index("pyramid")
    changed = {k: jnp.where(here, c, slopes.get(k, 0)) for k, c in along.items()}
    return jnp.where(here, u * v * height, term), changed


# Written out for lanes: a batched `linalg.solve` is a library call per step, which XLA
# cannot fuse with the loads around it.
def _solve(a: list[Any], b: Values) -> Values:
    """Return solutions of small linear systems, one per lane, by Cramer's rule."""
    if len(b) == 2:
        det = _safe(a[0][0] * a[1][1] - a[0][1] * a[1][0])
        return [
            (b[0] * a[1][1] - a[0][1] * b[1]) / det,
            (a[0][0] * b[1] - b[0] * a[1][0]) / det,
        ]
    minor = [
        [
            a[(i + 1) % 3][(j + 1) % 3] * a[(i + 2) % 3][(j + 2) % 3]
            - a[(i + 1) % 3][(j + 2) % 3] * a[(i + 2) % 3][(j + 1) % 3]
            for j in range(3)
        ]
        for i in range(3)
    ]
    det = _safe(a[0][0] * minor[0][0] + a[0][1] * minor[0][1] + a[0][2] * minor[0][2])
    return [
        (b[0] * minor[0][j] + b[1] * minor[1][j] + b[2] * minor[2][j]) / det
        for j in range(3)
    ]


def _safe(det: Array) -> Array:
    # The map of a valid cell is singular only far outside of it, where any step will
    # do: coordinates are cut at REACH.
    return jnp.where(jnp.abs(det) > 1e-6, det, jnp.full_like(det, 1e-6))


def refine(records: Records, local: Local, p: Values) -> Values:
    """Return the coordinates, with the derivative that exact ones have."""
    if not records.warped:
        return local.target
    # The search has no derivative (a loop of unknown length has none in reverse); this
    # is the one of the implicit function theorem, dp = J^-1 dx.

    @jax.custom_jvp
    def settled(local: Local, p: Values) -> Values:
        del local
        return p

    @settled.defjvp
    def _(
        primals: tuple[Local, Values], tangents: tuple[Local, Values]
    ) -> tuple[Values, Values]:
        local, p = primals
        errors = lambda local: _errors(records, local, p)
        _, change = jax.jvp(errors, (local,), tangents[:1])
        slope = _solve(_jacobian(records, local, p), change)
        return p, [-c for c in slope]

    return settled(local, [lax.stop_gradient(c) for c in p])


def sides(records: Records, local: Local, p: Values) -> Values:
    """Return how far inside every face of their cells the coordinates are."""
    return _by_kind(records, local, side_values, p, 1.0)


def weights(records: Records, local: Local, p: Values) -> Values:
    """Return shape functions at the coordinates, of all nodes but the first."""
    return _by_kind(records, local, later_weights, p, 0.0)


def clamp(records: Records, local: Local, p: Values) -> Values:
    """Return coordinates moved into the reference cell."""
    return _by_kind(records, local, _clamp, p, 0.0)


def _by_kind(
    records: Records,
    local: Local,
    function: Callable[[Kind, Values], Values],
    p: Values,
    spare: float,
) -> Values:
    """Return what a function says of each place's kind of cell, `spare` if nothing."""
    options = [function(KINDS[name], p) for name in records.kinds]
    if local.kind is None:
        return options[0]
    chosen = []
    for i in range(max(map(len, options))):
        value = jnp.full_like(options[0][0], spare)
        for index, option in enumerate(options):
            if i < len(option):
                value = jnp.where(local.kind == index, option[i], value)
        chosen.append(value)
    return chosen


def _clamp(kind: Kind, p: Values) -> Values:
    if kind.simplex:
        shares = [jnp.maximum(c, 0) for c in p]
        total = jnp.maximum(sum(shares[1:], start=shares[0]), 1)
        return [share / total for share in shares]
    if kind.name == "wedge":
        shares = [jnp.maximum(c + 1 / 3, 0) for c in p[:2]]
        total = jnp.maximum(shares[0] + shares[1], 1)
        return [share / total - 1 / 3 for share in shares] + [jnp.clip(p[2], -0.5, 0.5)]
    if kind.name == "pyramid":
        z = jnp.clip(p[2], 0, 1)
        half = (1 - z) / 2
        return [jnp.clip(p[0], -half, half), jnp.clip(p[1], -half, half), z]
    return [jnp.clip(c, -0.5, 0.5) for c in p]
