"""What the package plugs into the command `jaxrig`; each part is imported on use."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxrig.systems import System

if TYPE_CHECKING:
    import typer

    from jaxrig.bench import Benchmark
    from jaxrig.progress import Meter
    from jaxrig.report import Section


def demo(meter: "Meter") -> "Section":
    """Run the system's part of `jaxrig demo`."""
    from acbo.demo import causal_section

    return causal_section(meter)


def benchmarks() -> "Sequence[Benchmark]":
    """Return the benchmarks of `jaxrig bench causal`."""
    from acbo.benchmarks import BENCHMARKS

    return BENCHMARKS


def commands() -> "typer.Typer":
    """Return the commands of `jaxrig causal`."""
    from acbo.cli import app

    return app


SYSTEM = System("causal", "Causal optimization", demo, benchmarks, commands)
