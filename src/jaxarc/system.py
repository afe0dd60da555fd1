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
    from jaxarc.demo import arc_section

    return arc_section(meter)


def benchmarks() -> "Sequence[Benchmark]":
    """Return the benchmarks of `jaxrig bench arc`."""
    from jaxarc.benchmarks import BENCHMARKS

    return BENCHMARKS


def commands() -> "typer.Typer":
    """Return the commands of `jaxrig arc`."""
    from jaxarc.cli import app

    return app


SYSTEM = System("arc", "ARC environments", demo, benchmarks, commands)
