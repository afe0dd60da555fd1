"""Other forms of actions lead to the same steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import (
    clipping,
    reset,
    small_buffer,
    small_env,
    small_params,
    step,
)
from arc_play import make_config
from arc_states import assert_same, point
from jaxarc.actions import BboxAction
from jaxarc.envs.environment import Environment
from jaxarc.envs.spaces import Discrete
from jaxarc.wrappers import BboxActionWrapper, FlattenActionWrapper, PointActionWrapper
from jaxrig.checks import CheckError

FORMS = {
    "point": (PointActionWrapper, ("operation", "row", "col"), (42, 5, 5)),
    "bbox": (
        BboxActionWrapper,
        ("operation", "r1", "c1", "r2", "c2"),
        (42, 5, 5, 5, 5),
    ),
}


def numbers(*values):
    return [jnp.asarray(value, jnp.int32) for value in values]


@pytest.mark.parametrize("form", FORMS)
def test_the_space_has_a_number_for_each_component(form):
    wrapper, names, sizes = FORMS[form]
    space = wrapper(small_env()).action_space()
    assert space.spaces == tuple(zip(names, map(Discrete, sizes), strict=True))


def test_fewer_operations_are_a_smaller_space():
    env = PointActionWrapper(small_env(clipping(action={"max_operations": 35})))
    assert FlattenActionWrapper(env).action_space() == Discrete(875)


def test_components_are_a_structured_action():
    env = small_env()
    state, _ = reset(env, jax.random.key(0))
    chosen = dict(zip(("operation", "row", "col"), numbers(4, 1, 0), strict=True))
    found = step(PointActionWrapper(env), state, chosen)
    assert_same(found, step(env, state, point(4, 1, 0)))
    names = ("operation", "r1", "c1", "r2", "c2")
    corners = dict(zip(names, numbers(4, 1, 0, 0, 2), strict=True))
    found = step(BboxActionWrapper(env), state, corners)
    assert_same(found, step(env, state, BboxAction(*numbers(4, 1, 0, 0, 2))))


def test_structured_actions_are_taken_as_they_are():
    env = small_env()
    state, _ = reset(env, jax.random.key(0))
    found = step(PointActionWrapper(BboxActionWrapper(env)), state, point(4, 1, 0))
    assert_same(found, step(env, state, point(4, 1, 0)))


@pytest.mark.parametrize("form", FORMS)
def test_missing_components_are_named(form):
    env = FORMS[form][0](small_env())
    state, _ = reset(env, jax.random.key(0))
    with pytest.raises(ValueError, match=", ".join(FORMS[form][1])):
        env.step(state, {"operation": 1, "row": 2})


@pytest.mark.parametrize("form", FORMS)
def test_the_first_component_is_the_most_significant(form):
    wrapper, names, sizes = FORMS[form]
    env = FlattenActionWrapper(wrapper(small_env()))
    count = int(np.prod(sizes))
    assert env.action_space() == Discrete(count)
    chosen = np.random.default_rng(0).integers(0, count, 200).astype(np.int32)
    found = env.unflatten(jnp.asarray(chosen))
    for name, wanted in zip(names, np.unravel_index(chosen, sizes), strict=True):
        np.testing.assert_array_equal(found[name], wanted)


def test_spaces_and_numbers_are_those_of_the_parameters_of_the_call():
    fewer = clipping(action={"max_operations": 35}).with_settings(max_grid_width=7)
    other = small_params(fewer, small_buffer(shape=(5, 7)))
    points = PointActionWrapper(small_env())
    assert FlattenActionWrapper(points).action_space(other) == Discrete(35 * 5 * 7)
    found = FlattenActionWrapper(points).unflatten(8 * 35 + 3 * 7 + 6, other)
    assert [int(found[name]) for name in ("operation", "row", "col")] == [8, 3, 6]
    for space in ("observation_space", "action_space", "state_space"):
        alone = getattr(Environment(params=other), space)()
        assert getattr(points.unwrapped, space)(other) == alone


def test_a_flat_number_is_operation_row_and_column():
    env = small_env()
    flat = FlattenActionWrapper(PointActionWrapper(env))
    state, _ = reset(env, jax.random.key(0))
    found = step(flat, state, jnp.int32(7 * 25 + 3 * 5 + 1))
    assert_same(found, step(env, state, point(7, 3, 1)))
    assert_same(step(flat, state, jnp.uint8(201)), step(env, state, point(8, 0, 1)))


def test_numbers_out_of_range_are_refused_or_clipped():
    strict = FlattenActionWrapper(PointActionWrapper(small_env(make_config((5, 5)))))
    state, _ = reset(strict, jax.random.key(0))
    for number in (42 * 25, -1):
        with pytest.raises(CheckError, match="operation"):
            strict.step(state, jnp.int32(number))
    env = small_env()
    flat = FlattenActionWrapper(PointActionWrapper(env))
    found = step(flat, state, jnp.int32(50 * 25 + 7))
    assert_same(found, step(env, state, point(41, 1, 2)))


def test_fractions_are_no_numbers_of_actions():
    flat = FlattenActionWrapper(PointActionWrapper(small_env()))
    with pytest.raises(TypeError, match=r"the action is .*a whole number"):
        flat.unflatten(jnp.float32(2.0))


@pytest.mark.parametrize("large", [2**32 + 1, np.int64(2**32 + 1), np.uint64(2**63)])
def test_numbers_beyond_int32_are_not_cut_to_others(large):
    env = small_env(make_config((5, 5)))
    points = PointActionWrapper(env)
    state, _ = reset(env, jax.random.key(0))
    cells = {"selection": np.ones((5, 5), bool)}
    for step_with in (
        lambda: env.step(state, {"operation": large} | cells),
        lambda: points.step(state, {"operation": large, "row": 0, "col": 0}),
        lambda: FlattenActionWrapper(points).step(state, large),
    ):
        with pytest.raises(CheckError, match=r"operation is \d{4,}"):
            step_with()


def test_masks_and_flat_numbers_cannot_be_flattened():
    with pytest.raises(ValueError, match="PointActionWrapper"):
        FlattenActionWrapper(small_env())
    with pytest.raises(ValueError, match="single numbers"):
        FlattenActionWrapper(FlattenActionWrapper(PointActionWrapper(small_env())))
