"""A case: everything one run is made of, read from a TOML file and written back."""

import dataclasses
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxrig.atomic import atomic_write
from jaxrig.settings import Checked, nearest, readers
from jaxtrace.types import is_url
from jaxtrace.workflow import tables

CASE_FILE = "case_as_run.toml"


@dataclass(frozen=True)
class Case:
    """The tables of a case; either `data` or `flow` says what moves the particles."""

    data: tables.Data | None = None
    flow: tables.Flow | None = None
    particles: tables.Particles = field(default_factory=tables.Particles)
    time: tables.Time = field(default_factory=tables.Time)
    tracking: tables.Tracking = field(default_factory=tables.Tracking)
    boundary: tables.Boundary = field(default_factory=tables.Boundary)
    motion: tables.Motion = field(default_factory=tables.Motion)
    sample: tables.Sample = field(default_factory=tables.Sample)
    behave: tables.Behave = field(default_factory=tables.Behave)
    density: tables.Density = field(default_factory=tables.Density)
    pictures: tables.Pictures = field(default_factory=tables.Pictures)
    ftle: tables.FTLE = field(default_factory=tables.FTLE)
    output: tables.Output = field(default_factory=tables.Output)

    def __post_init__(self) -> None:
        if (self.data is None) == (self.flow is None):
            raise ValueError("a case has either [data] or [flow]: give one of them")
        if self.sample.variables and self.data is None and not self.sample.files:
            raise ValueError(
                "sample.variables needs data files, and a [flow] has none: give files "
                "in [sample]"
            )
        if self.time.use_data_dt and self.data is None:
            raise ValueError("time.use_data_dt needs slices: a [flow] has none")

    @property
    def folder(self) -> Path:
        """The folder of the results."""
        return Path(self.output.folder)


TABLES: dict[str, type[Checked]] = {
    kind.section: kind
    for kind in vars(tables).values()
    if isinstance(kind, type) and issubclass(kind, Checked) and kind.section
}


def read_case(content: Mapping[str, Any]) -> Case:
    """Return the case of a mapping of tables, as a TOML file gives it."""
    given = {}
    for name, table in content.items():
        if name not in TABLES:
            raise TypeError(_unknown(name, isinstance(table, Mapping)))
        if not isinstance(table, Mapping):
            raise TypeError(f"{name} is {table!r}: it is a table, written [{name}]")
        given[name] = TABLES[name].from_mapping(table)
    return Case(**given)


def _unknown(name: str, table: bool) -> str:
    """Return what to write in place of a table or a key that does not exist."""
    owners = [kind.section for kind in TABLES.values() if name in readers(kind)]
    if owners and not table:
        return f"no key {name!r} outside tables; it belongs to [{owners[0]}]"
    return f"no table [{name}]; {nearest(name, list(TABLES))}"


def load_case(path: str | os.PathLike[str]) -> Case:
    """Return the case of a file; its paths count from the folder of the file."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: no such file; write one with `jaxrig trace new`"
        )
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    try:
        case = read_case(content)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from error
    return _anchored(case, path.parent.absolute())


def _anchored(case: Case, folder: Path) -> Case:
    place = lambda name: str(folder / Path(name).expanduser())
    anchored = lambda name: name if is_url(name) else place(name)
    change = dataclasses.replace
    parts: dict[str, Any] = {
        "output": change(case.output, folder=place(case.output.folder)),
        "sample": change(case.sample, files=tuple(map(anchored, case.sample.files))),
    }
    if case.particles.file is not None:
        file = anchored(case.particles.file)
        parts["particles"] = change(case.particles, file=file)
    if case.data is not None:
        named = case.data.pattern
        one = isinstance(named, str)
        pattern = anchored(named) if one else tuple(map(anchored, named))
        parts["data"] = change(case.data, pattern=pattern)
    return change(case, **parts)


def write_case(case: Case, path: str | os.PathLike[str]) -> Path:
    """Write a case with every value spelled out, whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(case_text(case).encode())
    return path


def case_text(case: Case) -> str:
    """Return the case as TOML."""
    lines: list[str] = []
    for name in TABLES:
        table = getattr(case, name)
        if table is not None:
            lines += [f"[{name}]"]
            lines += [f"{k} = {as_toml(v)}" for k, v in table.to_mapping().items()]
            lines += [""]
    return "\n".join(lines)


def quote(words: str) -> str:
    """Return words as a string of TOML, which escapes what JSON escapes."""
    return json.dumps(words, ensure_ascii=False)


def as_toml(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k} = {as_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return repr(value)
