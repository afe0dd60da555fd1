"""All commands of `jaxrig arc`, one module for each."""

import typer

from jaxarc.cli.download import download
from jaxarc.cli.listing import list_tasks
from jaxarc.cli.play import play
from jaxarc.cli.replay import replay
from jaxarc.cli.rollout import rollout
from jaxarc.cli.show import show
from jaxarc.cli.train import evaluate_run, train
from jaxrig.bench import bench_command

app = typer.Typer(
    name="arc",
    help="ARC tasks: look at them, play them, run agents on them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("list")(list_tasks)
app.command("show")(show)
app.command("play")(play)
app.command("rollout")(rollout)
app.command("train")(train)
app.command("eval")(evaluate_run)
app.command("replay")(replay)
app.command("download")(download)
app.command("bench")(bench_command("arc", "jaxarc.benchmarks:BENCHMARKS"))
