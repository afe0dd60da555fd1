"""Oracle: what each mode promises, seen from outside and in the compiled program."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import compiled_text
from jaxrig import checks
from jaxrig.compile_guard import compile_once
from jaxrig.sharding import make_mesh, shard_batch
from jaxrig.testing import assert_trees_close


def positive(x):
    return checks.check(x, x > 0, "x must be positive") * 2


COMPILERS = {"jit": jax.jit, "filter_jit": eqx.filter_jit, "compile_once": compile_once}


RAISED = (RuntimeError, ValueError)  # plain jax.jit: whichever JAX chooses


@pytest.fixture(params=COMPILERS)
def compiled(request):
    return COMPILERS[request.param](positive)


def test_modes_switch_at_run_time_in_a_compiled_function(compiled):
    bad = jnp.asarray(-1.0)
    assert float(compiled(jnp.asarray(3.0))) == 6.0
    with pytest.raises(RAISED, match="x must be positive"):
        jax.block_until_ready(compiled(bad))
    with checks.error_mode("nan"):
        assert np.isnan(compiled(bad))
    with checks.error_mode("off"):
        assert float(compiled(bad)) == -2.0
    with pytest.raises(RAISED, match="x must be positive"):
        jax.block_until_ready(compiled(bad))


def test_returning_to_a_mode_does_not_trace_again():
    function = compile_once(positive)
    x = jnp.asarray(1.0)
    for mode in ("raise", "off", "raise", "off", "raise"):
        with checks.error_mode(mode):
            function(x)
    # Without a public compilation key, a switch drops JAX's caches: see decisions.
    assert function.trace_count == (2 if hasattr(jax, "make_user_context") else 5)


def test_off_leaves_nothing_in_the_program():
    def program(mode):
        with checks.error_mode(mode):
            return compiled_text(positive, jnp.asarray(1.0))

    assert "compare" in program("raise")
    assert "custom-call" in program("raise")
    assert "compare" not in program("off")
    assert "custom-call" not in program("off")


def test_one_bad_row_of_a_batch_is_found():
    rows = jnp.asarray([1.0, -1.0, 2.0])
    with pytest.raises(checks.CheckError, match=r"^x must be positive$"):
        compile_once(jax.vmap(positive))(rows)


def test_compiled_call_itself_raises_also_through_a_cached_inner_function():
    inner = compile_once(positive)
    inner(jnp.asarray(1.0))
    outer = compile_once(lambda x: inner(x) + 1)
    assert float(outer(jnp.asarray(1.0))) == 3.0
    with pytest.raises(checks.CheckError, match="positive"):
        outer(jnp.asarray(-1.0))


needs_key = pytest.mark.skipif(
    not hasattr(jax, "make_user_context"), reason="this JAX has no compilation key"
)


@needs_key
def test_a_failure_on_one_of_eight_devices_raises_and_nothing_hangs():
    run = compile_once(
        lambda x: jnp.sin(checks.check(x, x > 0, "x must be positive")).sum()
    )
    good, mesh = jnp.ones(16), make_mesh()
    run(shard_batch(good, mesh))
    with pytest.raises(checks.CheckError, match="positive"):
        run(shard_batch(good.at[3].set(-1.0), mesh))
    run(shard_batch(good, mesh))  # and the next call is unharmed


@needs_key
def test_functions_that_share_a_scan_body_both_raise():
    def body(carry, x):
        return carry + positive(x), None

    first = compile_once(lambda xs: jax.lax.scan(body, 0.0, xs)[0])
    second = compile_once(lambda xs: jax.lax.scan(body, 0.0, xs)[0] * 2)
    for run in (first, second):
        assert float(run(jnp.ones(3))) > 0
        with pytest.raises(checks.CheckError, match="positive"):
            run(-jnp.ones(3))


@needs_key
def test_a_function_traced_inside_compile_once_still_raises_outside():
    inner = jax.jit(positive)
    compile_once(lambda x: inner(x))(jnp.asarray(1.0))
    with pytest.raises(RAISED, match="positive"):
        jax.block_until_ready(inner(jnp.asarray(-1.0)))


def test_trees_with_keys_functions_and_no_floats():
    class State(eqx.Module):
        grid: jax.Array
        key: jax.Array
        name: str

    state = State(jnp.ones(2, jnp.int8), jax.random.key(0), "x")
    for mode in ("raise", "nan"):
        with checks.error_mode(mode):
            for compiler in (eqx.filter_jit, compile_once):
                run = compiler(lambda s: checks.check(s, s.grid > 0, "bad"))
                assert_trees_close(run(state), state)
    with pytest.raises(TypeError, match="contains an array"):
        checks.check(None, True, "nothing to check")


def test_nan_marks_the_bad_row_only():
    with checks.error_mode("nan"):
        found = jax.jit(jax.vmap(positive))(jnp.asarray([1.0, -1.0, 2.0]))
        np.testing.assert_array_equal(found, [2.0, np.nan, 4.0])
        whole = checks.check(jnp.ones(2, jnp.int8), jnp.asarray(False), "bad")
        np.testing.assert_array_equal(whole, [127, 127])


def test_gradients_pass_through_a_check():
    assert float(jax.grad(positive)(jnp.asarray(3.0))) == 2.0


def test_wrong_mode_is_refused():
    with pytest.raises(ValueError, match="'loud' is not one of: raise, nan"):
        checks.set_error_mode("loud")
    with pytest.raises(KeyError), checks.error_mode("off"):
        raise KeyError
    assert checks.get_error_mode() == "raise"  # also after an error inside the block
