"""The core's part of `jaxrig demo`: compile guard, batching, and a learner.

Each part runs the real thing and shows what came out.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrig import report
from jaxrig.batching import map_chunked
from jaxrig.compile_guard import RetraceError, compile_once
from jaxrig.keys import batch_keys
from jaxrig.learn import tabular
from jaxrig.learn.ppo import PPOConfig, PPOState, ppo_init, ppo_update
from jaxrig.progress import Meter
from jaxrig.timing import compare

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


def core_section(meter: Meter) -> report.Section:
    """Return all that the core shows of itself."""
    return report.Section(
        "The core",
        report.Text(
            "What the three systems share: a guard against recompiling, batching that "
            "gives the same bits for every chunk size, devices and hosts, checkpoints, "
            "PPO and GRPO."
        ),
        report.Fold("Compile guard", *guard_parts()),
        report.Fold("Batching", *batching_parts()),
        report.Fold("Learning", *learner_parts(meter)),
        id="core",
    )


def guard_parts() -> list[report.Part]:
    """Call a function that may be compiled once with something else."""
    step = compile_once(random_walk)
    step(jax.random.key(0), jnp.asarray(0.5))
    try:
        step(jax.random.key(0), jnp.asarray(1))
    except RetraceError as error:
        message = str(error)
    else:
        raise AssertionError("compile_once did not detect a changed dtype")
    return [
        report.Text(
            "A function wrapped in `compile_once` raises an error instead of "
            "recompiling silently. Called with an integer instead of a float, it "
            "raises:"
        ),
        report.Code(message),
    ]


def random_walk(key: jax.Array, start: jax.Array) -> jax.Array:
    """Return where a random walker ends after 64 steps."""
    return start + jax.random.normal(key, (64,)).sum()


def batching_parts() -> list[report.Part]:
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
        report.Text(
            f"{ITEMS:,} random walks of 64 steps, mapped in chunks. The last "
            "chunk is padded, so one compiled program serves all chunks, and the "
            "result does not depend on the chunk size."
        ),
        report.Table(columns, rows),
    ]


def learner_parts(meter: Meter) -> list[report.Part]:
    """Run PPO on a corridor whose best policy is known exactly."""
    problem = tabular.corridor(8, lure=0.3, slip=0.1)
    start = np.asarray(problem.start, np.float64)
    best = float(start @ tabular.optimal_values(problem, CONFIG.discount))
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
    chart = report.line_chart(
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
        report.Text(
            "PPO on a slippery corridor of eight cells, with reward 0.3 at the left "
            "end and 1 at the right end. Values are exact solutions of the policy's "
            f"linear equations. After {UPDATES} updates, three seeds reach "
            f"{', '.join(f'{c[-1] / best:.1%}' for c in curves)} of the optimum."
        ),
        report.Figure(
            chart, caption="Mean and range over three seeds.", alt="Learning curve"
        ),
        report.Player(
            frames,
            captions=[f"update {i}" for i in range(0, UPDATES + 1, 2)],
            first=-1,
            title="Probability of going left (top) and right (bottom); dark is 1",
            alt="Probability of each action in each cell",
        ),
    ]


def _learn(
    update: Callable[[PPOState], tuple[PPOState, Any]],
    problem: tabular.TabularProblem,
    seed: int,
    show: Callable[[int], None],
) -> tuple[list[float], list[bytes]]:
    """Return exact values after each update, and pictures of policies."""
    state = ppo_init(
        jax.random.key(seed), problem, tabular.uniform_policy(problem), CONFIG
    )
    start = np.asarray(problem.start, np.float64)
    curve, pictures = [], []
    for done in range(UPDATES + 1):
        chances = np.asarray(state.policy.probabilities())
        values = tabular.policy_values(problem, chances, CONFIG.discount)
        curve.append(float(start @ values))
        if done % 2 == 0:
            # A square for each probability, white for 0 and dark for 1.
            inner = chances[~np.asarray(problem.terminal)].T
            squares = np.kron(inner, np.pad(np.ones((14, 14)), 1))
            pixels = (255 - 225 * squares).astype(np.uint8)
            pictures.append(report.png_from_array(pixels))
        if done < UPDATES:
            state, _ = update(state)
            show(done + 1)
    return curve, pictures
