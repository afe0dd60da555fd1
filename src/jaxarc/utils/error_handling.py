"""Checks of actions and states that work in compiled functions, and their error mode.

The mode is that of `jaxrig.checks`, read while a function is traced: changing it makes
compiled functions trace again. In "nan" mode a step with a wrong action goes on with
the action clipped and gives a reward of NaN. Equinox reads EQX_ON_ERROR once, when it
is imported; `JAXErrorHandler.setup_error_environment` applies a later value.
"""

import os
import warnings
from typing import Any, TypeVar, get_args

import jax
import jax.numpy as jnp

from jaxarc.config import JaxArcConfig
from jaxarc.envs import checks
from jaxarc.ops.operations import NUM_OPERATIONS
from jaxarc.state import ArcEnvState
from jaxrig.checks import CheckError, ErrorMode, check
from jaxrig.checks import get_error_mode as current_mode
from jaxrig.checks import set_error_mode as change_mode

MODE_VARIABLE = "EQX_ON_ERROR"
FRAMES_VARIABLE = "EQX_ON_ERROR_BREAKPOINT_FRAMES"

T = TypeVar("T")


class JAXErrorHandler:
    """Checks of actions and states; each gives back what it was given."""

    @staticmethod
    def validate_action(action: T, config: JaxArcConfig) -> T:
        """Return the action if operation and coordinates are in range."""
        checks.check_action_kind(action)
        checks.check_mask_shape(action, config)
        return _checked(action, config, "")

    @staticmethod
    def validate_batch_actions(actions: T, config: JaxArcConfig, batch_size: int) -> T:
        """Return the actions if there are `batch_size` and each is in range."""
        checks.check_action_kind(actions)
        checks.check_mask_shape(actions, config)
        shape = jnp.shape(jax.tree.leaves(actions)[0])
        if shape != (batch_size,):
            raise ValueError(
                f"the operations have shape {shape}, the batch {batch_size} rows: pass "
                "one action per row"
            )
        return _checked(actions, config, f"in a batch of {batch_size}: ")

    @staticmethod
    def validate_state_consistency(state: ArcEnvState) -> ArcEnvState:
        """Return the state if its counters, mode and similarity make sense.

        Grids and masks agree by construction: they are views of one packed array.
        """
        fine = checks.state_in_range(state.episode)
        return _checked_state(state, fine, checks.STATE_RULE)

    @staticmethod
    def validate_grid_operation(
        state: ArcEnvState, operation: Any, selection: Any
    ) -> ArcEnvState:
        """Return the state if operation and selection can be applied to it.

        An empty selection is fine: most operations then do nothing.
        """
        if selection.shape != state.working_grid.shape:
            raise ValueError(
                f"the selection has shape {selection.shape}, the grid "
                f"{state.working_grid.shape}: they must be equal"
            )
        number = jnp.asarray(operation)
        fine = (number >= 0) & (number < NUM_OPERATIONS)
        rule = f"operation must be 0 to {NUM_OPERATIONS - 1}"
        known = "" if checks.is_traced(operation) else f", not {operation}"
        return _checked_state(state, fine, rule + known)

    @staticmethod
    def get_error_mode() -> str:
        """Return the current mode; a wrong EQX_ON_ERROR warns and means "raise"."""
        named = os.environ.get(MODE_VARIABLE)
        if named is not None and _mode_of(named) is None:
            return "raise"
        return current_mode()

    @staticmethod
    def set_error_mode(mode: str) -> None:
        """Check in this mode from now on: raise, nan, breakpoint or off."""
        change_mode(mode)
        os.environ[MODE_VARIABLE] = mode

    @staticmethod
    def setup_error_environment() -> None:
        """Apply EQX_ON_ERROR as it stands in `os.environ`; unset means "raise"."""
        named = os.environ.setdefault(MODE_VARIABLE, "raise")
        os.environ.setdefault(FRAMES_VARIABLE, "3")
        change_mode(_mode_of(named) or "raise")

    @staticmethod
    def configure_debugging(
        mode: str = "raise", breakpoint_frames: int = 3, enable_nan_checks: bool = True
    ) -> None:
        """Set the error mode, the frames a breakpoint shows and JAX's search for NaN.

        In "nan" mode NaN is an answer, so JAX does not search for it. Equinox reads
        the frames when it is imported: they hold for processes started from here.
        """
        if breakpoint_frames < 1:
            raise ValueError(f"breakpoint_frames={breakpoint_frames}: at least 1")
        JAXErrorHandler.set_error_mode(mode)
        os.environ[FRAMES_VARIABLE] = str(breakpoint_frames)
        jax.config.update("jax_debug_nans", enable_nan_checks and mode != "nan")


def _checked(action: T, config: JaxArcConfig, where: str) -> T:
    """Check; on the host the message names value and rows, else the rule."""
    numbers = checks.ranges(action, config)
    if current_mode() == "raise" and not checks.is_traced([n for _, n, _ in numbers]):
        problem = checks.out_of_range(numbers)
        if problem is not None:
            raise CheckError(where + problem)
        return action
    return _rowwise(
        action, checks.action_in_range(action, config), where + checks.ACTION_RULE
    )


def _checked_state(state: ArcEnvState, fine: Any, rule: str) -> ArcEnvState:
    if current_mode() == "raise" and not checks.is_traced(fine):
        if not fine.all():
            raise CheckError(rule)
        return state
    return ArcEnvState(state.source, _rowwise(state.episode, fine, rule))


def _rowwise(tree: T, fine: Any, message: str) -> T:
    """Check row by row, so that in "nan" mode only the wrong rows become NaN."""
    one = lambda tree, fine: check(tree, fine, message)
    return (jax.vmap(one) if fine.ndim else one)(tree, fine)


def _mode_of(named: str) -> str | None:
    """Return the mode that the variable names; None, and a warning, for others."""
    if named in get_args(ErrorMode):
        return named
    warnings.warn(
        f"{MODE_VARIABLE} is {named!r}, which is not one of "
        f"{', '.join(get_args(ErrorMode))}: errors raise",
        stacklevel=3,
    )
    return None
