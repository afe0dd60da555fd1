"""Check on paper costs: seconds as a function of sizes, fitted and then foretold.

    python benchmarks/cost_model.py [grid slices mesh build arc posterior]

Each model is a sum of a few terms, such as `call + steps * (step + particles * each)`.
Its constants are fitted to the first sizes of a case (least squares of relative errors,
none below zero) and then foretell the others. Prints JSON with both.
"""

import argparse
import functools
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import nnls

from jaxrig.bench import document
from jaxtrace.benchmarks import BOX, box_tetrahedra, grid_gyre, gyre_slices, mesh_gyre
from jaxtrace.benchmarks import lattice_nodes as lattice
from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.tracking import create_tracker, random_seeds, reflective_boundary

GPU = jax.default_backend() == "gpu"
REPEATS = 5


class Model(NamedTuple):
    """What is measured, the terms of its cost, and sizes: to fit, then to foretell."""

    make: Callable[..., Callable[[], Any]]
    terms: dict[str, Callable[..., float]]
    fitted: list[tuple[int, ...]]
    foretold: list[tuple[int, ...]]


def seconds(run: Callable[[], Any]) -> tuple[float, float]:
    """Return the median of wall and CPU seconds of a run that is compiled already."""
    jax.block_until_ready(run())
    found = []
    for _ in range(REPEATS):
        start = time.perf_counter(), time.process_time()
        jax.block_until_ready(run())
        found.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    wall, cpu = np.median(found, axis=0).tolist()
    return wall, cpu


def track(field: Callable[[], Any], particles: int, steps: int) -> Callable[[], Any]:
    """Return a run that keeps its last frame only."""
    tracker = create_tracker(
        "rk4", field(), reflective_boundary(BOX), recording_interval=steps
    )
    seeds = jnp.asarray(random_seeds(particles, BOX))
    span = (0.0, steps / 60)
    return lambda: tracker.track_particles(seeds, span, steps + 1).positions[-1]


def build(side: int) -> Callable[[], Any]:
    """Return the preparation of a mesh of tetrahedra from arrays."""
    shape = (side, side, side)
    points = lattice(shape)[1].reshape(-1, 3)
    values = gyre_slices(points, 1)[1][0]
    cells = np.random.default_rng(0).permutation(box_tetrahedra(shape))
    return lambda: make_mesh_field(points, cells, values, kind="tetra")


def act(environments: int, steps: int) -> Callable[[], Any]:
    """Return steps of environments with random actions and automatic resets."""
    from jaxarc.benchmarks import large_environment, scan_steps
    from jaxarc.wrappers import AutoReset, PointActionWrapper, Vectorize

    env = Vectorize(AutoReset(PointActionWrapper(large_environment())))
    state, first = env.reset(jax.random.split(jax.random.key(0), environments))
    run = jax.jit(functools.partial(scan_steps, environments))
    keys = jax.random.split(jax.random.key(1), steps)
    return lambda: run(env, state, first.observation, keys)


def posterior(variables: int, rows: int) -> Callable[[], Any]:
    """Return the posterior over causal graphs of a random linear table."""
    import acbo

    rng = np.random.default_rng(0)
    weights = np.triu(rng.normal(size=(variables, variables)), 1)
    weights *= rng.random(weights.shape) < 2 / variables
    noise = rng.normal(size=(rows, variables))
    table = np.linalg.solve(np.eye(variables) - weights.T, noise.T).T
    return lambda: acbo.infer_graphs(table).edge_probs


large = 16 if GPU else 1
STEPPED = {
    "call": lambda number, steps: 1.0,
    "each, to the device and back": lambda number, steps: number,
    "step": lambda number, steps: steps,
    "step of each": lambda number, steps: number * steps,
}
MODELS = {
    "grid": Model(
        functools.partial(track, grid_gyre),
        STEPPED,
        [(1_000, 50), (1_000, 400), (32_000 * large, 50), (32_000 * large, 200)],
        [(4_000, 200), (16_000 * large, 100), (64_000 * large, 200)],
    ),
    "slices": Model(
        lambda slices, side: track(
            lambda: grid_gyre((side, side, side), slices), 16_000, 100
        ),
        {
            "run": lambda slices, side: 1.0,
            "slice": lambda slices, side: slices,
            "node": lambda slices, side: side**3,
        },
        [(5, 32), (80, 32), (5, 96), (40, 64)],
        [(20, 64), (40, 96), (80, 48)],
    ),
    "mesh": Model(
        functools.partial(track, mesh_gyre),
        STEPPED,
        [(1_000, 50), (1_000, 400), (16_000 * large, 50), (16_000 * large, 200)],
        [(4_000, 100), (8_000 * large, 100), (32_000 * large, 100)],
    ),
    "build": Model(
        build,
        {"call": lambda n: 1.0, "cell": lambda n: 6.0 * (n - 1) ** 3},
        [(12,), (20,), (40,)],
        [(16,), (30,), (60,)],
    ),
    "arc": Model(
        act,
        STEPPED,
        [(64, 20), (64, 100), (1_024 * large, 20), (1_024 * large, 60)],
        [(256, 100), (512 * large, 50), (2_048 * large, 40)],
    ),
    "posterior": Model(
        posterior,
        {
            "call": lambda d, n: 1.0,
            "variable": lambda d, n: d,
            "row and pair": lambda d, n: d * d * n,
        },
        [(16, 100), (24, 400), (32, 100), (64, 200)],
        [(20, 200), (40, 100), (50, 400)],
    ),
}


def check(model: Model) -> dict[str, Any]:
    """Fit the constants of a model, and compare what it foretells with measurements."""
    sizes = model.fitted + model.foretold
    measured = np.array([seconds(model.make(*size)) for size in sizes])
    rows = [[term(*size) for term in model.terms.values()] for size in sizes]
    terms = np.array(rows, float)
    result: dict[str, Any] = {"terms": list(model.terms)}
    for name, found in zip(("seconds", "cpu_seconds"), measured.T, strict=True):
        first = slice(len(model.fitted))
        constants = nnls(terms[first] / found[first, None], np.ones(len(model.fitted)))
        foretold = terms @ constants[0]
        result[name] = {
            "constants": dict(zip(model.terms, constants[0].tolist(), strict=True)),
            "cases": [
                {"size": s, "fitted": n < len(model.fitted), "model": m, "measured": f}
                for n, (s, m, f) in enumerate(zip(sizes, foretold, found, strict=True))
            ],
        }
    return result


parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("models", nargs="*", help=f"of {', '.join(MODELS)}; default: all")
names = parser.parse_args().models or list(MODELS)
print(json.dumps(document([{n: check(MODELS[n])} for n in names]), indent=1))
