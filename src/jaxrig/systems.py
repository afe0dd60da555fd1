"""How a system plugs into the command line: one `System` behind an entry point.

A package names its own in the entry-point group `jaxrig.systems`; what it offers then
appears in `jaxrig demo`, `jaxrig bench` and as a sub-command.
"""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import typer

from jaxrig.bench import Benchmark
from jaxrig.machine import system_entries
from jaxrig.progress import Meter
from jaxrig.report import Section

Demo = Callable[[Meter], Section]


@dataclass(frozen=True)
class System:
    """What a system gives to the command line; leave out what it does not have.

    A part is the object itself or, so that one part does not import the others, where
    to find it: `"package.module:name"`.
    """

    name: str
    title: str
    demo: Demo | str | None = None
    benchmarks: tuple[Benchmark, ...] | str = ()
    app: typer.Typer | str | None = None

    def load_demo(self) -> Demo | None:
        """Return the demo, if there is one."""
        return _resolve(self.demo)

    def load_benchmarks(self) -> tuple[Benchmark, ...]:
        """Return all benchmarks."""
        return _resolve(self.benchmarks)

    def load_app(self) -> typer.Typer | None:
        """Return the commands, if there are any."""
        return _resolve(self.app)


CORE = System(
    "core",
    "The core",
    demo="jaxrig.demo:core_section",
    benchmarks="jaxrig.benchmarks:BENCHMARKS",
)


def _resolve(part: Any) -> Any:
    return pkgutil.resolve_name(part) if isinstance(part, str) else part


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
