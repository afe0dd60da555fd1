"""The commands of `jaxrig trace`; each imports what it needs when it is called."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from jaxrig.atomic import atomic_write
from jaxrig.console import (
    Command,
    Group,
    check_writable,
    make_console,
    say,
    warnings_as_lines,
)

if TYPE_CHECKING:
    from jaxtrace.workflow.case import Case

app = typer.Typer(
    name="trace",
    cls=Group,
    help="Particle tracking: run cases, inspect data, convert files.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command("run", cls=Command)
def run(
    case: Annotated[
        Path,
        typer.Argument(help="Case file (see `jaxrig trace new`), or run folder."),
    ],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Overwrite a run in the same folder.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before writing very much.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder in place of the case's own.")
    ] = None,
) -> None:
    """Track the particles of a case, then draw, export and report.

    A run that was stopped resumes from its last frames.
    """
    from jaxrig.progress import make_meter
    from jaxrig.report.text import format_number
    from jaxtrace.workflow.case import CASE_FILE, load_case
    from jaxtrace.workflow.run import run_case, stored_case

    console = make_console()
    with warnings_as_lines(console):
        read = stored_case(case) if case.is_dir() else load_case(case)
        if out is not None:
            read = replace(read, output=replace(read.output, folder=str(out)))
        try:
            outcome = run_case(
                read,
                overwrite=overwrite,
                meter=make_meter(),
                tell=lambda line: say(console, line),
                approve=lambda words: yes or _agrees(words),
            )
        except KeyboardInterrupt as stop:
            if (read.folder / CASE_FILE).is_file():
                stop.add_note(f"resume with: jaxrig trace run {case}")
            raise
    if not outcome.share:
        say(console, "all frames already existed; the other outputs were written again")
        return
    seconds = outcome.seconds
    say(
        console,
        f"tracking {seconds['tracking']:.1f} s, {format_number(outcome.rate)} "
        f"particle-steps per second, compilation {seconds['compiling']:.1f} s",
    )
    for page in outcome.files:
        if page.suffix == ".html":
            say(console, f"open {page}")


def _agrees(words: str) -> bool:
    """Ask someone at a terminal; a script has to say --yes."""
    return sys.stdin.isatty() and typer.confirm(f"This run {words}. Go on?")


@app.command("new", cls=Command)
def write_starter(
    case: Annotated[Path, typer.Argument(help="Case file to write, e.g. case.toml.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Data files, a pattern in quotes, a folder or a case."),
    ] = None,
    velocity: Annotated[
        list[str] | None,
        typer.Option("--velocity", help="Velocity array; twice or more: components."),
    ] = None,
    allow_nan: Annotated[
        bool, typer.Option("--allow-nan", help="Accept values that are not finite.")
    ] = False,
    time_scale: Annotated[
        float | None,
        typer.Option(
            "--time-scale", help="Time of a step, where file names count steps."
        ),
    ] = None,
    geometry: Annotated[
        str | None,
        typer.Option("--geometry", help="sphere or flat, where files do not say."),
    ] = None,
    velocity_units: Annotated[
        str | None,
        typer.Option("--velocity-units", help="Such as m/s, in place of the files'."),
    ] = None,
) -> None:
    """Write a commented case file fitted to data files, or for an analytic flow."""
    from jaxtrace.workflow.prepare import NEW_WORDS, in_words
    from jaxtrace.workflow.starter import facts, starter, survey

    check_writable(case)
    if case.exists():
        raise typer.BadParameter(f"{case} exists: give another name or remove it")
    console = make_console()
    found = None
    if files:
        spec = files[0] if len(files) == 1 else files
        name = velocity[0] if velocity and len(velocity) == 1 else velocity
        with warnings_as_lines(console), in_words(NEW_WORDS):
            said = {"geometry": geometry, "velocity_units": velocity_units}
            found = survey(spec, name, allow_nan, time_scale, **said)
        for fact in facts(found):
            say(console, fact)
    # Cases side by side do not write into one folder.
    results = "out" if case.stem == "case" else f"{case.stem}_out"
    with atomic_write(case) as file:
        file.write(starter(found, case.absolute().parent, results).encode())
    say(console, f"wrote {case}")
    say(console, f"next: jaxrig trace run {case}")


@app.command("info", cls=Command)
def show_info(
    files: Annotated[
        list[str],
        typer.Argument(help="File patterns, folders, collections, stores, cases."),
    ],
) -> None:
    """Show the contents of files: time slices, extent, speeds, frames, or a case."""
    from jaxtrace.workflow.prepare import in_words

    console = make_console()
    with warnings_as_lines(console), in_words():
        described = _describe_all(files)
    for name, facts in described.items():
        table = Table(box=box.SIMPLE, title=name, show_header=False)
        table.title_justify = "left"
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for key, value in facts.items():
            table.add_row(key, str(value))
        console.print(table, markup=False)


def _describe_all(files: list[str]) -> dict[str, dict[str, Any]]:
    """Return what each file holds; or all, where one is not understood alone."""
    from jaxtrace.io.formats import open_slices

    try:
        return {name: describe(name) for name in files}
    except ValueError:
        if len(files) == 1:
            raise
        # Such as those of u, of v and of the mesh.
        return {", ".join(files): _describe_slices(open_slices(files))}


def describe(name: str) -> dict[str, Any]:
    """Return what a path or pattern holds, by name of the fact."""
    from jaxtrace.io.convert import holds_trajectories, read_recorded
    from jaxtrace.io.formats import open_slices
    from jaxtrace.io.store import SUFFIX, open_store
    from jaxtrace.workflow.case import TABLES, load_case

    path = Path(name)
    if path.suffix.lower() == ".toml":
        case = load_case(path)
        tables = {kind: getattr(case, kind) for kind in TABLES}
        return {
            f"{kind}.{key}": value
            for kind, table in tables.items()
            if table is not None
            for key, value in table.to_mapping().items()
        }
    if not holds_trajectories(path):
        return _describe_slices(open_slices(name))
    if path.suffix.lower() != SUFFIX:
        whole = read_recorded(path)
        return _describe_frames(whole.times, {"positions": whole.positions.shape[1:]})
    with open_store(path, "r") as store:
        arrays = {n: f"{v.shape} {v.dtype}" for n, v in store.layout.items()}
        times, metadata = store.read()[0], store.metadata
    facts = _describe_frames(times, arrays)
    return facts | {str(key): str(value) for key, value in metadata.items()}


def _describe_frames(times: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {"frames": len(times)}
    facts["arrays"] = ", ".join(f"{name} {about}" for name, about in arrays.items())
    if len(times):
        facts["times"] = f"{times[0]:.6g} to {times[-1]:.6g}"
    return facts


def _describe_slices(slices: Any) -> dict[str, Any]:
    import numpy as np

    from jaxtrace.io.convert import span_words
    from jaxtrace.io.geometry import corners

    geometry, values = slices.read_slice(0)
    low, high = corners(geometry)
    speeds = np.linalg.norm(values[..., :3].reshape(-1, 3), axis=1)
    size = values.nbytes * len(slices) / 2**20
    numbers = lambda corner: ", ".join(f"{float(end):z.6g}" for end in corner)
    facts = {
        "slices": len(slices),
        "times": span_words(slices.times, vars(slices)),
        "geometry": geometry.words,
        "lowest corner": numbers(low),
        "highest corner": numbers(high),
        "speed of the first slice": f"{speeds.min():.4g} to {speeds.max():.4g}, "
        f"mean {speeds.mean():.4g}",
        "memory of all slices": f"{size:,.1f} MiB",
    }
    if slices.held():
        facts["other variables"] = ", ".join(slices.held())
    return facts | {f"note {i}": note for i, note in enumerate(slices.describe(), 1)}


@app.command("convert", cls=Command)
def convert_files(
    source: Annotated[
        str, typer.Argument(help="Trajectories (.zarr, .h5) or velocities.")
    ],
    target: Annotated[
        Path,
        typer.Argument(
            help="Output file; trajectories: .vtp, .pvd, .nc, .csv, .parquet, .h5, "
            ".npz; "
            "velocities: .pvd, .nc."
        ),
    ],
) -> None:
    """Convert trajectories or velocities to the format given by the output's suffix."""
    from jaxrig.progress import make_meter, starting
    from jaxtrace.io.convert import convert

    console, meter = make_console(), make_meter()
    check_writable(target)
    with warnings_as_lines(console):
        try:
            written = convert(source, target, starting(meter, "converting"))
        finally:
            meter.stop()
    say(console, f"wrote {written}")


@app.command("ftle", cls=Command)
def run_ftle(
    source: Annotated[
        str,
        typer.Argument(
            help="Case file, data (a file, a folder or a pattern in quotes), or "
            "analytic flow."
        ),
    ],
    start: Annotated[float | None, typer.Option("--t0", help="Start time.")] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            "--duration", "-T", help="Integration time; negative for backward in time."
        ),
    ] = None,
    resolution: Annotated[
        int | None, typer.Option("--resolution", help="Nodes along the longer axis.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Output folder.")] = None,
) -> None:
    """Write the finite-time Lyapunov exponent over a plane, as arrays and a picture."""
    from jaxrig.progress import make_meter
    from jaxtrace.workflow.results import compute_ftle, save_ftle

    console, meter = make_console(), make_meter()
    with warnings_as_lines(console):
        case = _ftle_case(source, out)
        given = {"t0": start, "T": duration, "resolution": resolution}
        changes = {name: value for name, value in given.items() if value is not None}
        case = replace(case, ftle=replace(case.ftle, **changes))
        check_writable(case.folder / "ftle.npz")
        nodes = case.ftle.resolution
        say(console, f"computing with {nodes} nodes along the longer axis ...")
        try:
            found = compute_ftle(case, meter)
        finally:
            meter.stop()
        for path in save_ftle(found, case.folder):
            say(console, f"wrote {path}")


def _ftle_case(source: str, out: Path | None) -> "Case":
    from jaxtrace.fields.analytic import FLOWS
    from jaxtrace.workflow.case import Case, load_case
    from jaxtrace.workflow.tables import Data, Flow, Output

    if Path(source).suffix.lower() == ".toml":
        case = load_case(source)
        if out is None:
            return case
        return replace(case, output=replace(case.output, folder=str(out)))
    output = Output(folder=str(out or "out"))
    named = Path(source).suffix or len(Path(source).parts) > 1 or "*" in source
    if source in FLOWS or not (named or Path(source).exists()):
        return Case(flow=Flow(source), output=output)
    return Case(data=Data(source), output=output)


@app.command("test", cls=Command)
def run_trials() -> None:
    """Track particles with known trajectories and report the errors."""
    from jaxtrace.workflow import selftest

    console, failed = make_console(), 0
    for trial in selftest.TRIALS:
        error = trial.run()
        passed = error <= trial.allowed
        failed += not passed
        word = "ok" if passed else "WRONG"
        say(console, f"{word:5} {trial.name}: off by {error:.1e} of {trial.allowed:g}")
    if failed:
        raise typer.Exit(1)
