"""Measure ARC environments: steps in scans and from Python, bytes, compiling.

The measure is a compiled scan over a batch of environments: every step draws random
point actions over all 35 grid operations, finished episodes begin again, and whole
state and observation are carried.
"""

import functools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.actions import PointAction
from jaxarc.config import DatasetConfig, JaxArcConfig
from jaxarc.envs.environment import Environment
from jaxarc.envs.functional import arc_reset, arc_step, batch_reset, batch_step
from jaxarc.ops.operations import FIRST_CONTROL
from jaxarc.registration import make
from jaxarc.tasks.packing import pack_tasks, stack_tasks
from jaxarc.tasks.samples import gather_task
from jaxarc.tasks.sources import DATASETS
from jaxarc.tasks.task_json import RawTask
from jaxarc.types import JaxArcTask
from jaxarc.wrappers import AutoReset, PointActionWrapper, Vectorize
from jaxrig.bench import Benchmark, Measurement
from jaxrig.memory import tree_bytes
from jaxrig.timing import Timing, compare

GRID_OPERATIONS = int(FIRST_CONTROL)
MADE_UP_TASKS = 32
MINI = DatasetConfig(dataset_name="Mini", **DATASETS["Mini"].sizes)
BATCHES = {"cpu": (256, 4096), "gpu": (65_536, 262_144)}  # 30x30, 5x5
SCAN_STEPS = {"cpu": (200, 100), "gpu": (100, 100)}
CALLS = 1000
BATCH_CALLS = 20
UNUSUAL_LIMIT = 90_001  # a step limit nobody uses: programs that no cache holds


def bench_config(
    dataset: DatasetConfig | None = None, records: int = 0
) -> JaxArcConfig:
    """Return point actions over the grid operations, with a history of `records`."""
    return JaxArcConfig(dataset=dataset or DatasetConfig()).with_settings(
        selection_format="point",
        max_operations=GRID_OPERATIONS,
        validate_actions=False,
        history={"enabled": records > 0, "max_history_length": max(records, 1)},
    )


def large_environment() -> Environment:
    """Return the training tasks of ARC-AGI-1 at 30x30."""
    return make("AGI1-train", config=bench_config())[0]


def small_environment() -> Environment:
    """Return MiniARC where `JAXRIG_DATA` has it, otherwise random tasks like it."""
    folder = Path(os.environ.get("JAXRIG_DATA", "")) / "MiniARC"
    config = bench_config(MINI)
    if "JAXRIG_DATA" in os.environ and folder.is_dir():
        return make("Mini-all", config=config, dataset_path=str(folder))[0]
    return Environment(config, made_up_tasks())


def made_up_tasks(count: int = MADE_UP_TASKS, seed: int = 0) -> JaxArcTask:
    """Make random tasks like MiniARC's: three demonstrations and a test of 5x5."""
    draw = np.random.default_rng(seed)
    grid = lambda: draw.integers(0, 10, (5, 5)).astype(np.int8)
    pairs = lambda many: tuple((grid(), grid()) for _ in range(many))
    tasks = [RawTask(f"made up {i}", pairs(3), pairs(1)) for i in range(count)]
    return stack_tasks(pack_tasks(tasks), MINI, [-1] * count)


def scan_benchmark(
    make_environment: Callable[[], Environment], batch: int | None, which: int
) -> list[Measurement]:
    """Measure environment steps in a compiled scan, with and without resets."""
    backend = jax.default_backend()
    batch = batch or BATCHES.get(backend, BATCHES["gpu"])[which]
    steps = SCAN_STEPS.get(backend, SCAN_STEPS["gpu"])[which]
    env = make_environment()
    height, width = env.params.buffer.get_grid_shape()
    plain = PointActionWrapper(env)
    ways = {"auto-reset": AutoReset(plain), "no reset": plain}
    keys = jax.random.split(jax.random.key(1), steps)
    runs, states = {}, {}
    for name, way in ways.items():
        many = Vectorize(way)
        starts = jax.random.split(jax.random.key(0), batch)
        states[name], first = jax.jit(lambda env, keys: env.reset(keys))(many, starts)
        run = jax.jit(functools.partial(scan_steps, batch))
        carried = states[name], first.observation
        runs[name] = functools.partial(run, many, *carried, keys)
    shapes = {
        "grid": [height, width],
        "batch": batch,
        "steps": steps,
        "tasks": env.params.choices,
        "made_up": env.params.config.dataset.dataset_path == "" and height < 30,
    }
    return [
        Measurement(
            f"{height}x{width}, {name}",
            timing,
            batch * steps,
            "steps",
            shapes,
            tree_bytes(states[name]) // batch,
        )
        for name, timing in compare(runs, repeats=7).items()
    ]


def scan_steps(batch: int, env: Any, state: Any, observation: Any, keys: Any) -> Any:
    """Step a batch once per key with random actions; return what was carried."""
    space = env.action_space()

    def step(carry: Any, key: Any) -> tuple[Any, None]:
        state, _, total = carry
        state, after = env.step(state, space.sample(key, (batch,)))
        return (state, after.observation, total + after.reward), None

    start = (state, observation, jnp.zeros(batch))
    return jax.lax.scan(step, start, keys)[0]


def _points(count: int, shape: tuple[int, ...] = ()) -> list[PointAction]:
    """Draw random point actions, ready before the clock runs."""
    draw = np.random.default_rng(0)
    limits = (GRID_OPERATIONS - 1, 30, 30)  # without Submit, which ends an episode
    return [
        PointAction(
            *(jnp.asarray(draw.integers(0, n, shape), jnp.int32) for n in limits)
        )
        for _ in range(count)
    ]


def python_steps() -> list[Measurement]:
    """Measure calls of `arc_step` from Python, one environment at 30x30."""
    task = gather_task(large_environment().params.buffer, 0)
    actions = _points(CALLS)
    ways, states = {}, {}
    for name, records in (("no history", 0), ("100 records", 100)):
        config = bench_config(records=records)
        state, _ = arc_reset(jax.random.key(0), config, task)
        states[name] = state

        def steps(state: Any = state, config: JaxArcConfig = config) -> Any:
            for action in actions:
                state, _, _, _, _ = arc_step(state, action, config)
            return state

        ways[name] = steps
    return [
        Measurement(
            f"arc_step, {name}",
            timing,
            CALLS,
            "steps",
            {"grid": [30, 30], "batch": 1, "calls": CALLS},
            tree_bytes(states[name].episode),
        )
        for name, timing in compare(ways, repeats=7).items()
    ]


def batch_steps(environments: int = 1000) -> list[Measurement]:
    """Measure calls of `batch_step`, the documented way to step many environments."""
    env, config = large_environment(), bench_config()
    keys = jax.random.split(jax.random.key(0), environments)
    states, _ = batch_reset(keys, config, env.params.buffer)
    actions = _points(BATCH_CALLS, (environments,))

    def run() -> Any:
        after = states
        for action in actions:
            after, _, _, _, _ = batch_step(after, action, config)
        return after

    reset = lambda: batch_reset(keys, config, env.params.buffer)
    timings = compare({"batch_step": run, "batch_reset": reset}, repeats=7)
    shapes = {"grid": [30, 30], "batch": environments}
    size = tree_bytes(states.episode) // environments
    items = {"batch_step": (BATCH_CALLS, "steps"), "batch_reset": (1, "resets")}
    return [
        Measurement(name, timings[name], many * environments, unit, shapes, size)
        for name, (many, unit) in items.items()
    ]


def compiling(repeats: int = 3) -> list[Measurement]:
    """Measure compilation of step and reset at 30x30 from nothing."""
    tasks, action = large_environment().params.buffer, _points(1)[0]
    key, wall, cpu = jax.random.key(0), [], []
    # What is compiled here stays out of the cache on disk, for the next run.
    name = "jax_persistent_cache_min_compile_time_secs"
    before = jax.config.values[name]
    jax.config.update(name, 1e9)
    try:
        for number in range(repeats):
            rules = {"max_episode_steps": UNUSUAL_LIMIT + number}
            config = bench_config().with_settings(**rules)
            begin = time.perf_counter(), time.process_time()
            reset = jax.jit(functools.partial(arc_reset, config=config))
            step = jax.jit(functools.partial(arc_step, config=config))
            state, _ = jax.eval_shape(reset, key, task_data=tasks)
            reset.lower(key, task_data=tasks).compile()
            step.lower(state, action).compile()
            wall.append(time.perf_counter() - begin[0])
            cpu.append(time.process_time() - begin[1])
    finally:
        jax.config.update(name, before)
    timing = Timing(float(np.median(wall)), tuple(wall), tuple(cpu))
    shapes = {"grid": [30, 30], "actions": "point"}
    return [Measurement("step and reset", timing, 2, "programs", shapes)]


def make_benchmarks(
    large: int | None = None, small: int | None = None
) -> tuple[Benchmark, ...]:
    """Return all benchmarks; batch sizes default to those of the device."""
    return (
        Benchmark(
            "arc.scan",
            "30x30 environments in a compiled scan",
            functools.partial(scan_benchmark, large_environment, large, 0),
        ),
        Benchmark(
            "arc.small",
            "5x5 environments in a compiled scan",
            functools.partial(scan_benchmark, small_environment, small, 1),
        ),
        Benchmark("arc.step", "arc_step called from Python", python_steps),
        Benchmark("arc.batch", "batch_step with 1,000 environments", batch_steps),
        Benchmark("arc.compile", "compilation of step and reset", compiling),
    )


BENCHMARKS = make_benchmarks()
