"""How a system plugs into the command line: one `System` behind an entry point.

A package names its own in the entry-point group `jaxrig.systems`; what it offers then
appears in `jaxrig demo`, `jaxrig bench` and as a sub-command.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jaxrig.machine import system_entries

if TYPE_CHECKING:
    import typer

    from jaxrig.bench import Benchmark
    from jaxrig.progress import Meter
    from jaxrig.report import Section
    from jaxrig.studio.rooms import Room

Demo = Callable[["Meter"], "Section"]


@dataclass(frozen=True)
class System:
    """What a system gives to the command line; leave out what it does not have.

    Each part is a function that imports what it needs when it is called, so that one
    part does not load the others.
    """

    name: str
    title: str
    demo: Demo | None = None
    benchmarks: Callable[[], "Sequence[Benchmark]"] = tuple
    commands: Callable[[], "typer.Typer"] | None = None
    studio: "Callable[[], Room] | None" = None


def package_system(name: str, title: str, package: str) -> System:
    """Return the system of a package laid out as ours are; imports nothing yet.

    Its parts are `demo.<name>_section`, `benchmarks.BENCHMARKS`, `cli.app` and
    `studio.ROOM`.
    """

    def part(module: str, what: str) -> Any:
        return getattr(importlib.import_module(f"{package}.{module}"), what)

    return System(
        name,
        title,
        lambda meter: part("demo", f"{name}_section")(meter),
        lambda: part("benchmarks", "BENCHMARKS"),
        lambda: part("cli", "app"),
        lambda: part("studio", "ROOM"),
    )


def _core_benchmarks() -> "Sequence[Benchmark]":
    from jaxrig.benchmarks import BENCHMARKS

    return BENCHMARKS


# The commands of the core are those of `jaxrig` itself.
CORE = System("core", "The core", benchmarks=_core_benchmarks)


def load_system(name: str) -> System:
    """Return an installed system; ImportError says why it cannot be had."""
    if name == CORE.name:
        return CORE
    entry = next((entry for entry in system_entries() if entry.name == name), None)
    if entry is None:
        raise ImportError(f"no system {name!r} is installed")
    try:
        system = entry.load()
    # No such module, no such name. Anything else is a bug of the system and is raised
    # as it is: to catch it here would hide where it happened.
    except (ImportError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ImportError(f"{name} does not load: {reason}") from error
    if not isinstance(system, System):
        raise ImportError(f"{name} does not load: {entry.value} is not a jaxrig System")
    return system


def load_systems() -> tuple[list[System], dict[str, str]]:
    """Return the core and the installed systems, and why others do not load."""
    systems, problems = [CORE], {}
    for entry in system_entries():
        try:
            systems.append(load_system(entry.name))
        except ImportError as error:
            problems[entry.name] = str(error)
    return systems, problems
