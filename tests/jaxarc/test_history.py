"""Records of actions: their size, their content, their order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_episode_reference import describe
from arc_play import make_config
from jaxarc import bits
from jaxarc.episode import (
    append_record,
    describe_selection,
    history_shape,
    in_order,
    make_record,
)
from jaxarc.ops.canvas import select_rows


@pytest.mark.parametrize(
    ("form", "shape", "fields"),
    [
        ("point", (30, 30), 6),
        ("bbox", (30, 30), 8),
        ("mask", (30, 30), 904),
        ("mask", (4, 5), 24),
        ("point", (4, 5), 6),
    ],
)
def test_fields_of_a_record(form, shape, fields):
    config = make_config(shape, steps=1000, action={"selection_format": form})
    assert history_shape(config, *shape) == (1000, fields)


def test_the_shorter_of_both_limits_rules():
    of = lambda steps, most: history_shape(
        make_config(steps=steps, history={"max_history_length": most}), 5, 5
    )[0]
    assert of(50, 1000) == 50
    assert of(50, 7) == 7


def test_a_history_without_selections_or_none_at_all():
    lean = make_config(history={"store_selection_data": False})
    assert history_shape(lean, 5, 5) == (100, 4)
    assert history_shape(make_config(history={"enabled": False}), 5, 5)[0] == 0


@pytest.mark.parametrize("form", ["point", "bbox", "mask"])
@pytest.mark.parametrize("shape", [(1, 2), (2, 2), (4, 1), (6, 11), (30, 30)])
def test_descriptions_equal_the_reference(form, shape):
    rng = np.random.default_rng(sum(shape))
    fields = len(describe(form, np.zeros(shape, bool)))
    told = jax.jit(
        lambda rows: describe_selection(select_rows(rows), fields, shape[1], form)
    )
    for density in (0.0, 0.02, 0.3, 1.0):
        mask = rng.random(shape) < density
        got = told(jnp.asarray(bits.pack_rows(mask)))
        assert got.dtype == jnp.float32
        assert got.tolist() == describe(form, mask)


def test_a_record_ends_with_operation_step_pair_and_validity():
    numbers = map(jnp.int32, (34, 12, 2))
    record = make_record(jnp.float32([3, 4]), *numbers)
    assert record.tolist() == [3, 4, 34, 12, 2, 1]
    assert record.dtype == jnp.float32


def test_the_oldest_record_gives_way():
    records, length, position = jnp.zeros((3, 2)), jnp.int32(0), jnp.int32(0)
    append = jax.jit(append_record)
    for number in range(8):
        record = jnp.full(2, float(number))
        records, length, position = append(records, length, position, record)
        kept = in_order(records, int(length), int(position))[:, 0].tolist()
        assert kept == list(range(max(0, number - 2), number + 1))
        assert position == (number + 1) % 3
    assert length == 3


def test_no_room_keeps_nothing():
    nothing = (jnp.zeros((0, 4)), jnp.int32(0), jnp.int32(0))
    records, length, position = append_record(*nothing, jnp.zeros(4))
    assert records.shape == (0, 4)
    assert (int(length), int(position)) == (0, 0)
