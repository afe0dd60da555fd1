"""All commands of `jaxrig trace`, one module for each."""

import typer

from jaxrig.bench import bench_command
from jaxtrace.cli.convert import convert_files
from jaxtrace.cli.ftle import run_ftle
from jaxtrace.cli.info import show_info
from jaxtrace.cli.run import resume, run
from jaxtrace.cli.selftest import run_trials
from jaxtrace.cli.starter import write_starter

app = typer.Typer(
    name="trace",
    help="Particles in flows: track them, look at data, convert files.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run")(run)
app.command("resume")(resume)
app.command("new")(write_starter)
app.command("info")(show_info)
app.command("convert")(convert_files)
app.command("ftle")(run_ftle)
app.command("bench")(bench_command("trace", "jaxtrace.benchmarks:BENCHMARKS"))
app.command("test")(run_trials)
