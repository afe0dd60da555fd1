"""What was seen so far: rows in order of time, in room of a fixed size."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class History(eqx.Module):
    """The first `count` rows are filled; observational rows have nothing intervened."""

    values: Float[Array, "*batch rows d"]
    intervened: Bool[Array, "*batch rows d"]
    count: Int[Array, "*batch"]

    @property
    def row_mask(self) -> Bool[Array, "*batch rows"]:
        """Return which rows are filled."""
        places = jnp.arange(self.values.shape[-2])
        places = jnp.expand_dims(places, range(self.count.ndim))
        return places < jnp.expand_dims(self.count, -1)

    @property
    def rows(self) -> tuple[Array, Array, Array]:
        """Return values, what was set, and which rows are filled."""
        return self.values, self.intervened, self.row_mask


def start_history(
    values: Float[Array, "rows d"], intervened: Bool[Array, "rows d"], capacity: int
) -> History:
    """Return a history of these rows with room for `capacity` rows in all."""
    rows, d = values.shape
    if rows > capacity:
        raise ValueError(f"{rows} rows do not fit into a capacity of {capacity}")
    room = jnp.zeros((capacity, d), values.dtype).at[:rows].set(values)
    flags = jnp.zeros((capacity, d), bool).at[:rows].set(intervened)
    return History(room, flags, jnp.asarray(rows))


def append(
    history: History, row: Float[Array, " d"], intervened: Bool[Array, " d"]
) -> History:
    """Return one more row at the end; a full history drops its oldest row."""
    capacity = history.values.shape[0]
    full = history.count == capacity
    place = jnp.minimum(history.count, capacity - 1)

    def put(old: Array, new: Array) -> Array:
        # Rolled, not a ring: readers expect the rows in order of time.
        moved = jnp.where(full, jnp.roll(old, -1, axis=0), old)
        return jax.lax.dynamic_update_index_in_dim(moved, new, place, 0)

    return History(
        put(history.values, row),
        put(history.intervened, intervened),
        jnp.minimum(history.count + 1, capacity),
    )
