"""Values at places that have been located, inside a mesh and beyond it."""

from collections.abc import Callable
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from jaxtrace.fields.locate import Locator, Place, remembered_wall
from jaxtrace.fields.reference import clamp, open_records, refine, weights
from jaxtrace.fields.search import select
from jaxtrace.fields.walls import closest_point

Outside = Literal["nearest_element", "zero", "nan", "extrapolate"]
OUTSIDE = get_args(Outside)

# Reads values at cells, by the weights of all their nodes but the first.
Reader = Callable[[Array, list[Array]], Array]


def check_outside(outside: str) -> None:
    """Refuse a rule for places outside that is not known."""
    if outside not in OUTSIDE:
        raise ValueError(f"outside {outside!r}: choose one of {', '.join(OUTSIDE)}")


def interpolate(
    locator: Locator,
    outside: Outside,
    x: Float[Array, "n dim"],
    place: Place,
    read: Reader,
) -> Float[Array, "n c"]:
    """What shape functions say at places; outside, what the rule says."""

    def answer(x: Array) -> Array:
        return _shaped(locator, outside, x, place, read)

    if outside in ("zero", "nan"):
        fill = 0.0 if outside == "zero" else np.nan
        return jnp.where((place.memory >= 0)[:, None], answer(x), fill)
    near = _nearest(locator, x, place)
    if outside == "nearest_element":
        return answer(near)
    near = lax.stop_gradient(near)
    value, change = jax.jvp(answer, (near,), (x - near,))
    return value + change


def _nearest(locator: Locator, x: Array, place: Place) -> Array:
    """Places outside moved to the closest point of the mesh."""
    outside = place.memory < 0
    wall = remembered_wall(locator, place.memory)
    return lax.cond(
        jnp.any(outside),
        lambda x: select(outside, closest_point(locator.walls, x, wall), x),
        lambda x: x,
        x,
    )


def _shaped(
    locator: Locator, outside: Outside, x: Array, place: Place, read: Reader
) -> Array:
    records = locator.records
    local = open_records(records, x, place.cell)
    guess = [place.coordinates[:, i] for i in range(place.coordinates.shape[1])]
    p = refine(records, local, guess)
    if records.warped and outside == "nearest_element":
        p = select(place.memory < 0, clamp(records, local, p), p)
    return read(place.cell, weights(records, local, p))
