"""Grids and flows on the sphere that tests of several chapters share."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxtrace.fields import as_field
from jaxtrace.fields.quads import unit_vectors
from jaxtrace.tracking.simulation import simulate


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def _follow(field, seeds, times, substeps, integrator):
    options = {"substeps": substeps, "integrator": integrator}
    found = simulate(field, seeds, np.array(times), **options)
    return found.positions, found.final.status


def follow(field, seeds, times, substeps, integrator="rk2"):
    """Return positions at times and what became of particles, by a single program.

    A tracker has several more, for what it asks of seeds before.
    """
    seeds = jnp.asarray(seeds)
    found = _follow(as_field(field), seeds, tuple(times), substeps, integrator)
    return np.asarray(found[0]), np.asarray(found[1])


def degrees_of(points):
    """Return longitudes and latitudes of points of the unit sphere."""
    x, y, z = np.moveaxis(points, -1, 0)
    return np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, np.hypot(x, y)))


def tilted(rows, tilt=50.0, closed=True):
    """Return a deformed global grid whose poles are off the Earth's."""
    lon = np.linspace(-180, 180, 2 * rows + 1)[: None if closed else -1]
    lon, lat = np.meshgrid(lon, np.linspace(-88, 88, rows + 1))
    lon = lon + 3 * np.sin(np.radians(4 * lat))
    a = np.radians(tilt)
    turn = np.array([[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]])
    return degrees_of(unit_vectors(lon, lat) @ turn.T)


def solid(lon, lat, speed=1.0, tilt=1.0):
    """Return rotation about an axis tilted by so many radians, east and north."""
    x, y = np.radians(lon), np.radians(lat)
    east = np.cos(y) * np.cos(tilt) + np.sin(y) * np.cos(x) * np.sin(tilt)
    return speed * east, -speed * np.sin(x) * np.sin(tilt)
