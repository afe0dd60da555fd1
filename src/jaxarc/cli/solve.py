"""`jaxrig arc solve` and `train-solver`: predict the outputs of tests."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.columns import Columns
from rich.console import Console
from rich.text import Text

from jaxarc.cli import episodes
from jaxarc.cli.tasks import DatasetOption, PathOption, table_of
from jaxarc.cli.train import RunOption, UpdatesOption
from jaxarc.draw.terminal import grid_panel, print_task
from jaxarc.tasks import parsers
from jaxarc.tasks.sources import dataset_kind, split_of
from jaxrig.atomic import write_file
from jaxrig.console import OutOption, check_writable, make_console, say
from jaxrig.report.text import count_of

if TYPE_CHECKING:
    from jaxarc.learning.solver.network import NetworkConfig
    from jaxarc.learning.solver.voting import Candidate
    from jaxarc.types import JaxArcTask

    Answers = list[list[tuple[Candidate, ...]]]

ATTEMPTS = 2
# Below this share of the votes nine of ten first answers were wrong
# (docs/baselines.md).
GUESS = 0.8

TargetArgument = Annotated[
    str, typer.Argument(help="Id of a task, or a data set such as Mini or AGI1-eval.")
]
PlayOption = Annotated[
    bool, typer.Option("--play", help="Also draw and submit the answers step by step.")
]
CheckpointOption = Annotated[
    Path | None,
    typer.Option(
        help="solver.ckpt of a run; default: the one that comes with the package."
    ),
]
VotesOption = Annotated[int, typer.Option(min=1, help="Votes per network and test.")]
GeneratedOption = Annotated[
    int, typer.Option(min=0, help="Number of generated tasks; 0: none.")
]
SideOption = Annotated[
    int, typer.Option(min=1, help="Only tasks with grids of up to SIDE x SIDE cells.")
]
IdsOption = Annotated[
    bool,
    typer.Option(
        "--without-ids",
        help="Let tasks be known by demonstrations alone, not by learned ids.",
    ),
]


def solve(
    target: TargetArgument,
    dataset: DatasetOption = "AGI1",
    path: PathOption = "",
    checkpoint: CheckpointOption = None,
    votes: VotesOption = 16,
    seed: episodes.SeedOption = 0,
    answer: Annotated[
        bool, typer.Option("--answer", help="Also show the true outputs.")
    ] = False,
    play: PlayOption = False,
    out: OutOption = None,
) -> None:
    """Predict the outputs of tests from the demonstrations, with two attempts.

    Of a data set it counts the tests whose known output is among the attempts. With
    --play the environment scores them, drawn in few actions and by painting cells only.

    Two solvers come with the package, trained on the demonstrations of MiniARC and, for
    grids of up to 12 x 12 cells, of ARC-AGI-1. Of other tasks they solve few:
    `jaxrig arc train-solver` trains on those.
    """
    check_writable(out)
    import jax

    from jaxarc.learning.solver import load_solver, predict_all
    from jaxrig.progress import make_meter

    console = make_console()
    whole = split_of(target)
    name, split = whole or (dataset, "all")
    trained = "Mini" if dataset_kind(name) == "Mini" else "AGI1"
    networks = load_solver(checkpoint, trained)
    parser = parsers.open_dataset(name, path, split)
    ids = _select(parser, target if whole is None else "", networks.config)
    if checkpoint is None and trained == "AGI1":
        _say_unseen(console, ids)
    tasks = parser.buffer(ids)
    answers = predict_all(networks, tasks, votes, jax.random.key(seed), make_meter())
    rows = [
        _describe(parser, task_id, nth, ranked)
        for task_id, tests in zip(ids, answers, strict=True)
        for nth, ranked in enumerate(tests)
    ]
    if whole:
        _print_counts(console, rows, len(parser.tasks.ids) - len(ids))
    else:
        console.print(Text(f"{target} ({dataset})", "bold"))
        print_task(parser.get_raw_task(target), console=console, answers=answer)
        _print_answers(console, answers[0])
    played = _play(tasks, answers) if play else []
    if played:
        console.print(table_of(played, caption="actions of solved tests, with Submit"))
    if out is not None:
        record = {"checkpoint": str(checkpoint or "shipped"), "votes": votes}
        record |= {"seed": seed, "tests": rows} | ({"played": played} if play else {})
        write_file(out, json.dumps(record, indent=1) + "\n")
        say(console, f"wrote {out}")


def train(
    dataset: Annotated[str, typer.Argument(help="Data set to train on.")] = "Mini",
    out: RunOption = Path("runs/solver"),
    path: PathOption = "",
    updates: UpdatesOption = 134,
    members: Annotated[
        int, typer.Option(min=1, help="Number of networks to vote.")
    ] = 2,
    features: Annotated[int, typer.Option(min=4, help="Width of the networks.")] = 256,
    batch: Annotated[
        int, typer.Option(min=2, help="Examples per step and network.")
    ] = 512,
    steps: Annotated[int, typer.Option(min=1, help="Steps per update.")] = 50,
    generated: GeneratedOption = 200_000,
    side: SideOption = 12,
    without_ids: IdsOption = False,
    seed: episodes.SeedOption = 0,
) -> None:
    """Train a solver on the demonstrations of a data set; run again to resume.

    Generated tasks are mixed in. Writes checkpoints, metrics.jsonl and solver.ckpt.
    """
    import jax

    from jaxarc.learning.solver import SolverConfig, examples, train_solver
    from jaxarc.learning.solver.network import NetworkConfig
    from jaxarc.learning.solver.voting import save_solver
    from jaxrig.progress import make_meter

    console = make_console()
    buffer = _training_tasks(console, dataset, path, side)
    network = NetworkConfig(
        *buffer.get_grid_shape(),
        tasks=len(buffer.num_train_pairs),
        features=features,
        hidden=2 * features,
    )
    known = {"id_only": 0.0, "context_only": 1.0} if without_ids else {}
    share = () if generated else (0.0,)
    mixture = examples.MixtureConfig(*share, **known)
    config = SolverConfig(
        *(network, mixture, members),
        batch=batch,
        updates=updates,
        scan=steps,
        seed=seed,
        data=f"{dataset_kind(dataset)} and {generated} generated tasks",
    )
    bank = examples.demonstrations(buffer, network.pairs)
    key = jax.random.fold_in(jax.random.key(seed), 1)
    size = generated, network.pairs + 1, *buffer.get_grid_shape()
    made = examples.generate_tasks(key, *size) if generated else None
    state = train_solver(config, bank, made, out, make_meter())
    about = {"data": dataset, "tasks": network.tasks, "generated": generated}
    about |= {"steps": config.steps, "batch": batch, "seed": seed}
    written = save_solver(out / "solver.ckpt", state.average, about)
    say(console, f"wrote {written}")
    place = f" --path {path}" if path else ""
    say(console, f"next: jaxrig arc solve {dataset}{place} --checkpoint {written}")


def _training_tasks(
    console: Console, dataset: str, path: str, side: int
) -> "JaxArcTask":
    """Return the tasks with small enough grids, padded to the largest of these."""
    from jaxarc.learning.training import fit_tasks

    parser = parsers.open_dataset(dataset, path)
    ids = _fitting(parser, side, side)
    if not ids:
        raise ValueError(
            f"every task of {dataset} has a grid of more than {side} x {side} cells: "
            "raise --side"
        )
    left_out = len(parser.tasks.ids) - len(ids)
    if left_out:
        say(
            console,
            f"{count_of(left_out, 'task')} with grids above {side} x {side} left out",
        )
    buffer = parser.buffer(ids)
    largest = int(np.asarray(buffer.sizes).max())
    return fit_tasks(buffer, largest, largest)


def _fitting(parser: parsers.TaskParser, height: int, width: int) -> list[str]:
    """Return the ids of the tasks whose grids are all within a size."""
    tasks = parser.tasks
    too_large = set(tasks.owners[(tasks.sizes > (height, width)).any(axis=1)].tolist())
    return [task_id for row, task_id in enumerate(tasks.ids) if row not in too_large]


def _select(
    parser: parsers.TaskParser, target: str, config: "NetworkConfig"
) -> list[str]:
    """Return the ids of the tasks to solve: all that fit, or the target."""
    ids = _fitting(parser, config.height, config.width)
    if target:
        parser.get_raw_task(target)  # or say which ids there are
    if not ids or (target and target not in ids):
        name = parser.config.dataset_name
        what = f"task {target} of {name}" if target else f"every task of {name}"
        raise ValueError(
            f"{what} has a grid of more than {config.height} x {config.width} cells, "
            "which is all that this solver reads: train one for larger grids with "
            f"`jaxrig arc train-solver {name} --side N`, best on a GPU, and pass its "
            "solver.ckpt as --checkpoint"
        )
    return [target] if target else ids


def _say_unseen(console: Console, ids: list[str]) -> None:
    """Say how many tasks the included solver knows nothing of, and what that means."""
    unseen = len(set(ids) - set(parsers.open_dataset("AGI1").tasks.ids))
    if unseen:
        # docs/baselines.md
        say(
            console,
            f"{unseen} of {len(ids)} tasks are not in ARC-AGI-1, on whose "
            "demonstrations this solver was trained: of such tests it solved 1 of 78, "
            "and agreeing votes were wrong too",
        )


def _describe(
    parser: parsers.TaskParser, task_id: str, nth: int, ranked: "tuple[Candidate, ...]"
) -> dict[str, Any]:
    """Return the attempts at one test and, if its output is known, which are right."""
    truth = parser.get_raw_task(task_id).test[nth][1]
    attempts = ranked[:ATTEMPTS]
    right = [truth is not None and np.array_equal(c.grid, truth) for c in attempts]
    return {
        "task": task_id,
        "test": nth,
        "attempts": [c.grid.tolist() for c in attempts],
        "confidence": [round(c.confidence, 4) for c in attempts],
        "right": None if truth is None else right,
    }


def _play(tasks: "JaxArcTask", answers: "Answers") -> list[dict[str, Any]]:
    """Return what the environment says of the answers, drawn in two ways."""
    from jaxarc.learning.planner import KINDS
    from jaxarc.learning.solver.voting import count_actions, play_candidates

    figures = []
    for name, kinds in (("few actions", KINDS), ("painting cells only", ())):
        result = play_candidates(tasks, answers, kinds)
        actions = count_actions(result)
        figures.append(
            {
                "drawn by": name,
                "tests": int(result.known.sum()),
                "one attempt": int(result.solved[0].sum()),
                "two attempts": len(actions),
                "median actions": float(np.median(actions)) if len(actions) else None,
                "most actions": int(actions.max()) if len(actions) else None,
            }
        )
    return figures


def _print_answers(console: Console, tests: "list[tuple[Candidate, ...]]") -> None:
    for nth, ranked in enumerate(tests):
        panels = [
            grid_panel(c.grid, title=f"test {nth + 1}: {c.confidence:.0%} of votes")
            for c in ranked[:ATTEMPTS]
        ]
        console.print(Columns(panels))
        if ranked[0].confidence < GUESS:
            say(console, f"test {nth + 1} is a guess: the votes disagree")


def _print_counts(console: Console, rows: list[dict[str, Any]], left_out: int) -> None:
    known = [row for row in rows if row["right"] is not None]
    names = {f"at least {GUESS:.0%} of votes": [True], "a guess": [False]}
    table = []
    for name, sure in (names | {"all": [True, False]}).items():
        some = [row for row in known if (row["confidence"][0] >= GUESS) in sure]
        first, two = (sum(any(row["right"][:n]) for row in some) for n in (1, ATTEMPTS))
        line = {"first answer": name, "tests": len(some), "right, one attempt": first}
        table.append(line | {"two attempts": two})
    console.print(table_of(table))
    if left_out:
        say(console, f"{count_of(left_out, 'task')} with larger grids left out")
    if len(known) < len(rows):
        say(console, f"{len(rows) - len(known)} tests have no known output")
