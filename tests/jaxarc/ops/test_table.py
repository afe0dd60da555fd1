import jax.numpy as jnp
import pytest

from jaxarc.ops.effect import Effect
from jaxarc.ops.names import FIRST_CONTROL, ARCLEOperationType
from jaxarc.ops.table import EFFECTS, look_up

IDLE = {-1, ARCLEOperationType.SUBMIT, *range(FIRST_CONTROL, 42)}


@pytest.mark.parametrize("operation", [-1, *range(42)])
def test_every_operation_but_submit_and_control_has_an_effect(operation):
    assert (operation in EFFECTS) == (operation not in IDLE)
    found = look_up(jnp.asarray(operation))
    wanted = EFFECTS.get(operation, Effect())
    assert int(found.paint) == wanted.paint
    assert int(found.landing) == wanted.landing
    assert int(found.color) == wanted.color
