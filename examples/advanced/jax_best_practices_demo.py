"""Habits that keep compiled environments fast and right, each beside its opposite."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxarc.envs import DatasetConfig, JaxArcConfig, UnifiedActionConfig
from jaxarc.envs.functional import arc_reset, arc_step, batch_reset, batch_step
from jaxarc.envs.structured_actions import PointAction, create_point_action
from jaxarc.tasks import create_demo_task
from jaxarc.utils.error_handling import JAXErrorHandler
from jaxrig import error_mode, record_compilations

config = JaxArcConfig(
    dataset=DatasetConfig(max_grid_height=10, max_grid_width=10),
    action=UnifiedActionConfig(selection_format="point"),
)
task = create_demo_task(10, 10)
key = jax.random.key(0)
state, _ = arc_reset(key, config, task)

print("Compile once: values may change, types and shapes may not")


@eqx.filter_jit
def step(state, action, config):
    """A step with its action checked first."""
    action = JAXErrorHandler.validate_action(action, config)
    return arc_step(state, action, config)


step(state, create_point_action(0, 0, 0), config)
with record_compilations() as log:
    for cell in range(10):
        step(state, create_point_action(2, cell, cell), config)
print(f"  ten other actions: {len(log.compilations)} compilations")
with record_compilations() as log:
    step(state, create_point_action(2, 1, 1), JaxArcConfig(action=config.action))
print(f"  another configuration: {len(log.compilations)} compilation")

print("Configurations are hashable, so they can be static arguments")
twin = dataclasses.replace(config)
same = config == twin and hash(config) == hash(twin)
print(f"  an equal one is the same to JAX: {same}")

print("Split keys; a key used twice gives the same start twice")
keys = jax.random.split(key, 4)
print(f"  different keys: {len(set(map(str, jax.random.key_data(keys))))} of 4")

print("Choose between states leaf by leaf: jnp.where knows arrays alone")
after, *_ = arc_step(state, create_point_action(2, 4, 4), config)
keep = jnp.asarray(False)
chosen = jax.tree.map(lambda new, old: jnp.where(keep, new, old), after, state)
print(f"  step count of the state that was kept: {int(chosen.step_count)}")

print("Wrong actions are errors, in compiled functions too")
wrong = create_point_action(operation=2, row=99, col=0)
try:
    arc_step(state, wrong, config)
except RuntimeError as error:
    print(f"  raise: {error}")
with error_mode("nan"):
    print(f"  nan: the reward is {float(arc_step(state, wrong, config)[2])}")
try:
    arc_step(state, {"operation": 2, "selection": [5, 5]}, config)
except TypeError as error:
    print(f"  dictionaries: {error}")

print("Look into compiled code with callbacks, not with print")
peek = jax.jit(lambda x: (jax.debug.print("  inside: {x}", x=x), x + 1)[1])
jax.block_until_ready(peek(jnp.asarray(1)))

print("Batch instead of looping, and count steps with shapes that stay")
states, _ = batch_reset(keys, config, task)
actions = PointAction(*(jnp.full(4, n, jnp.int32) for n in (2, 4, 4)))
rewards = jnp.zeros(4)
with record_compilations() as log:
    for _ in range(5):
        states, _, rewards, _, _ = batch_step(states, actions, config)
print(f"  rewards {rewards.shape} after 5 steps, {len(log.compilations)} compilation")
