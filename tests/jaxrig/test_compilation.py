"""Oracle: programs known to compile or not."""

from pathlib import Path

import jax
import jax.numpy as jnp

from jaxrig.compilation import cache_folder, keep_compilations, record_compilations


def test_records_each_compilation_by_name_with_seconds():
    def a_rare_name(x):
        return jnp.cos(x) * 3 + x

    x = jnp.arange(5.0)
    function = jax.jit(a_rare_name)
    with record_compilations() as first:
        function(x)
    with record_compilations() as second:
        function(x)
    (compilation,) = first.compilations
    known = jax.__version_info__ >= (0, 8)  # earlier ones do not say what they compile
    assert compilation.name.removeprefix("jit(").rstrip(")") == (
        "a_rare_name" if known else "?"
    )
    assert first.compilations[0].seconds > 0
    assert first.seconds >= first.compile_seconds > 0
    assert second.compilations == []
    assert second.seconds == 0


def test_blocks_nest():
    x = jnp.arange(3.0)
    with record_compilations() as outer:
        jax.jit(lambda x: x * 5 + 1)(x)
        with record_compilations() as inner:
            jax.jit(lambda x: x * 7 + 1)(x)
    assert (len(outer.compilations), len(inner.compilations)) == (2, 1)


def test_an_empty_block_inside_an_empty_block_closes_itself_only():
    x = jnp.arange(3.0)
    with record_compilations() as outer:
        with record_compilations() as inner:
            pass
        jax.jit(lambda x: x * 11 + 1)(x)
    assert (len(outer.compilations), len(inner.compilations)) == (1, 0)


def test_cache_folder_follows_the_environment(monkeypatch):
    monkeypatch.setenv("JAXRIG_CACHE", "/somewhere")
    assert cache_folder() == Path("/somewhere")
    monkeypatch.delenv("JAXRIG_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert cache_folder() == Path("/cache/jaxrig")


def test_a_cache_chosen_before_is_left_alone(tmp_path):
    chosen = jax.config.values["jax_compilation_cache_dir"]  # set in conftest
    assert keep_compilations(tmp_path) == Path(chosen)
    assert jax.config.values["jax_compilation_cache_dir"] == chosen
