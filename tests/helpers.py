"""What several test files need."""

import jax


def compiled_text(function, *args) -> str:
    """The program that XLA made of a function, as text."""
    text = jax.jit(function).lower(*args).compile().as_text()
    assert text is not None
    return text
