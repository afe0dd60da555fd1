"""Oracle: the trace counter itself, and plain jax.jit for the numbers."""

import warnings
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.compile_cache import record_compilations
from jaxrig.compile_guard import RetraceError, adaptive, compile_once


class State(eqx.Module):
    grid: jax.Array
    note: jax.Array | None = None


@dataclass(frozen=True)
class Config:
    size: int = 3
    name: str = "a"


def step(state, action, config):
    return eqx.tree_at(lambda s: s.grid, state, state.grid * action + config.size)


def call(compiled, dtype=jnp.float32, shape=(2, 3), config=Config(), note=None):
    return compiled(State(jnp.ones(shape, dtype), note), jnp.asarray(2, dtype), config)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"dtype": jnp.int32}, ["state.grid: float32[2,3] -> int32[2,3]", "Cast"]),
        ({"shape": (4, 3)}, ["state.grid: float32[2,3] -> float32[4,3]", "Pad"]),
        (
            {"config": Config(size=4)},
            ["config.size: static 3 -> static 4", "is static"],
        ),
        ({"note": jnp.zeros(1)}, ["state.note: absent -> float32[1]", "structure"]),
    ],
    ids=["dtype", "shape", "static value", "tree structure"],
)
def test_retrace_error_names_the_argument(change, expected):
    compiled = compile_once(step)
    call(compiled)
    with pytest.raises(RetraceError) as caught:
        call(compiled, **change)
    for text in [*expected, "max_traces", "step may be compiled once"]:
        assert text in str(caught.value)


def test_static_values_of_different_type_are_different_programs():
    shown = compile_once(lambda x, flag: x + (10 if flag is True else 0), max_traces=3)
    x = jnp.zeros(())
    assert [float(shown(x, f)) for f in (True, 1, 1.0)] == [10.0, 0.0, 0.0]
    assert shown.trace_count == 3


def test_allowance_and_return_to_an_earlier_signature():
    compiled = compile_once(step, max_traces=2)
    for dtype in (jnp.float32, jnp.int32, jnp.float32, jnp.int32):
        call(compiled, dtype=dtype)
    assert compiled.trace_count == 2
    with pytest.raises(RetraceError, match="2 times"):
        call(compiled, dtype=jnp.int8)
    call(compiled)  # a refused call leaves the function usable


def test_dropping_jax_caches_is_no_retrace_error():
    compiled = compile_once(lambda x: x + 1)
    compiled(jnp.ones(2))
    own: Any = compiled._jit  # jax.clear_caches drops every other test's as well
    own.clear_cache()
    compiled(jnp.ones(2))
    assert compiled.trace_count == 2


def test_composes_with_vmap_grad_and_jit():
    square = compile_once(lambda x: x**2)
    xs = jnp.arange(4.0)
    np.testing.assert_array_equal(jax.vmap(square)(xs), xs**2)
    np.testing.assert_array_equal(jax.vmap(jax.grad(square))(xs), 2 * xs)
    np.testing.assert_array_equal(jax.jit(square)(xs[0]), 0.0)


def test_unhashable_argument_is_named():
    compiled = compile_once(lambda x, names: x)
    with pytest.raises(TypeError, match=r"names\['a'\] is a bytearray.*freeze"):
        compiled(jnp.ones(1), {"a": bytearray(b"x")})


def test_adaptive_gives_the_same_numbers_both_ways_and_reports_its_path():
    def smooth(x):
        return jnp.where(x > 0, jnp.sin(x), x)

    def branching(x):
        return jnp.sin(x) if x > 0 else x

    compiled, eager = adaptive(smooth), adaptive(branching)
    assert compiled.path is None
    values = [jnp.asarray(v) for v in (-1.0, 0.5, 2.0)]
    with pytest.warns(UserWarning, match="branching does not trace") as caught:
        results = [eager(value) for value in values]
    assert len(caught) == 1
    np.testing.assert_allclose([compiled(v) for v in values], results, rtol=1e-6)
    assert (compiled.path, compiled.reason) == ("compiled", None)
    assert eager.path == "eager"
    assert "TracerBoolConversionError" in str(eager.reason)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.ones(int(x[0])),
        lambda x: np.asarray(x) + 1,
        lambda x: x[x > 0],
        lambda x: [1.0, 2.0, 3.0][x[0].astype(int)],
    ],
    ids=["integer", "numpy", "boolean index", "list index"],
)
def test_adaptive_knows_every_tracing_error(function):
    run, value = adaptive(function), jnp.asarray([2.0])
    with pytest.warns(UserWarning, match="runs eagerly"):
        result = run(value)
    np.testing.assert_array_equal(result, function(value))


def test_adaptive_lets_other_errors_through():
    run = adaptive(lambda x: x + jnp.ones(3))
    with warnings.catch_warnings(), pytest.raises(TypeError):
        run(jnp.ones(2))
    assert run.path is None


class Model(eqx.Module):
    weight: jax.Array
    activation: object
    name: str
    rate: float


def test_functions_strings_and_numbers_come_back_as_they_went_in():
    @compile_once
    def grow(model, x):
        y = model.activation(model.weight * x)
        return eqx.tree_at(lambda m: m.weight, model, model.weight + y), {"y": [y, 3]}

    model = Model(jnp.asarray([0.5]), jnp.tanh, "small", 0.1)
    model, out = grow(model, jnp.ones(1))
    model, out = grow(model, jnp.ones(1))  # fed back in: no new signature
    assert grow.trace_count == 1
    assert (model.activation, model.name, model.rate) == (jnp.tanh, "small", 0.1)
    assert isinstance(model.weight, jax.Array)
    assert out["y"][1] == 3
    assert jax.vmap(lambda x: grow(model, x)[1]["y"][0])(jnp.ones((2, 1))).shape == (
        2,
        1,
    )


def test_a_call_that_does_not_trace_uses_no_allowance():
    product = compile_once(lambda a, b: a @ b)
    with pytest.raises(TypeError, match="dot"):
        product(jnp.ones((2, 3)), jnp.ones((2, 3)))
    assert product(jnp.ones((2, 3)), jnp.ones((3, 2))).shape == (2, 2)
    assert product.trace_count == 1


def test_one_call_has_one_form_however_its_arguments_are_passed():
    @compile_once
    def scale(x, factor=2.0, *, shift=1.0):
        return x * factor + shift

    x = jnp.ones(2)
    with record_compilations() as log:
        for out in (
            scale(x),
            scale(x=x),
            scale(x, 2.0),
            scale(x, factor=2.0, shift=1.0),
        ):
            np.testing.assert_array_equal(out, 3.0)
    assert scale.trace_count == 1
    assert len([c for c in log.compilations if "scale" in c.name]) <= 1


class Sized(eqx.Module):
    x: jax.Array
    size: int = eqx.field(static=True)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (None, jnp.ones(1), "value: absent -> float32"),
        (jnp.ones(1), None, "absent"),
        ([None], [], "value: "),
        (Sized(jnp.ones(1), 1), Sized(jnp.ones(1), 2), "static fields"),
        (jnp.tanh, jnp.sin, "outside the loop"),
        (float("nan"), float("nan"), "NaN equals nothing"),
        ("a", "b", "part of the program"),
        (1, 2, "value: static 1 -> static 2"),
        ([jnp.ones(2)], (jnp.ones(2),), r"value: .*\[\*\].* -> .*\(\*,\)"),
        (jnp.asarray(1.0), jnp.float32(1.0), "weakly typed"),
    ],
)
def test_every_change_is_named(first, second, message):
    function = compile_once(lambda x, value: x)
    function(jnp.ones(1), first)
    with pytest.raises(RetraceError, match=message):
        function(jnp.ones(1), second)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, *, state: state + x,
        lambda x, b=1.0, state=None: state + x * b,
        lambda state, x: state + x,
    ],
    ids=["keyword only", "after a default", "first"],
)
def test_donation_works_wherever_the_argument_stands(function: Any):
    compiled: Any = compile_once(function, donate=["state"])
    state, x = jnp.ones(100), jnp.ones(100)
    np.testing.assert_array_equal(compiled(x=x, state=state), 2.0)
    assert state.is_deleted()
    assert not x.is_deleted()
    with pytest.raises(ValueError, match="no argument 'nothing'"):
        compile_once(function, donate=["nothing"])


def test_bound_and_static_methods():
    class Plain:
        step = 2.0

        def shift(self, x):
            return x + self.step

        @compile_once(max_traces=1)
        def grow(self, x):
            return x + 1

        @compile_once
        @staticmethod
        def shrink(x: Any) -> Any:
            return x - 1

        @adaptive
        def branch(self, x):
            return x + 1

    plain = Plain()
    assert float(compile_once(plain.shift)(jnp.asarray(1.0))) == 3.0
    assert float(plain.grow(jnp.asarray(1.0))) == 2.0
    assert float(plain.grow(x=jnp.asarray(1.0))) == 2.0
    assert plain.grow.trace_count == 1
    assert "f32" in plain.grow.lower(jnp.asarray(1.0)).as_text()
    assert float(plain.shrink(jnp.asarray(1.0))) == 0.0
    assert float(plain.branch(jnp.asarray(1.0))) == 2.0


def test_looking_at_a_program_uses_no_allowance():
    double = compile_once(lambda x: x * 2)
    for size in (1, 2, 3):
        lowered = double.lower(jax.ShapeDtypeStruct((size,), jnp.float32))
        assert f"tensor<{size}xf32>" in lowered.as_text()
    double(jnp.ones(3))
    with pytest.raises(RetraceError):
        double(jnp.ones(4))


def test_adaptive_inside_another_trace_raises_and_stays_undecided():
    run = adaptive(lambda x: x if x > 0 else -x)
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(run)(jnp.asarray(1.0))
    assert run.path is None
