"""The command `jaxrig arc`: look at tasks, play them, and run agents on them."""

import typer

from jaxarc.cli.episodes import replay, rollout
from jaxarc.cli.play import play
from jaxarc.cli.tasks import download, list_tasks, show
from jaxarc.cli.train import evaluate, train

app = typer.Typer(
    name="arc",
    help="ARC tasks: show and play them, train and evaluate agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("list")(list_tasks)
app.command("show")(show)
app.command("play")(play)
app.command("rollout")(rollout)
app.command("train")(train)
app.command("eval")(evaluate)
app.command("replay")(replay)
app.command("download")(download)

__all__ = ["app"]
