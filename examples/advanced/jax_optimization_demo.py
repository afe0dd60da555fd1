"""What compiling, batching and the action format bring, measured on this machine."""

import jax
import jax.numpy as jnp

from jaxarc.envs import JaxArcConfig, UnifiedActionConfig
from jaxarc.envs.functional import arc_reset, arc_step, batch_reset, batch_step
from jaxarc.envs.structured_actions import (
    PointAction,
    create_bbox_action,
    create_mask_action,
    create_point_action,
)
from jaxarc.tasks import create_demo_task
from jaxrig import measure

config = JaxArcConfig(action=UnifiedActionConfig(selection_format="point"))
task = create_demo_task()
key = jax.random.key(0)
action = create_point_action(operation=2, row=14, col=14)

print("One environment, compiling apart from running")
state, _ = arc_reset(key, config, task)
for name, call in {
    "reset": lambda: arc_reset(key, config, task),
    "step": lambda: arc_step(state, action, config),
}.items():
    timing = measure(call, repeats=50)
    print(
        f"  {name}: {timing.median * 1e6:8.1f} us, compiled in "
        f"{timing.compile_seconds:.2f} s"
    )

print("Many environments in one call")
rates = {}
for size in (1, 16, 256):
    states, _ = batch_reset(jax.random.split(key, size), config, task)
    actions = PointAction(
        operation=jnp.full(size, 2, jnp.int32),
        row=jnp.arange(size, dtype=jnp.int32) % 30,
        col=jnp.full(size, 5, jnp.int32),
    )
    step = lambda states=states, actions=actions: batch_step(states, actions, config)
    rates[size] = measure(step, repeats=20).per_second(size)
    print(f"  {size:4d} environments: {rates[size]:12,.0f} steps per second")
print(f"  256 at once are {rates[256] / rates[1]:.1f} times as fast as one by one")

print("Memory of the action history, 1000 records of float32")
for kind in ("point", "bbox", "mask"):
    size = config.history.estimate_memory_usage(kind)["total_bytes"]
    print(f"  {kind:5}: {size:9,} bytes")

print("Structured actions select cells")
mask = jnp.zeros((30, 30), bool).at[10:15, 10:15].set(True)
for one in (
    action,
    create_bbox_action(2, 3, 3, 7, 7),
    create_mask_action(2, mask),
):
    cells = int(one.to_selection_mask((30, 30)).sum())
    print(f"  {type(one).__name__}: {cells} cells")
