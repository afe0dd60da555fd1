"""Quick calls: one program for each way to call."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.envs import direct_calls
from jaxrig import RetraceError


@pytest.fixture
def doubled():
    """A fresh function: twice its parts, and how often it was traced."""
    traced = []

    def double(value, other, rules):
        traced.append(rules)
        if rules == "refused":
            raise ValueError("refused for its own reasons")
        return 2 * value

    return direct_calls.DirectCall(double, one_by_one=True), traced


def test_direct_calls_have_a_program_of_their_own(doubled):
    call, traced = doubled
    for _ in range(3):
        assert call(jnp.ones(2), None, rules="x").tolist() == [2.0, 2.0]
    assert len(traced) == 1
    assert call.direct._cache_size() == int(direct_calls.knows_one_by_one())


def test_arrays_of_ever_other_types_are_refused(doubled):
    call, traced = doubled
    kinds = [np.int8, np.int16, np.int32, np.uint8, np.uint16]
    for kind in kinds[:-1] * 2:
        call(np.ones(2, kind), None, rules="x")
    call(np.ones(3, kinds[-1]), None, rules="x")  # another shape has its own budget
    assert len(traced) == direct_calls.MAX_TRACES + 1
    with pytest.raises(RetraceError, match=r"compile it again for .*uint16"):
        call(np.ones(2, kinds[-1]), None, rules="x")


def test_inside_other_functions_calls_are_ordinary(doubled):
    call, _ = doubled
    twice = lambda x: call(x, None, rules="x")
    assert jax.jit(twice)(jnp.ones(2))[0] == 2.0
    assert jax.vmap(twice)(jnp.ones(2))[1] == 2.0
    assert call.direct._cache_size() == 0
    known = jnp.ones(2)
    # Nothing in this call is traced, yet it is part of a larger program.
    assert jax.jit(lambda x: x + twice(known))(jnp.ones(2))[0] == 3.0


def test_host_arrays_are_taken(doubled):
    assert doubled[0](np.ones(2, np.float32), None, rules="x")[0] == 2.0


def test_errors_of_the_function_are_its_own(doubled):
    with pytest.raises(ValueError, match="its own reasons"):
        doubled[0](jnp.ones(2), None, rules="refused")


def test_an_option_that_xla_does_not_know_is_not_used(doubled, monkeypatch):
    monkeypatch.setitem(direct_calls.ONE_BY_ONE, "xla_cpu_no_such_option", "1")
    direct_calls.knows_one_by_one.cache_clear()
    try:
        assert not direct_calls.knows_one_by_one()
        assert doubled[0](jnp.ones(2), None, rules="x")[0] == 2.0
    finally:
        direct_calls.knows_one_by_one.cache_clear()


def test_other_devices_are_left_to_xla(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    direct_calls.knows_one_by_one.cache_clear()
    try:
        assert not direct_calls.knows_one_by_one()
    finally:
        direct_calls.knows_one_by_one.cache_clear()
