"""Kinds of steps, and what follows from them."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.envs.environment import StepType, TimeStep, ended_type

# Kind: first, terminated, truncated, last.
TRUTHS = {
    StepType.FIRST: (True, False, False, False),
    StepType.MID: (False, False, False, False),
    StepType.TERMINATED: (False, True, False, True),
    StepType.TRUNCATED: (False, False, True, True),
}


def time_step(kind):
    zero = jnp.zeros(np.shape(kind))
    return TimeStep(jnp.asarray(kind, jnp.int32), zero, zero, zero, {})


@pytest.mark.parametrize("kind", StepType)
def test_a_kind_answers_every_question(kind):
    step = time_step(kind)
    found = (step.first(), step.terminated(), step.truncated(), step.last())
    assert tuple(map(bool, found)) == TRUTHS[kind]
    assert bool(step.done()) == bool(step.last())


def test_a_batch_is_asked_row_by_row():
    step = time_step([int(kind) for kind in StepType])
    np.testing.assert_array_equal(step.last(), [False, False, True, True])
    np.testing.assert_array_equal(step.first(), [True, False, False, False])


@pytest.mark.parametrize(
    ("terminated", "truncated", "kind"),
    [
        (False, False, StepType.MID),
        (True, False, StepType.TERMINATED),
        (False, True, StepType.TRUNCATED),
        (True, True, StepType.TERMINATED),
    ],
)
def test_the_rules_come_before_the_limit(terminated, truncated, kind):
    found = ended_type(jnp.asarray(terminated), jnp.asarray(truncated))
    assert int(found) == kind
    assert found.dtype == jnp.int32
    assert not found.aval.weak_type
