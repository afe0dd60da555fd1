"""The command `demo`, and the core's own part of it.

The core shows the compile guard, batching, and a learner with a known optimum; each
part runs the real thing and shows what came out.
"""

import functools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import typer

from jaxrig.batching import map_chunked
from jaxrig.console import check_writable, complain, make_console, say
from jaxrig.keys import batch_keys
from jaxrig.learn.ppo import PPOConfig, PPOState, ppo_init, ppo_update
from jaxrig.learn.tabular import (
    TabularProblem,
    corridor,
    optimal_values,
    policy_values,
    uniform_policy,
)
from jaxrig.machine import describe_machine, package_versions
from jaxrig.progress import Meter, make_meter
from jaxrig.report import (
    Code,
    Figure,
    Heading,
    Part,
    Player,
    Report,
    Section,
    Table,
    Text,
    line_chart,
    png_from_array,
)
from jaxrig.systems import Demo, System, load_systems
from jaxrig.timing import compare
from jaxrig.tracing import RetraceError, compile_once

ITEMS, CHUNKS = 100_000, (1_000, 7_000, 100_000)
SEEDS, UPDATES = (0, 1, 2), 60
CONFIG = PPOConfig(
    environments=32,
    steps=32,
    minibatches=2,
    learning_rate=0.03,
    discount=0.95,
    entropy_coeff=0.003,
)


def run_demos(path: Path, only: Sequence[str], progress: str) -> None:
    """Run the demos of all systems, or of `only` some, and write one page."""
    report = Report("jaxrig demo", "Every figure on this page comes from one run.")
    chosen = _with_demo(only)
    check_writable(path)
    for system, demo in chosen:
        report.add(_run_demo(system.title, demo, progress, bool(only)))
    report.add(_machine_section())
    say(make_console(), f"open {report.write(path)}")


def _with_demo(only: Sequence[str]) -> list[tuple[System, Demo]]:
    systems, problems = load_systems()
    for problem in problems.values():
        complain(f"warning: {problem}")
    demos = [(system, system.load_demo()) for system in systems]
    there = {system.name: (system, demo) for system, demo in demos if demo is not None}
    for name in only:
        if name not in there:
            raise typer.BadParameter(f"no demo {name!r}; there are: {', '.join(there)}")
    return [pair for name, pair in there.items() if not only or name in only]


def _run_demo(title: str, demo: Demo, progress: str, asked: bool) -> Section:
    """Return what a demo shows; unless asked for by name, it may lack an extra."""
    console = make_console()
    say(console, f"{title} ...")
    start, meter = time.perf_counter(), make_meter(progress)
    try:
        section = demo(meter)
    except ImportError as error:
        if asked:
            raise
        complain(f"{title}: left out, {error}")
        return Section(title, Text(f"Left out: {error}."))
    finally:  # also when interrupted: a bar left drawn hides the cursor
        meter.stop()
    say(console, f"{title}: {time.perf_counter() - start:.1f} s")
    return section


def _machine_section() -> Section:
    facts = describe_machine()
    facts["memory"] = f"{facts.pop('memory_bytes') / 2**30:.1f} GiB"
    facts |= package_versions()
    rows = [
        (name, ", ".join(value) if isinstance(value, list) else str(value))
        for name, value in facts.items()
    ]
    text = Text("The machine and the versions this page was made with.")
    return Section("Machine", text, Table(("what", "value"), rows))


def core_section(meter: Meter) -> Section:
    """Return all that the core shows of itself."""
    return Section(
        "The core", *guard_parts(), *batching_parts(), *learner_parts(meter), id="core"
    )


def guard_parts() -> list[Part]:
    """Call a function that may be compiled once with something else."""
    step = compile_once(random_walk)
    step(jax.random.key(0), jnp.asarray(0.5))
    try:
        step(jax.random.key(0), jnp.asarray(1))
    except RetraceError as error:
        message = str(error)
    else:
        raise AssertionError("the compile guard let a changed dtype pass")
    return [
        Heading("Compile guard"),
        Text(
            "A function made with `compile_once` refuses to be compiled "
            "again unnoticed. Called with an integer where a float was, it says:"
        ),
        Code(message),
    ]


def random_walk(key: jax.Array, start: jax.Array) -> jax.Array:
    """Return where a random walker ends after 64 steps."""
    return start + jax.random.normal(key, (64,)).sum()


def batching_parts() -> list[Part]:
    """Run the same walks in chunks of several sizes, and compare the bits."""
    keys = batch_keys(jax.random.key(1), ITEMS)
    start = jnp.asarray(0.0)
    maps = {size: map_chunked(random_walk, chunk_size=size) for size in CHUNKS}
    results = {size: np.asarray(run(keys, start)) for size, run in maps.items()}
    timings = compare(
        {str(s): functools.partial(run, keys, start) for s, run in maps.items()},
        repeats=5,
    )
    reference = results[CHUNKS[-1]]
    rows = [
        (
            size,
            f"{timings[str(size)].per_second(ITEMS) / 1e6:.2f} million",
            f"{timings[str(size)].spread:.0%}",
            maps[size].trace_count,
            bool((results[size] == reference).all()),
        )
        for size in CHUNKS
    ]
    columns = ("chunk size", "walks per second", "spread", "compiled", "same bits")
    return [
        Heading("Batching"),
        Text(
            f"{ITEMS:,} random walks of 64 steps, mapped in chunks. The last "
            "chunk is filled up, so one compiled shape serves all, and the result "
            "does not depend on the chunk size."
        ),
        Table(columns, rows),
    ]


def learner_parts(meter: Meter) -> list[Part]:
    """Run PPO on a corridor whose best policy is known exactly."""
    problem = corridor(8, lure=0.3, slip=0.1)
    start = np.asarray(problem.start, np.float64)
    best = float(start @ optimal_values(problem, CONFIG.discount))
    update = compile_once(ppo_update)
    curves, frames = [], []
    meter.start("PPO, three seeds", len(SEEDS) * UPDATES)
    for number, seed in enumerate(SEEDS):
        show = lambda done, n=number: meter.show(n * UPDATES + done)
        curve, pictures = _learn(
            lambda state: update(state, problem, CONFIG), problem, seed, show
        )
        curves.append(curve)
        frames = frames or pictures
    meter.stop()
    found = np.asarray(curves)
    updates = np.arange(found.shape[1])
    chart = line_chart(
        {
            "PPO": (updates, found.mean(axis=0)),
            "optimum": (updates, np.full(len(updates), best)),
        },
        title="Expected return of the learned policy",
        x_label="update",
        y_label="return",
        bands={"PPO": (found.min(axis=0), found.max(axis=0))},
    )
    return [
        Heading("Learning"),
        Text(
            "PPO walks a slippery corridor of eight cells: 0.3 for leaving "
            "on the left, 1 on the right. Values are exact, from the linear equations "
            f"of the policy; after {UPDATES} updates three seeds reach "
            f"{', '.join(f'{c[-1] / best:.1%}' for c in curves)} of the optimum."
        ),
        Figure(chart, caption="Mean and range over three seeds.", alt="Learning curve"),
        Player(
            frames,
            captions=[f"update {i}" for i in range(0, UPDATES + 1, 2)],
            title="Chance of going left (top) and right (bottom), by cell: dark is 1",
            alt="Chance of each action in each cell",
        ),
    ]


def _learn(
    update: Callable[[PPOState], tuple[PPOState, Any]],
    problem: TabularProblem,
    seed: int,
    show: Callable[[int], None],
) -> tuple[list[float], list[bytes]]:
    """Return exact values after each update, and pictures of policies."""
    state = ppo_init(jax.random.key(seed), problem, uniform_policy(problem), CONFIG)
    start = np.asarray(problem.start, np.float64)
    curve, pictures = [], []
    for done in range(UPDATES + 1):
        chances = np.asarray(state.policy.probabilities())
        values = policy_values(problem, chances, CONFIG.discount)
        curve.append(float(start @ values))
        if done % 2 == 0:
            pictures.append(_picture(chances[~np.asarray(problem.terminal)].T))
        if done < UPDATES:
            state, _ = update(state)
            show(done + 1)
    return curve, pictures


def _picture(chances: np.ndarray) -> bytes:
    """Draw a square for each probability, white for 0 and dark for 1."""
    square = np.pad(np.ones((14, 14)), 1)
    return png_from_array((255 - 225 * np.kron(chances, square)).astype(np.uint8))
