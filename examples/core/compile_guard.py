"""Compile once and prove it: what happens when an argument changes its kind."""

import jax.numpy as jnp

from jaxrig import RetraceError, compile_once, record_compilations


@compile_once
def step(state, action):
    """Add an action to every number of a state."""
    return {name: value + action for name, value in state.items()}


state = {"grid": jnp.zeros((30, 30)), "score": jnp.asarray(0.0)}
with record_compilations() as log:
    for _ in range(1_000):
        state = step(state, jnp.asarray(1.0))
print(f"1,000 calls, {step.trace_count} trace, {log.seconds:.2f} s spent compiling")

try:
    step(state | {"grid": jnp.zeros((30, 30), jnp.int8)}, jnp.asarray(1.0))
except RetraceError as error:
    print(error)
