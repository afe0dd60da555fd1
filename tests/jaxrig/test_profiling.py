"""Oracle: the names must be found in what JAX wrote."""

import gzip

import jax
import jax.numpy as jnp
import pytest

from helpers import compiled_text
from jaxrig.profiling import profile, region


def test_profile_holds_the_named_region(tmp_path):
    with profile(tmp_path / "p") as folder, region("a_named_block"):
        jax.block_until_ready(jnp.arange(10) * 2)
    (trace,) = folder.rglob("*.trace.json.gz")
    assert b"a_named_block" in gzip.decompress(trace.read_bytes())


def test_profile_ends_when_the_block_fails(tmp_path):
    for attempt in ("first", "second"):  # a session left open would refuse the second
        with pytest.raises(KeyError), profile(tmp_path / attempt):
            raise KeyError


def test_region_names_compiled_operations():
    def run(x):
        with region("inner_part"):
            return jnp.sin(x)

    assert "inner_part" in compiled_text(run, jnp.ones(2))
