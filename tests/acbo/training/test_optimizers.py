"""Oracle: the schedule by hand, and optax."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.training.objective import learning_rate_of
from acbo.training.optimizers import create_optimizer, create_schedule, warmup_of


def test_the_schedule_rises_and_falls():
    schedule = create_schedule(0.1, 100)
    found = [np.asarray(schedule(step)) for step in (0, 5, 10, 55, 100, 500)]
    middle = 0.001 + 0.5 * (0.1 - 0.001)
    expected = [0.001, middle, 0.1, middle, 0.001, 0.001]
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert warmup_of(50) == 5
    assert warmup_of(10**6) == 1000
    with pytest.raises(ValueError, match="warmup_steps=9 must be"):
        create_schedule(0.1, 5, 9)


def test_steps_follow_the_schedule_and_decay():
    optimizer = create_optimizer(0.1, 100, weight_decay=0.5)
    params = {"a": jnp.asarray([2.0])}
    with jax.numpy_dtype_promotion("standard"):
        state = optimizer.init(params)
        change, state = optimizer.update({"a": jnp.zeros(1)}, state, params)
    rate = float(learning_rate_of(state, 9.0))
    assert rate == pytest.approx(0.001, rel=1e-4)
    np.testing.assert_allclose(
        jax.tree.leaves(change)[0], [-rate * 0.5 * 2.0], rtol=1e-5
    )
