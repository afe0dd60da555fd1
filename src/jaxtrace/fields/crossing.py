"""Where paths leave a mesh: the first exit, however the boundary bends."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxtrace.fields.locate import NOWHERE, Locator, locate, remembered_wall
from jaxtrace.fields.search import in_groups, rows, select
from jaxtrace.fields.walls import (
    Hit,
    Points,
    closest_point,
    dot,
    first_wall,
    inward_normals,
)


class Crossing(eqx.Module):
    """The first exit of each path from a mesh.

    Where there is none, `point` is the end of the path, `fraction` 1 and `normal` 0;
    `memory` is what a particle at `point` remembers.
    """

    hit: Bool[Array, " n"]
    point: Float[Array, "n dim"]
    normal: Float[Array, "n dim"]  # of length one, into the mesh
    fraction: Float[Array, " n"]
    memory: Int[Array, " n"]


def trace(
    locator: Locator,
    start: Points,
    end: Points,
    memory: Int[Array, " n"],
    part: Int[Array, " n"] | None = None,
) -> Crossing:
    """The first exit of paths; every path whose end is outside has one.

    A path that stays in one cell does not leave. A path that slips out between two
    pieces of wall is stopped at the point of the mesh closest to its end.
    """
    start, end = lax.stop_gradient((start, end))
    first = locate(locator, start, memory, part)
    last = locate(locator, end, first.memory, part)
    inside = last.memory >= 0
    stays = inside & (first.memory == last.memory)
    lost = ~jnp.all(jnp.isfinite(start) & jnp.isfinite(end), -1)
    none = Hit(jnp.zeros_like(memory), jnp.full(memory.shape, 2, start.dtype))

    def work(given: tuple, active: Array) -> Hit:
        start, end, part = given
        return first_wall(locator.walls, start, end, active, part)

    wanted = ~stays & ~lost
    hit = lax.cond(
        jnp.any(wanted),
        lambda: in_groups(wanted, (start, end, part), none, work),
        lambda: none,
    )
    return _crossing(locator, start, end, hit, last.memory)


def _crossing(
    locator: Locator, start: Points, end: Points, hit: Hit, memory: Int[Array, " n"]
) -> Crossing:
    walls = locator.walls
    path = end - start
    crossed = hit.fraction <= 1
    slipped = ~crossed & (memory < 0) & (memory != NOWHERE)
    wall = jnp.where(slipped, remembered_wall(locator, memory), hit.wall)
    near = closest_point(walls, end, wall)
    long = dot(path, path)
    share = dot(near - start, path) / jnp.where(long > 0, long, jnp.ones_like(long))
    one = jnp.ones_like(share)
    fraction = jnp.where(
        slipped, jnp.clip(share, 0, 1), jnp.where(crossed, hit.fraction, one)
    )
    on_path = jnp.where(crossed[:, None], start + fraction[:, None] * path, end)
    stopped = crossed | slipped
    normal = inward_normals(walls, wall, start.dtype)
    return Crossing(
        stopped,
        select(slipped, near, on_path),
        select(stopped, normal, jnp.zeros_like(normal)),
        fraction,
        jnp.where(stopped, rows(walls.cells, wall), memory).astype(np.int32),
    )
