"""How a system plugs into the command line: one `System` behind an entry point.

A package names its own in the entry-point group `jaxrig.systems`; what it offers then
appears in `jaxrig demo`, `jaxrig bench` and as a sub-command.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points

import typer

from jaxrig.bench import Benchmark
from jaxrig.progress import Meter
from jaxrig.report import Section

GROUP = "jaxrig.systems"
LOADING_ERRORS = (  # what running a broken module raises
    ImportError,
    AttributeError,
    NameError,
    SyntaxError,
    TypeError,
    ValueError,
    LookupError,
    OSError,
    RuntimeError,
)


@dataclass(frozen=True)
class System:
    """What a system gives to the front door; leave out what it does not have."""

    name: str
    title: str
    demo: Callable[[Meter], Section] | None = None
    benchmarks: tuple[Benchmark, ...] = ()
    app: typer.Typer | None = None


def find_systems() -> tuple[list[System], dict[str, str]]:
    """Installed systems, the core first, and why others cannot be loaded, by name.

    One system that does not import must not take the command line with it.
    """
    found, broken = [], {}
    for entry in entry_points(group=GROUP):
        try:
            system = entry.load()
        except LOADING_ERRORS as error:
            broken[entry.name] = f"{type(error).__name__}: {error}"
            continue
        if isinstance(system, System):
            found.append(system)
        else:
            broken[entry.name] = f"{entry.value} is no jaxrig System"
    found.sort(key=lambda system: (system.name != "core", system.name))
    return found, broken
