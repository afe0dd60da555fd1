"""`jaxrig trace test`: whether tracking is right on this machine."""

import typer

from jaxrig.console import make_console, say
from jaxtrace.workflow.trial import TRIALS


def run_trials() -> None:
    """Track particles whose paths are known, and compare."""
    console, failed = make_console(), 0
    for trial in TRIALS:
        error = trial.run()
        passed = error <= trial.allowed
        failed += not passed
        word = "ok" if passed else "WRONG"
        say(console, f"{word:5} {trial.name}: off by {error:.1e} of {trial.allowed:g}")
    if failed:
        raise typer.Exit(1)
