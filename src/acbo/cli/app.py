"""All commands of `jaxrig causal`, one module for each."""

import typer

from acbo.cli.evaluate import evaluate_models, list_problems, optimize
from acbo.cli.suggest import graph, suggest
from acbo.cli.train import train
from jaxrig.bench import bench_command

app = typer.Typer(
    name="causal",
    help="Find what causes a target and how to move it, from few experiments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("suggest")(suggest)
app.command("optimize")(optimize)
app.command("problems")(list_problems)
app.command("graph")(graph)
app.command("train")(train)
app.command("eval")(evaluate_models)
app.command("bench")(bench_command("causal", "acbo.benchmarks:BENCHMARKS"))
