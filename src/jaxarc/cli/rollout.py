"""`jaxrig arc rollout`: a random agent, its speed and its luck."""

import dataclasses
import enum
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from jaxarc.cli.logs import LogOption, log_recording, read_log_settings
from jaxarc.cli.output import PathOption
from jaxarc.config import JaxArcConfig
from jaxarc.log import ExperimentLogger
from jaxarc.recording import save_recording
from jaxarc.registration import make
from jaxarc.rollouts import RolloutResult, random_rollout
from jaxrig.console import check_writable, make_console
from jaxrig.progress import make_meter
from jaxrig.report.numerals import format_number


class Actions(enum.StrEnum):
    """How an action selects cells."""

    point = "point"
    bbox = "bbox"
    mask = "mask"


def rollout(
    env_id: Annotated[
        str, typer.Argument(help="Data set and selector, e.g. AGI1-train, AGI1.")
    ] = "AGI1-train",
    envs: Annotated[int, typer.Option("--envs", min=1, help="Environments.")] = 256,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Steps of each.")] = 200,
    seed: Annotated[int, typer.Option("--seed", help="Of starts and actions.")] = 0,
    actions: Annotated[
        Actions, typer.Option("--actions", help="How actions select cells.")
    ] = Actions.point,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write one episode here, for `replay`."),
    ] = None,
    path: PathOption = "",
    log: LogOption = None,
) -> None:
    """Run a random agent in many environments and say how fast and how well."""
    check_writable(out)
    settings = None if log is None else read_log_settings(log)
    console = make_console()
    env, _ = make(env_id, dataset_path=path)
    meter = make_meter()
    result = random_rollout(env, actions.value, envs, steps, seed, meter)
    console.print(rollout_table(env_id, result))
    if settings is not None:
        log_rollout(settings, result, console)
    if out is None:
        return
    if result.recording is None:
        raise ValueError("the tasks of this environment have no ids: nothing to replay")
    save_recording(out, result.recording)
    line = f"wrote {out} (task {result.recording.task}): jaxrig arc replay {out}"
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def log_rollout(
    settings: JaxArcConfig, result: RolloutResult, console: Console
) -> None:
    """Tell of the first episode step by step, and of all in figures."""
    with ExperimentLogger(settings, console=console) as log:
        if result.recording is not None:
            log_recording(log, result.recording, result.recording.load_task())
        names = [f.name for f in dataclasses.fields(result) if f.name != "recording"]
        log.log_evaluation_summary({name: getattr(result, name) for name in names})
        if log.path is not None:
            line = f"logged to {log.path}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def rollout_table(env_id: str, result: RolloutResult) -> Table:
    """What a rollout did, a line for each figure."""
    table = Table(box=box.SIMPLE, show_header=False)
    rate = result.solved / result.episodes if result.episodes else 0.0
    total = result.environments * result.steps
    rows = (
        ("environment", f"{env_id}, {result.tasks} tasks, {result.form} actions"),
        ("steps", f"{result.environments:,} x {result.steps:,} = {total:,}"),
        ("steps per second", format_number(result.steps_per_second)),
        ("seconds", f"{result.seconds:.2f}, and {result.compile_seconds:.2f} to start"),
        ("episodes finished", f"{result.episodes:,}"),
        ("solved", f"{result.solved:,} ({rate:.2%})"),
        ("mean return", f"{result.mean_return:.3f}"),
        ("mean length", f"{result.mean_length:.1f}"),
        ("best similarity", f"{result.best_similarity:.3f}"),
    )
    for name, value in rows:
        table.add_row(name, value)
    return table
