"""`jaxrig arc rollout`, `demonstrate` and `replay`: episodes made and repeated."""

import enum
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from jaxarc.cli.tasks import PathOption, check_picture, write_picture
from jaxarc.config import EnvironmentConfig, JaxArcConfig
from jaxarc.draw import (
    EpisodeFrame,
    draw_episode,
    draw_task,
    episode_section,
    grid_panel,
)
from jaxarc.draw.terminal import beside
from jaxrig.console import check_writable, make_console, say
from jaxrig.report import Figure, Report, Section
from jaxrig.report.text import count_of, format_number

if TYPE_CHECKING:
    from jaxarc.log import ExperimentLogger
    from jaxarc.recording import Recording
    from jaxarc.rollouts import RolloutResult
    from jaxarc.types import JaxArcTask

GROUPS = ("visualization", "storage", "logging", "wandb")


EnvironmentArgument = Annotated[
    str, typer.Argument(help="Data set and selector, e.g. AGI1-train or Mini-all.")
]
LogOption = Annotated[
    Path | None,
    typer.Option(
        help="Log the run as configured in this YAML file (groups visualization, "
        "storage, logging and wandb, and environment.debug_level)."
    ),
]
EnvsOption = Annotated[int, typer.Option(min=1, help="Number of environments.")]
SeedOption = Annotated[int, typer.Option(help="Random seed.")]


class Actions(enum.StrEnum):
    """How an action selects cells."""

    point = "point"
    bbox = "bbox"
    mask = "mask"


def rollout(
    env_id: EnvironmentArgument = "AGI1-train",
    envs: EnvsOption = 256,
    steps: Annotated[int, typer.Option(min=1, help="Steps per environment.")] = 200,
    seed: SeedOption = 0,
    actions: Annotated[
        Actions, typer.Option(help="Action type: how actions select cells.")
    ] = Actions.point,
    out: Annotated[
        Path | None, typer.Option(help="Write one episode to this file, for `replay`.")
    ] = None,
    path: PathOption = "",
    log: LogOption = None,
) -> None:
    """Run a random agent in many environments; report its speed and its results."""
    check_writable(out)
    # Imported here, so that help and typos do not wait for JAX.
    from jaxarc.log import ExperimentLogger
    from jaxarc.recording import save_recording
    from jaxarc.registration import make
    from jaxarc.rollouts import random_rollout
    from jaxrig.progress import make_meter

    settings = None if log is None else read_log_settings(log)
    console = make_console()
    env, _ = make(env_id, dataset_path=path)
    # What a log needs and is not there is refused before the run.
    logger = settings and ExperimentLogger(settings, console=console)
    result = random_rollout(env, actions.value, envs, steps, seed, make_meter())
    console.print(rollout_table(env_id, result))
    if logger is not None:
        with logger:
            if result.recording is not None:
                log_recording(logger, result.recording, result.recording.load_task())
            figures = {n: v for n, v in vars(result).items() if n != "recording"}
            logger.log_evaluation_summary(figures)
            if logger.path is not None:
                say(console, f"logged to {logger.path}")
    if out is None:
        return
    if result.recording is None:
        raise ValueError("the tasks of this environment have no ids: nothing to replay")
    save_recording(out, result.recording)
    task = result.recording.task
    say(console, f"wrote {out} (task {task}): jaxrig arc replay {out}")


def demonstrate(
    env_id: EnvironmentArgument = "AGI1-train",
    out: Annotated[
        Path, typer.Option(help="Write the episodes to this .jsonl file.")
    ] = Path("demonstrations.jsonl"),
    actions: Annotated[
        Actions,
        typer.Option(
            help="Action type: bbox draws with boxes, flood fills, pastes and turns, "
            "point cell by cell."
        ),
    ] = Actions.bbox,
    tests: Annotated[
        bool, typer.Option("--tests", help="Use the test pairs, with their answers.")
    ] = False,
    steps: Annotated[int, typer.Option(min=1, help="Most steps of an episode.")] = 100,
    path: PathOption = "",
) -> None:
    """Write expert episodes, one for every pair: a data set for imitation."""
    check_writable(out)
    if actions is Actions.mask:
        raise typer.BadParameter("plans are of boxes or points: use bbox or point")
    import numpy as np

    from jaxarc.learning import demonstrations, planner
    from jaxarc.recording import LINES, save_recordings
    from jaxarc.registration import make

    if out.suffix != LINES:
        raise typer.BadParameter(f"{out.name} does not end in {LINES}")
    console = make_console()
    env, _ = make(
        env_id,
        dataset_path=path,
        episode_mode=int(tests),
        selection_format=actions.value,
        max_episode_steps=steps,
    )
    kinds = planner.KINDS if actions is Actions.bbox else ()
    recordings, lengths = demonstrations.demonstrate(env, kinds)
    save_recordings(out, recordings)
    say(
        console,
        f"{count_of(len(recordings), 'episode')}, one for each pair of {env_id}; a "
        f"plan has {np.median(lengths):g} actions at the median and {lengths.max()} at "
        "most, with Submit",
    )
    if missing := len(lengths) - len(recordings):
        say(console, f"{missing} pairs need more than {steps} steps and are left out")
    say(console, f"wrote {out}: jaxrig arc replay {out} --episode 1")


def rollout_table(env_id: str, result: "RolloutResult") -> Table:
    """Return a table of a rollout, a line for each figure."""
    rate = result.solved / result.episodes if result.episodes else 0.0
    total = result.environments * result.steps
    tasks = count_of(result.tasks, "task")
    means = "unknown (no episode ended)", "unknown"
    if result.episodes:
        means = f"{result.mean_return:.3f}", f"{result.mean_length:.1f}"
    figures = {
        "environment": f"{env_id}, {tasks}, {result.form} actions",
        "steps": f"{result.environments:,} x {result.steps:,} = {total:,}",
        "steps per second": format_number(result.steps_per_second),
        "seconds": f"{result.seconds:.2f}, and {result.compile_seconds:.2f} to start",
        "episodes finished": f"{result.episodes:,}",
        "solved": f"{result.solved:,} ({rate:.2%})",
        "mean return": means[0],
        "mean length": means[1],
        "best similarity": f"{result.best_similarity:.3f}",
    }
    table = Table(box=box.SIMPLE, show_header=False)
    for name, value in figures.items():
        table.add_row(name, value)
    return table


def read_log_settings(path: Path) -> JaxArcConfig:
    """Read the settings of a log; a file that sets anything else is refused."""
    if not path.is_file():
        raise typer.BadParameter(f"{path} does not exist")
    config = JaxArcConfig.from_yaml(path)
    level = config.environment.debug_level
    defaults = JaxArcConfig(environment=EnvironmentConfig(debug_level=level))
    changed = {n for n, value in vars(config).items() if value != getattr(defaults, n)}
    odd = sorted(changed - set(GROUPS))
    if odd:
        raise typer.BadParameter(
            f"{path} sets {', '.join(odd)}, which are set by command-line options: "
            f"keep only {', '.join(GROUPS)} and environment.debug_level"
        )
    return config


def log_recording(
    log: "ExperimentLogger", recording: "Recording", task: "JaxArcTask", number: int = 0
) -> None:
    """Run a recorded episode again and log every step."""
    from jaxarc.log import create_start_log, create_step_log
    from jaxarc.recording import begin_recording, play_recording

    state = begin_recording(recording, task)
    log.log_task_start(create_start_log(task, state=state, episode_num=number))
    for transition in play_recording(recording, task):
        log.log_step(create_step_log(*transition, episode_num=number))
    log.log_episode_summary()


def replay(
    file: Annotated[
        Path, typer.Argument(help="File written by `rollout`, `play` or `demonstrate`.")
    ],
    episode: Annotated[
        int, typer.Option(min=1, help="Which episode of a file of many.")
    ] = 1,
    html: Annotated[
        Path | None, typer.Option(help="Write a page that plays the episode.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Write a picture of its key moments.")
    ] = None,
    speed: Annotated[
        float,
        typer.Option(min=0.0, help="Frames per second; 0 prints all frames at once."),
    ] = 0.0,
    path: PathOption = "",
) -> None:
    """Replay a recorded episode and verify its rewards."""
    check_writable(html)
    check_picture(svg)
    from jaxarc.recording import load_recording, run_again

    console = make_console()
    recording = load_recording(file, episode)
    recording = recording.in_folder(path) if path else recording
    task = recording.load_task()
    frames = run_again(recording, task)
    if html is not None:
        title = f"Task {recording.task}"
        report = Report(title, summarize(recording, frames))
        picture = draw_task(task, scheme="arc", include_test=recording.mode == 1)
        report.add(Section("Task", Figure(picture.as_svg(), alt=title)))
        report.add(episode_section("Episode", frames))
        say(console, f"open {report.write(html)}")
    if svg is not None:
        picture = draw_episode(frames, f"Task {recording.task}")
        write_picture(picture, svg, console)
    if html is None and svg is None:
        _show_frames(frames, speed, console)
    console.print(summarize(recording, frames), highlight=False)


def summarize(recording: "Recording", frames: list[EpisodeFrame]) -> str:
    """Describe the whole episode in a sentence."""
    kind = "test" if recording.mode else "demonstration"
    total = sum(recording.rewards)
    return (
        f"{recording.task} ({recording.dataset}), {kind} {recording.pair + 1}: "
        f"{count_of(len(frames) - 1, 'step')}, return {total:+z.3f}, similarity "
        f"{frames[-1].similarity:.3f}; all rewards match the recording."
    )


def frame_view(number: int, frame: EpisodeFrame, console: Console) -> RenderableType:
    """Show one step: its operation, the grid after it, and the target if known."""
    panels = [grid_panel(frame.grid, title="Working grid")]
    if frame.target is not None:
        target = grid_panel(frame.target, title="Target", border_style="output")
        panels.append(target)
    return Group(Text(f"{number}: {frame}", "bold"), beside(panels, console))


def _show_frames(frames: list[EpisodeFrame], speed: float, console: Console) -> None:
    if speed == 0:
        for number, frame in enumerate(frames):
            console.print(frame_view(number, frame, console))
        return
    with Live(console=console, auto_refresh=False) as live:
        for number, frame in enumerate(frames):
            live.update(frame_view(number, frame, console), refresh=True)
            time.sleep(1 / speed)
