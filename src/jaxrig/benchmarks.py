"""What the core costs: dispatch, chunks, progress, checkpoints, learners."""

import functools
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxrig.batching import map_chunked
from jaxrig.bench import Benchmark, Measurement
from jaxrig.checkpoint import load_tree, save_tree
from jaxrig.compile_guard import compile_once
from jaxrig.learn.grpo import GRPOConfig, grpo_init, grpo_update
from jaxrig.learn.ppo import PPOConfig, ppo_init, ppo_update
from jaxrig.learn.tabular import corridor, uniform_policy
from jaxrig.memory import tree_bytes
from jaxrig.progress import Meter, TextMeter, scan_with_progress
from jaxrig.timing import Timing, compare, measure

CALLS = 1_000


def _cases(
    timings: dict[str, Timing], items: int, unit: str, shapes: dict[str, Any], tree: Any
) -> list[Measurement]:
    return [
        Measurement(case, timing, items, unit, shapes, tree_bytes(tree))
        for case, timing in timings.items()
    ]


def dispatch() -> list[Measurement]:
    """Measure calls from Python of a small function of an eight-array state."""
    state = {f"field {i}": jnp.zeros((30, 30), jnp.int8) for i in range(8)}

    def step(state: Any, action: jax.Array, name: str) -> Any:
        return jax.tree.map(lambda x: x + action, state)

    def calls(function: Callable[..., Any]) -> Callable[[], Any]:
        action = jnp.asarray(1, jnp.int8)

        def run() -> Any:
            result = state
            for _ in range(CALLS):
                result = function(result, action, "static")
            return result

        return run

    ways = {
        "jax.jit": calls(jax.jit(step, static_argnums=2)),
        "compile_once": calls(compile_once(step)),
        "equinox.filter_jit": calls(eqx.filter_jit(step)),
    }
    shapes = {"state": "8 x int8[30,30]"}
    return _cases(compare(ways), CALLS, "calls", shapes, state)


def chunks() -> list[Measurement]:
    """Measure a chunked map against one batch of everything."""
    count = 200_000
    items = jax.random.normal(jax.random.key(0), (count, 32))
    function = lambda x: jnp.tanh(x).sum() + jnp.sort(x)[0]
    whole = jax.jit(jax.vmap(function))
    ways: dict[str, Callable[[], Any]] = {"one batch": lambda: whole(items)}
    for size in (2_000, 20_000):
        run = map_chunked(function, chunk_size=size)
        ways[f"chunks of {size:,}"] = functools.partial(run, items)
    return _cases(compare(ways), count, "items", {"items": list(items.shape)}, items)


def progress() -> list[Measurement]:
    """Measure a compiled scan with and without a meter."""
    steps = 100_000
    body = lambda carry, _: (jnp.tanh(carry) * 0.999 + 0.5, None)

    def run(meter: Meter) -> Callable[[], Any]:
        scan = lambda x: scan_with_progress(body, x, None, steps, meter=meter)[0]
        compiled = jax.jit(scan)

        def timed() -> jax.Array:
            result = jax.block_until_ready(compiled(jnp.ones(8_192)))
            jax.effects_barrier()
            return result

        return timed

    ways = {"silent": run(Meter()), "text": run(TextMeter(io.StringIO()))}
    return _cases(compare(ways), steps, "steps", {"carry": [8192]}, None)


def checkpoints() -> list[Measurement]:
    """Measure megabytes to and from disk, safely written and checked."""
    tree = {f"layer {i}": jnp.ones((1024, 1024)) * i for i in range(16)}
    megabytes = tree_bytes(tree) // 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tree.ckpt"
        ways = {
            "save": lambda: save_tree(path, tree),
            "load": lambda: load_tree(path, tree),
        }
        timings = compare(ways, repeats=5)
    return _cases(timings, megabytes, "MB", {"tree": "16 x float32[1024,1024]"}, tree)


def learners() -> list[Measurement]:
    """Measure environment steps of whole updates, learning included."""
    problem = corridor(16)
    key, policy = jax.random.key(0), uniform_policy(problem)
    ppo = PPOConfig(environments=256, steps=64)
    grpo = GRPOConfig(states=64, group_size=64, horizon=4)
    states = {
        "PPO": (ppo_update, ppo_init(key, problem, policy, ppo), ppo),
        "GRPO": (grpo_update, grpo_init(key, problem, policy, grpo), grpo),
    }
    shapes = {"states": 18, "actions": 2}
    measured = []
    for case, (update, state, config) in states.items():
        timing = measure(compile_once(update), state, problem, config)
        steps = config.steps_per_update
        measured += _cases({case: timing}, steps, "steps", shapes, state)
    return measured


BENCHMARKS = (
    Benchmark("core.dispatch", "calls to a compiled function from Python", dispatch),
    Benchmark("core.chunks", "chunked map vs. one batch", chunks),
    Benchmark("core.progress", "a compiled scan with and without progress", progress),
    Benchmark("core.checkpoints", "saving and loading a pytree", checkpoints),
    Benchmark("core.learners", "PPO and GRPO on a tabular problem", learners),
)
