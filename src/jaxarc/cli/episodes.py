"""Roll out a random agent, log its episodes, and replay recorded ones."""

import dataclasses
import time
from pathlib import Path

import jax
import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from jaxarc.cli.tasks import write_picture
from jaxarc.config import EnvironmentConfig, JaxArcConfig
from jaxarc.draw import (
    EpisodeFrame,
    draw_episode,
    draw_task,
    episode_section,
    grid_panel,
)
from jaxarc.draw.episodes import describe_step
from jaxarc.draw.terminal import beside
from jaxarc.envs.functional import arc_reset
from jaxarc.log import ExperimentLogger, create_start_log, create_step_log
from jaxarc.recording import (
    Recording,
    load_recording,
    play_recording,
    run_again,
    save_recording,
)
from jaxarc.registration import make
from jaxarc.rollouts import RolloutResult, random_rollout
from jaxarc.types import JaxArcTask
from jaxrig.console import make_console
from jaxrig.progress import make_meter
from jaxrig.report import Figure, Report, Section
from jaxrig.report.text import format_number

GROUPS = ("visualization", "storage", "logging", "wandb")


def run_rollout(
    env_id: str,
    form: str,
    environments: int,
    steps: int,
    seed: int,
    out: Path | None,
    path: str,
    log: Path | None,
) -> None:
    """Run a random agent, print its figures, and keep one episode if asked to."""
    settings = None if log is None else read_log_settings(log)
    console = make_console()
    env, _ = make(env_id, dataset_path=path)
    result = random_rollout(env, form, environments, steps, seed, make_meter())
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
    """Log the first episode step by step, and the figures of all."""
    with ExperimentLogger(settings, console=console) as log:
        if result.recording is not None:
            log_recording(log, result.recording, result.recording.load_task())
        names = [f.name for f in dataclasses.fields(result) if f.name != "recording"]
        log.log_evaluation_summary({name: getattr(result, name) for name in names})
        if log.path is not None:
            line = f"logged to {log.path}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def rollout_table(env_id: str, result: RolloutResult) -> Table:
    """Return a table of a rollout, a line for each figure."""
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


def read_log_settings(path: Path) -> JaxArcConfig:
    """Read the settings of a log; a file that sets anything else is refused."""
    if not path.is_file():
        raise typer.BadParameter(f"{path} does not exist")
    config = JaxArcConfig.from_yaml(path)
    level = config.environment.debug_level
    defaults = JaxArcConfig(environment=EnvironmentConfig(debug_level=level))
    names = {field.name for field in dataclasses.fields(config)} - set(GROUPS)
    odd = [n for n in sorted(names) if getattr(config, n) != getattr(defaults, n)]
    if odd:
        raise typer.BadParameter(
            f"{path} sets {', '.join(odd)}, which are set by command-line options: "
            f"keep only {', '.join(GROUPS)} and environment.debug_level"
        )
    return config


def log_recording(
    log: ExperimentLogger, recording: Recording, task: JaxArcTask, number: int = 0
) -> None:
    """Run a recorded episode again and log every step."""
    start = recording.mode, recording.pair
    state, _ = arc_reset(jax.random.key(0), recording.config, task, *start)
    log.log_task_start(create_start_log(task, state=state, episode_num=number))
    for transition in play_recording(recording, task):
        log.log_step(create_step_log(*transition, episode_num=number))
    log.log_episode_summary()


def show_replay(
    file: Path, html: Path | None, svg: Path | None, speed: float, path: str
) -> None:
    """Run a recorded episode again; print it, or write it as a page or picture."""
    console = make_console()
    recording = load_recording(file)
    recording = recording.in_folder(path) if path else recording
    task = recording.load_task()
    frames = run_again(recording, task)
    if html is not None:
        written = episode_report(recording, task, frames).write(html)
        console.print(f"open {written}", markup=False, highlight=False)
    if svg is not None:
        picture = draw_episode(frames, f"Task {recording.task}")
        write_picture(picture, svg, console)
    if html is None and svg is None:
        _show_frames(frames, speed, console)
    console.print(summarize(recording, frames), highlight=False)


def episode_report(
    recording: Recording, task: JaxArcTask, frames: list[EpisodeFrame]
) -> Report:
    """Return a page of the task and the episode, to play."""
    title = f"Task {recording.task}"
    report = Report(title, summarize(recording, frames))
    picture = draw_task(task, include_test=recording.mode == 1)
    report.add(Section("Task", Figure(picture.as_svg(), alt=title)))
    report.add(episode_section("Episode", frames))
    return report


def summarize(recording: Recording, frames: list[EpisodeFrame]) -> str:
    """Describe the whole episode in a sentence."""
    kind = "test" if recording.mode else "demonstration"
    total = sum(recording.rewards)
    return (
        f"{recording.task} ({recording.dataset}), {kind} {recording.pair + 1}: "
        f"{count_steps(len(frames) - 1)}, return {total:+.3f}, similarity "
        f"{frames[-1].similarity:.3f}; all rewards match the recording."
    )


def count_steps(steps: int) -> str:
    """Return a number of steps in words."""
    return f"{steps} step" if steps == 1 else f"{steps} steps"


def frame_view(number: int, frame: EpisodeFrame, console: Console) -> RenderableType:
    """Show one step: its operation, the grid after it, and the target if known."""
    words = (
        f"{number}: {describe_step(frame.operation, frame.reward, frame.similarity)}"
    )
    panels = [grid_panel(frame.grid, title="Working grid")]
    if frame.target is not None:
        target = grid_panel(frame.target, title="Target", border_style="output")
        panels.append(target)
    return Group(Text(words, "bold"), beside(panels, console))


def _show_frames(frames: list[EpisodeFrame], speed: float, console: Console) -> None:
    if speed == 0:
        for number, frame in enumerate(frames):
            console.print(frame_view(number, frame, console))
        return
    with Live(console=console, auto_refresh=False) as live:
        for number, frame in enumerate(frames):
            live.update(frame_view(number, frame, console), refresh=True)
            time.sleep(1 / speed)
