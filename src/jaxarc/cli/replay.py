"""`jaxrig arc replay`: a recorded episode in the terminal, as a page, as a picture."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from jaxarc.cli.output import PathOption, check_picture, count_steps, write_svg
from jaxarc.draw import (
    EpisodeFrame,
    draw_episode,
    draw_task,
    episode_section,
    grid_panel,
)
from jaxarc.draw.episodes import describe_step
from jaxarc.draw.terminal import beside
from jaxarc.recording import Recording, load_recording, run_again
from jaxarc.types import JaxArcTask
from jaxrig.console import check_writable, make_console
from jaxrig.report import Figure, Report, Section


def replay(
    file: Annotated[Path, typer.Argument(help="Written by rollout or play.")],
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page that plays it.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Write its key moments as a picture.")
    ] = None,
    speed: Annotated[
        float,
        typer.Option(
            "--speed",
            min=0.0,
            help="Frames per second; 0 shows all, one below another.",
        ),
    ] = 0.0,
    path: PathOption = "",
) -> None:
    """Run a recorded episode again, check its rewards, and show it."""
    check_writable(html)
    check_picture(svg)
    console = make_console()
    recording = load_recording(file)
    recording = recording.in_folder(path) if path else recording
    task = recording.load_task()
    frames = run_again(recording, task)
    title = f"Task {recording.task}"
    if html is not None:
        written = episode_report(recording, task, frames).write(html)
        console.print(f"open {written}", markup=False, highlight=False)
    if svg is not None:
        write_svg(draw_episode(frames, title), svg, console)
    if html is None and svg is None:
        _show_frames(frames, speed, console)
    console.print(summarize(recording, frames), highlight=False)


def episode_report(
    recording: Recording, task: JaxArcTask, frames: list[EpisodeFrame]
) -> Report:
    """One page: the task, and the episode to play."""
    title = f"Task {recording.task}"
    report = Report(title, summarize(recording, frames))
    picture = draw_task(task, include_test=recording.mode == 1)
    report.add(Section("Task", Figure(picture.as_svg(), alt=title)))
    report.add(episode_section("Episode", frames))
    return report


def summarize(recording: Recording, frames: list[EpisodeFrame]) -> str:
    """The whole episode in a sentence."""
    kind = "test" if recording.mode else "demonstration"
    total = sum(recording.rewards)
    return (
        f"{recording.task} ({recording.dataset}), {kind} {recording.pair + 1}: "
        f"{count_steps(len(frames) - 1)}, return {total:+.3f}, similarity "
        f"{frames[-1].similarity:.3f}; every reward came out as recorded."
    )


def frame_view(number: int, frame: EpisodeFrame, console: Console) -> RenderableType:
    """One step: what was done, the grid after it, and the target if known."""
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
