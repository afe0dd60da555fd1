import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry2x32_p

from jaxrig.lane_arrays import less_in_order, rounded, threefry
from jaxrig.lanes import NotInLanes, in_lanes

COUNT = 70  # more than one block, and not a multiple of it


def walk(shared, items):
    """A loop with what an item may do: look up, compare, choose, keep flags, stack."""
    table, steps = shared["table"], shared["steps"]

    def step(state, now):
        place, alive, hops = state
        at = jnp.clip(place.astype(np.int32), 0, table.shape[0] - 1)
        pull = table.at[at[:, 0], :].get(mode="promise_in_bounds")
        ways = jnp.stack([pull[:, 1], -pull[:, 0]], 1)
        moved = jax.lax.cond(now > 0, lambda x: x + now * ways, lambda x: x, place)
        alive = alive & jnp.all(jnp.isfinite(moved), 1) & (moved[:, 0] < 6)
        place = jnp.where(alive[:, None], moved, place)
        hops = hops + jnp.where(alive, np.int8(1), np.int8(0))
        weights = jnp.array([0.5, 0.25, 0.0])

        def stage(total, given):
            number, weight = given
            return total + weight * jnp.sin(place + weights[number]), None

        nothing = jnp.zeros_like(place)
        drift = jax.lax.scan(stage, nothing, (jnp.arange(3), weights))[0]
        return (place + 0.01 * drift, alive, hops), (place, jnp.max(place, 1))

    start = items["place"], items["alive"], jnp.zeros(items["alive"].shape, np.int8)
    end, (places, largest) = jax.lax.scan(step, start, steps)
    return {"end": end, "places": places, "largest": largest}


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    shared = {
        "table": jnp.asarray(rng.normal(size=(9, 2)), np.float32),
        "steps": jnp.asarray([0.5, 0.0, 1.0, -1.0, 2.0], np.float32),
    }
    place = rng.uniform(0, 8, (COUNT, 2)).astype(np.float32)
    place[3] = np.nan
    items = {"place": jnp.asarray(place), "alive": jnp.asarray(rng.random(COUNT) > 0.2)}
    return shared, items


def test_a_kernel_gives_the_bits_of_the_loop(problem):
    got = in_lanes(walk, *problem, interpret=True)
    jax.tree.map(np.testing.assert_array_equal, got, jax.jit(walk)(*problem))


def test_a_kernel_lowers_for_a_gpu_that_is_not_here(problem):
    traced = jax.jit(lambda shared, items: in_lanes(walk, shared, items)).trace(
        *problem
    )
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("custom_call") == 1
    assert "triton" in text


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda _, x: x - x.sum(), "a reduction over the items"),
        (lambda _, x: jnp.cumsum(x), "cumsum"),
        (lambda _, x: x[::-1], "rev"),
        (lambda _, x: jnp.concatenate([x[:1], x[:-1]]), "a slice of the items"),
        (lambda _, x: jnp.broadcast_to(x, (3, x.size)), "the items other than first"),
        (lambda table, x: (table * 2)[x.astype(np.int32)], "an array of shape"),
        (lambda table, _: table, "without the axis of the items"),
    ],
)
def test_what_items_cannot_do_alone_is_refused(function, said):
    table = jnp.arange(99.0)
    with pytest.raises(NotInLanes, match=said):
        in_lanes(function, table, jnp.arange(COUNT, dtype=np.float32), interpret=True)


def test_a_constant_as_long_as_the_mark_of_the_items_is_no_axis_of_them():
    table = jnp.ones(8_191)
    with pytest.raises(NotInLanes, match="8191"):
        in_lanes(lambda _, x: x + table[:1], jnp.zeros(1), jnp.ones(COUNT))


def test_random_words_are_those_of_jax():
    words = np.random.default_rng(1).integers(0, 2**32, (4, 100), dtype=np.uint32)
    want = threefry2x32_p.bind(*map(jnp.asarray, words))
    jax.tree.map(np.testing.assert_array_equal, threefry(*words), tuple(want))


def test_numbers_round_and_order_as_in_xla():
    bits = np.random.default_rng(2).integers(0, 2**32, 1_000, dtype=np.uint32)
    x = jnp.asarray(np.append(bits.view(np.float32), np.float32([0.0, -0.0, np.inf])))
    got = jax.jit(rounded, static_argnums=(1, 2))(x, 8, 10)
    np.testing.assert_array_equal(got, jax.lax.reduce_precision(x, 8, 10))
    y = x[::-1]
    np.testing.assert_array_equal(less_in_order(x, y), jax.lax.lt_to_p.bind(x, y))
