"""The shore: what becomes of particles that a step would take onto land."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxtrace.fields.base import AbstractField
from jaxtrace.sphere import TURN
from jaxtrace.tracking.particles import Particles, move, retire
from jaxtrace.types import ParticleStatus

CHECKED = 0.5  # of a step: land wider than half of it is noticed
HALVINGS = 16  # of a step, to find where a mirror stands

Positions = Float[Array, "n 3"]


def reach_shore(
    field: AbstractField, particles: Particles, before: Positions, end: Array
) -> Particles:
    """Return the particles after the rule for land: who was beached stays there."""
    shore = field.shore
    if shore == "free" or field.on_land(particles.positions) is None:
        return particles
    # Settled: what follows would be fused into the step, and change its rounding.
    settled = jax.lax.optimization_barrier(particles.positions)
    particles = replace(particles, positions=settled)
    after, land = settled, _is_land(field, settled, particles.cell_hint)
    way = after - before
    if field.sphere is not None:
        way = way.at[:, 0].set(way[:, 0] - TURN * jnp.round(way[:, 0] / TURN))
    where = after
    # On a mesh each check would be a search: there a step is as long as a cell at most.
    if not jax.tree.leaves(particles.cell_hint):
        middle = before + CHECKED * way
        dry = _is_land(field, middle)
        land, where = land | dry, jnp.where(dry[:, None], middle, where)
    if shore == "absorb":
        return retire(particles, land, ParticleStatus.BEACHED, where, end)
    if shore == "beach":
        return _beach(particles, land, before, where, end)
    if shore == "slide":
        before = _slide(field, before, way)
    elif shore == "reflect":
        before = _reflect(field, before, way)
    return move(particles, jnp.where(land[:, None], before, after))


def _is_land(
    field: AbstractField, positions: Positions, cell_hint: Any = None
) -> Bool[Array, " n"]:
    found = field.on_land(positions, cell_hint)
    assert found is not None  # asked only of fields with land
    return found


def _beach(
    particles: Particles,
    land: Bool[Array, " n"],
    before: Positions,
    where: Positions,
    end: Array,
) -> Particles:
    code = jnp.asarray(ParticleStatus.BEACHED, np.int8)
    there = particles.status == code
    fresh = land & ~there & particles.alive
    stays = jnp.where(there[:, None], before, particles.positions)
    beached = replace(
        particles,
        status=jnp.where(fresh, code, particles.status),
        exit_time=jnp.where(fresh, end, particles.exit_time),
    )
    return move(beached, jnp.where(fresh[:, None], where, stays))


def _slide(field: AbstractField, before: Positions, way: Positions) -> Positions:
    """Return where particles get along the shore: over the bottom, or by one axis."""
    if field.sphere is not None:
        meters = jnp.abs(way) * field.sphere.scale(before)
    else:
        meters = jnp.abs(way)
    wider = meters[:, 0] >= meters[:, 1]
    east, north = (_only(before, way, axes) for axes in ((0,), (1,)))
    pick = wider[:, None]
    best = before
    tries = (
        jnp.where(pick, north, east),
        jnp.where(pick, east, north),
        _only(before, way, (0, 1)),
    )
    for place in tries:
        best = jnp.where(_is_land(field, place)[:, None], best, place)
    return best


def _only(before: Positions, way: Positions, axes: tuple[int, ...]) -> Positions:
    """Return where a step along some of the axes ends."""
    kept = np.isin(np.arange(3), axes)
    return jnp.where(kept[None], before + way, before)


def _reflect(field: AbstractField, before: Positions, way: Positions) -> Positions:
    """Return steps mirrored at the shore, axis by axis; none where that is land too."""
    there = before
    for axis in range(3):
        met = _is_land(field, _only(before, way, (axis,)))

        def halve(_: Any, ends: tuple[Array, Array], axis: int = axis):
            near, far = ends
            middle = (near + far) / 2
            dry = _is_land(field, _only(before, middle[:, None] * way, (axis,)))
            return jnp.where(dry, near, middle), jnp.where(dry, middle, far)

        ends = jnp.zeros_like(way[:, 0]), jnp.ones_like(way[:, 0])
        near, _ = jax.lax.fori_loop(0, HALVINGS, halve, ends)
        share = jnp.where(met, 2 * near - 1, 1)
        there = there.at[:, axis].add(share * way[:, axis])
    return jnp.where(_is_land(field, there)[:, None], before, there)
