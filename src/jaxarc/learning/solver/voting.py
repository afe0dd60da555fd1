"""Ask the networks under many augmentations, vote, and play the answers."""

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxarc.envs.environment import Environment
from jaxarc.envs.starts import EnvParams
from jaxarc.learning.demonstrations import (
    PlaceObservationWrapper,
    PlannedPlayer,
    cut_padding,
    make_player,
)
from jaxarc.learning.evaluation import ATTEMPTS, EvaluationResult, evaluate
from jaxarc.learning.planner import KINDS
from jaxarc.learning.solver.examples import (
    PairBank,
    Queries,
    ask_tests,
    demonstrations,
    draw_query,
    undo_augmentation,
)
from jaxarc.learning.solver.network import Example, NetworkConfig, SolverNetwork
from jaxarc.learning.training import fit_tasks
from jaxarc.registration import UNCHECKED
from jaxarc.types import JaxArcTask
from jaxrig.checkpoint import load_tree, read_header, save_tree
from jaxrig.compile_guard import compile_once
from jaxrig.progress import Meter

AT_ONCE = 512  # examples of one call
WEIGHTS = 2**28  # bytes of the attention weights of examples that are read together
VOTES = 16
# The solvers of the package, by the data set that they were trained on: grids of 5 x 5
# cells, and of all sizes up to 12 x 12.
SHIPPED = {
    "Mini": Path(__file__).parent / "mini.ckpt",
    "AGI1": Path(__file__).parent / "agi1.ckpt",
}


class Candidate(NamedTuple):
    """An answer: a grid of its real size, and its share of the votes."""

    grid: Int[np.ndarray, "h w"]
    confidence: float


def _answer(
    networks: SolverNetwork, key: PRNGKeyArray, bank: PairBank, queries: Queries
) -> tuple[Int[Array, "members queries h w"], Float[Array, "members queries"]]:
    """Return the answers of every member, each under augmentations of its own."""

    def member(network: SolverNetwork, key: PRNGKeyArray) -> tuple[Array, Array]:
        keys = jax.random.split(key, len(queries.rows))
        draw = lambda k, query: draw_query(k, bank, query, network.config)
        example, symmetry, colors = jax.vmap(draw)(keys, queries)
        best, score = _read_in_parts(network, example)
        grids = jax.vmap(undo_augmentation)(best, symmetry, colors)
        return grids.astype(jnp.int8), jnp.sum(score, axis=(1, 2))

    keys = jax.random.split(key, members_of(networks))
    return eqx.filter_vmap(member)(networks, keys)


def _read_in_parts(
    network: SolverNetwork, examples: Example
) -> tuple[Int[Array, "n h w"], Float[Array, "n h w"]]:
    """Return the likeliest color of every asked cell, and its log probability.

    All 512 examples at once would take 15 GB for grids of 12 x 12 cells.
    """

    def read(part: Example) -> tuple[Array, Array]:
        logits = jax.nn.log_softmax(network(part)[-1, :, 0])
        return jnp.argmax(logits, axis=-1), jnp.max(logits, axis=-1)

    config, count = network.config, examples.task.shape[0]
    most = max(1, WEIGHTS // (4 * config.heads * config.tokens**2))
    size = next(n for n in range(min(most, count), 0, -1) if count % n == 0)
    if size == count:
        return read(examples)
    split = lambda x: x.reshape(-1, size, *x.shape[1:])
    joined = lambda x: x.reshape(count, *x.shape[2:])
    return jax.tree.map(joined, jax.lax.map(read, jax.tree.map(split, examples)))


# One trace for each size of network and of batch.
_compiled_answer = compile_once(_answer, max_traces=None)


def members_of(networks: SolverNetwork) -> int:
    """Return how many networks are stacked."""
    return networks.head.shape[0]


def rank_candidates(
    grids: Int[np.ndarray, "votes h w"], scores: Float[np.ndarray, " votes"]
) -> tuple[Candidate, ...]:
    """Return the different answers, most voted first.

    A vote weighs the square root of the probability that it gave its answer: chosen on
    held-out demonstrations between equal weights and the probability itself.
    """
    cells = grids.reshape(len(grids), -1)
    found, which = np.unique(cells, axis=0, return_inverse=True)
    weights = np.bincount(which.reshape(-1), weights=np.exp(scores / 2))
    order = np.argsort(-weights, kind="stable")
    total = weights.sum()
    answers = found.reshape(-1, *grids.shape[1:])
    return tuple(
        Candidate(cut_padding(answers[i]), float(weights[i] / total)) for i in order
    )


def predict_all(
    networks: SolverNetwork,
    tasks: JaxArcTask,
    votes: int = VOTES,
    key: PRNGKeyArray | None = None,
    meter: Meter | None = None,
) -> list[list[tuple[Candidate, ...]]]:
    """Return ranked answers to every test of every task of a stack.

    The outputs of tests are not read. Each network is asked `votes` times about each
    test, every time with other demonstrations, turned and recolored.
    """
    if votes < 1:
        raise ValueError(f"votes is {votes}: ask at least once")
    config, key = networks.config, jax.random.key(0) if key is None else key
    tasks = fit_tasks(tasks, config.height, config.width)
    queries, bank = ask_tests(tasks), demonstrations(tasks, config.pairs)
    number = len(queries.rows)
    if number == 0:
        raise ValueError("the tasks have no tests: there is no output to predict")
    total, size = votes * number, min(AT_ONCE, votes * number)
    parts, meter = [], meter or Meter()
    meter.start("votes", total)
    try:
        for start in range(0, total, size):
            # The last batch wraps around to the first questions, to keep one shape.
            which = np.arange(start, start + size) % number
            part = jax.tree.map(lambda x, at=which: np.asarray(x)[at], queries)
            keys = jax.random.fold_in(key, start)
            found = _compiled_answer(networks, keys, bank, jax.device_put(part))
            parts.append(jax.device_get(found))
            meter.show(min(start + size, total))
    finally:
        meter.stop()
    joined = (np.concatenate(x, axis=1)[:, :total] for x in zip(*parts, strict=True))
    grids, scores = (x.reshape(-1, number, *x.shape[2:]) for x in joined)
    answers: list[list[tuple[Candidate, ...]]] = [[] for _ in range(bank.tasks)]
    for nth, row in enumerate(np.asarray(queries.rows)):
        answers[row].append(rank_candidates(grids[:, nth], scores[:, nth]))
    return answers


def predict(
    networks: SolverNetwork,
    task: JaxArcTask,
    votes: int = VOTES,
    key: PRNGKeyArray | None = None,
) -> list[tuple[Candidate, ...]]:
    """Return ranked answers to every test of one task, as `predict_all`."""
    stack = jax.tree.map(lambda x: x[None], task)
    return predict_all(networks, stack, votes, key)[0]


def play_candidates(
    tasks: JaxArcTask,
    answers: Sequence[Sequence[Sequence[Candidate]]],
    kinds: tuple[str, ...] = KINDS,
) -> EvaluationResult:
    """Submit the two best answers to every test of a stack of tasks.

    `answers` are those of `predict_all`, and `kinds` the kinds of action that `plan`
    may use: none of them paints cell by cell. Answers with holes, which cannot be
    drawn, are passed over; a test that has no other submits its input.
    """
    grids = {
        (row, nth): [
            c.grid for c in ranked[:ATTEMPTS] if c.grid.size and c.grid.min() >= 0
        ]
        for row, tests in enumerate(answers)
        for nth, ranked in enumerate(tests)
    }
    shapes = [grid.shape for both in grids.values() for grid in both]
    sizes = np.vstack([np.asarray(tasks.sizes).reshape(-1, 2), *shapes])
    height, width = sizes.max(axis=0).tolist()
    # No plan is longer than one that resizes, paints every cell and submits.
    config = UNCHECKED.with_settings(max_episode_steps=height * width + 2)
    fitted = fit_tasks(tasks, height, width)
    env = Environment(params=EnvParams.from_config(config, fitted, episode_mode=1))
    plans = np.asarray(make_player(env, grids, kinds).actions)
    watched, key = PlaceObservationWrapper(env), jax.random.key(0)
    # Each attempt as the first of its own player: one program plays them all.
    players = [PlannedPlayer(jax.device_put(plans[[nth]])) for nth in (0, -1)]
    results = [evaluate(player, watched, key, 1, greedy=True) for player in players]
    names = ("solved", "similarity", "steps", "rewards", "actions")
    each = [{name: getattr(result, name) for name in names} for result in results]
    both = jax.tree.map(lambda *attempts: np.concatenate(attempts), *each)
    return dataclasses.replace(results[0], **both)


def count_actions(result: EvaluationResult) -> np.ndarray:
    """Return the number of actions of the first attempt that solved each test.

    Tests that were not solved are left out.
    """
    solved = result.solved.any(axis=0)
    first = result.solved.argmax(axis=0)
    return result.steps[first, np.arange(len(first))][solved]


def save_solver(
    path: Path | str, networks: SolverNetwork, about: dict[str, Any] | None = None
) -> Path:
    """Write stacked networks, in half precision: they are read back as single.

    The learned ids of tasks are left out, because answers do not use them.
    """
    unknown = eqx.tree_at(lambda n: n.ids, networks, networks.ids[:, -1:])
    half = jax.tree.map(lambda x: x.astype(jnp.float16), unknown)
    config = dataclasses.asdict(networks.config) | {"tasks": 0}
    members = members_of(networks)
    metadata = {"config": config, "members": members, "about": about or {}}
    return save_tree(path, half, metadata=metadata)


@functools.lru_cache(maxsize=4)
def load_solver(path: Path | str | None = None, data: str = "Mini") -> SolverNetwork:
    """Return the stacked networks of a file, by default those of the package.

    These were trained on the demonstrations of `data`, "Mini" or "AGI1".
    """
    found = Path(path) if path is not None else SHIPPED[data]
    header = read_header(found)["metadata"]
    if not {"config", "members"} <= header.keys():
        raise ValueError(
            f"{found} is not a solver: `jaxrig arc train-solver` writes solver.ckpt"
        )
    config = NetworkConfig(**header["config"])
    one = eqx.filter_eval_shape(lambda: SolverNetwork(jax.random.key(0), config))
    like = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((header["members"], *x.shape), jnp.float16), one
    )
    # Cast by NumPy: on the device every shape would be a program to compile.
    widen = lambda x: jax.device_put(np.asarray(x).astype(np.float32))
    return jax.tree.map(widen, load_tree(found, like))
