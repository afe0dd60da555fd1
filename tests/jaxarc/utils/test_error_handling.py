"""Checks of actions and states on the host and in compiled code, in every mode."""

import os

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_states import SIDE, assert_same, small_config, small_state, small_task
from jaxarc.envs.functional import batch_reset
from jaxarc.envs.structured_actions import BboxAction, PointAction, create_mask_action
from jaxarc.utils.error_handling import FRAMES_VARIABLE, MODE_VARIABLE, JAXErrorHandler
from jaxrig.checks import error_mode

CONFIG = small_config()
whole = lambda *numbers: [jnp.asarray(n, jnp.int32) for n in numbers]


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch):
    """The error mode and the variables of before, whatever a test sets."""
    for name in (MODE_VARIABLE, FRAMES_VARIABLE):
        monkeypatch.setenv(name, "")  # so that it is put back after the test
        monkeypatch.delenv(name)
    with error_mode("raise"):
        yield
    jax.config.update("jax_debug_nans", False)


GOOD = [
    PointAction(*whole(0, 0, 0)),
    PointAction(*whole(41, SIDE - 1, SIDE - 1)),
    BboxAction(*whole(3, 5, 0, 0, 5)),
    create_mask_action(3, np.zeros((SIDE, SIDE))),
]
BAD = [
    PointAction(*whole(42, 0, 0)),
    PointAction(*whole(-1, 0, 0)),
    PointAction(*whole(0, SIDE, 0)),
    PointAction(*whole(0, 0, -1)),
    BboxAction(*whole(0, 0, 0, SIDE, 0)),
    BboxAction(*whole(0, 0, -2, 0, 0)),
    create_mask_action(99, np.zeros((SIDE, SIDE))),
]
compiled = eqx.filter_jit(JAXErrorHandler.validate_action)
checked_state = eqx.filter_jit(JAXErrorHandler.validate_state_consistency)


@pytest.mark.parametrize("action", GOOD)
@pytest.mark.parametrize("validate", [JAXErrorHandler.validate_action, compiled])
def test_good_actions_come_back_unchanged(action, validate):
    assert_same(validate(action, CONFIG), action)


@pytest.mark.parametrize("action", BAD)
@pytest.mark.parametrize("validate", [JAXErrorHandler.validate_action, compiled])
def test_bad_actions_raise(action, validate):
    with pytest.raises(RuntimeError, match="0 to"):
        jax.block_until_ready(validate(action, CONFIG))


def test_what_is_no_action_is_refused_while_tracing():
    with pytest.raises(TypeError, match="dictionary actions are not supported"):
        JAXErrorHandler.validate_action({"operation": 0}, CONFIG)
    wrong = create_mask_action(0, np.zeros((3, 3)))
    with pytest.raises(ValueError, match="max_grid_height"):
        compiled(wrong, CONFIG)


def test_batches_name_the_offending_rows():
    rows = jnp.array([0, 9, 2, 7], jnp.int32)
    actions = PointAction(jnp.zeros(4, jnp.int32), rows, jnp.zeros(4, jnp.int32))
    with pytest.raises(RuntimeError, match=r"batch of 4: .*9, 7 in rows 1, 3"):
        JAXErrorHandler.validate_batch_actions(actions, CONFIG, 4)
    with pytest.raises(ValueError, match="the batch 5 rows"):
        JAXErrorHandler.validate_batch_actions(actions, CONFIG, 5)
    fine = jax.tree.map(jnp.zeros_like, actions)
    validate = eqx.filter_jit(JAXErrorHandler.validate_batch_actions)
    assert_same(validate(fine, CONFIG, 4), fine)
    with error_mode("nan"):
        spoilt = validate(actions, CONFIG, 4)
    assert (np.asarray(spoilt.operation) != 0).tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    "change", [{"step_count": -1}, {"similarity_score": 1.5}, {"episode_mode": 2}]
)
def test_states_that_make_no_sense_raise(change):
    wrong = small_state().replace(**change)
    for validate in (JAXErrorHandler.validate_state_consistency, checked_state):
        with pytest.raises(RuntimeError, match="state is inconsistent"):
            jax.block_until_ready(validate(wrong))


def test_sound_states_come_back():
    state = small_state()
    assert_same(JAXErrorHandler.validate_state_consistency(state), state)
    keys = jax.random.split(jax.random.key(0), 2)
    states, _ = batch_reset(keys, CONFIG, small_task())
    assert_same(checked_state(states), states)


def test_grid_operations():
    state = small_state()
    nothing = jnp.zeros((SIDE, SIDE), bool)
    validate = JAXErrorHandler.validate_grid_operation
    assert_same(validate(state, 0, nothing), state)
    with pytest.raises(RuntimeError, match="operation must be 0 to 41"):
        validate(state, 42, nothing)
    with pytest.raises(ValueError, match="they must be equal"):
        validate(state, 0, nothing[1:])


def test_the_mode_is_that_of_the_core(monkeypatch):
    assert JAXErrorHandler.get_error_mode() == "raise"
    JAXErrorHandler.set_error_mode("nan")
    assert JAXErrorHandler.get_error_mode() == os.environ[MODE_VARIABLE] == "nan"
    with pytest.raises(ValueError, match="'loud' is not one of"):
        JAXErrorHandler.set_error_mode("loud")
    monkeypatch.setenv(MODE_VARIABLE, "loud")
    with pytest.warns(UserWarning, match="EQX_ON_ERROR is 'loud'"):
        assert JAXErrorHandler.get_error_mode() == "raise"


def test_the_variable_is_applied_when_asked(monkeypatch):
    monkeypatch.setenv(MODE_VARIABLE, "nan")
    assert JAXErrorHandler.get_error_mode() == "raise"
    JAXErrorHandler.setup_error_environment()
    assert JAXErrorHandler.get_error_mode() == "nan"
    assert os.environ[FRAMES_VARIABLE] == "3"
    monkeypatch.setenv(MODE_VARIABLE, "loud")
    with pytest.warns(UserWarning, match="errors raise"):
        JAXErrorHandler.setup_error_environment()
    monkeypatch.delenv(MODE_VARIABLE)
    JAXErrorHandler.setup_error_environment()
    assert os.environ[MODE_VARIABLE] == JAXErrorHandler.get_error_mode() == "raise"


@pytest.mark.parametrize(
    ("mode", "search", "found"),
    [("raise", True, True), ("raise", False, False), ("nan", True, False)],
)
def test_debugging(mode, search, found):
    JAXErrorHandler.configure_debugging(mode, 5, search)
    assert JAXErrorHandler.get_error_mode() == mode
    assert os.environ[FRAMES_VARIABLE] == "5"
    assert jax.config.values["jax_debug_nans"] == found
    with pytest.raises(ValueError, match="at least 1"):
        JAXErrorHandler.configure_debugging(breakpoint_frames=0)
