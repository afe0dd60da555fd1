"""What several test files need."""

import contextlib
import gc

import jax
import jax.numpy as jnp
import numpy as np


@contextlib.contextmanager
def small_heap():
    """Garbage is looked for only among what is made inside.

    By the end of a session a whole collection goes through millions of objects that
    JAX keeps, and takes seconds.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def compiled_text(function, *args) -> str:
    """The program that XLA made of a function, as text."""
    text = jax.jit(function).lower(*args).compile().as_text()
    assert text is not None
    return text


def walk(batch, table):
    """Particles with noise in a shared table: what all three systems look like."""

    def step(state, _):
        key, position = state
        key, use = jax.random.split(key)
        index = jnp.clip(position.astype(jnp.int32), 0, 9)
        position = position + table[index] + jax.random.normal(use, ())
        return (key, position), position

    run = lambda key, x: jax.lax.scan(step, (key, x), None, length=20)
    return jax.vmap(run)(batch["key"], batch["x"])


def make_batch(count=24):
    return {
        "key": jax.random.split(jax.random.key(7), count),
        "x": jnp.linspace(0.0, 9.0, count),
    }


TABLE = np.sin(np.arange(10, dtype=np.float32))
