"""The history of an episode: a ring of records, one for every action.

A record is the selection in the configured format, then the operation, the step at
which it was taken, the pair it was taken on, and 1 for "valid".
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxarc import bits
from jaxarc.config.history import METADATA_FIELDS, get_action_record_fields
from jaxarc.ops.selection import Selection

POINT_FIELDS = get_action_record_fields("point") - METADATA_FIELDS
BOX_FIELDS = get_action_record_fields("bbox") - METADATA_FIELDS


def history_shape(config: Any, height: int, width: int) -> tuple[int, int]:
    """Records and fields of the history a configuration asks for; no records: off."""
    history = config.history
    if not history.enabled:
        return 0, METADATA_FIELDS
    records = min(history.max_history_length, config.environment.max_episode_steps)
    if not history.store_selection_data:
        return records, METADATA_FIELDS
    fields = get_action_record_fields(config.action.selection_format, height, width)
    return records, fields


def describe_selection(
    selection: Selection, fields: int, width: int, selection_format: str
) -> Float[Array, " fields"]:
    """A selection in as many numbers as a record has room for.

    A point is the first selected cell in reading order, a box the corners of the
    smallest one; both are -1 where nothing is selected. The format tells a
    point or a box from the mask of a grid of two or four cells.
    """
    whole = fields == selection.rows.shape[0] * width and selection_format == "mask"
    if whole or fields not in (POINT_FIELDS, BOX_FIELDS):
        cells = bits.unpack_rows(selection.rows, width)
        return cells.reshape(-1).astype(jnp.float32)
    if fields == POINT_FIELDS:
        numbers = [selection.top, _first_column(selection)]
    else:
        box = selection
        numbers = [box.top, box.left, box.bottom, box.right]
    return jnp.where(selection.empty, -1, jnp.stack(numbers)).astype(jnp.float32)


def _first_column(selection: Selection) -> Int[Array, ""]:
    """The leftmost selected column of the topmost selected row."""
    row = selection.rows.at[selection.top].get(mode="clip")
    dtype = row.dtype
    lowest = row & (bits.words(0, dtype) - row)
    return bits.count((lowest - bits.words(1, dtype))[None])


def make_record(
    selection: Float[Array, " selection"],
    operation: Int[Array, ""],
    timestamp: Int[Array, ""],
    pair: Int[Array, ""],
) -> Float[Array, " fields"]:
    """One record."""
    numbers = jnp.stack([operation, timestamp, pair, jnp.ones_like(pair)])
    return jnp.concatenate([selection, numbers.astype(jnp.float32)])


def append_record(
    records: Float[Array, "records fields"],
    length: Int[Array, ""],
    position: Int[Array, ""],
    record: Float[Array, " fields"],
) -> tuple[Float[Array, "records fields"], Int[Array, ""], Int[Array, ""]]:
    """Records, length and position after one more; the oldest gives way when full."""
    room = records.shape[0]
    if room == 0:
        return records, length, position
    records = records.at[position].set(record, mode="promise_in_bounds")
    return records, jnp.minimum(length + 1, room), (position + 1) % room


def in_order(
    records: Float[Array, "records fields"], length: int, position: int
) -> Float[Array, "length fields"]:
    """The records from the oldest to the newest (host only)."""
    start = position - length
    return jnp.roll(records, -start, axis=0)[:length]
