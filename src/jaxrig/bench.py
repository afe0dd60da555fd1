"""Measurements with everything needed to judge them, as a table and as JSON."""

import datetime
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import typer
from rich import box
from rich.table import Table

from jaxrig.atomic import write_file
from jaxrig.console import check_writable, make_console, say
from jaxrig.machine import describe_machine, package_versions
from jaxrig.memory import device_memory, host_memory
from jaxrig.report.text import format_number
from jaxrig.timing import Timing

SCHEMA = "jaxrig.bench/1"


@dataclass(frozen=True)
class Measurement:
    """One timed case of a benchmark."""

    case: str
    timing: Timing
    items: int  # handled in one run
    unit: str  # what an item is, in the plural
    shapes: dict[str, Any]
    state_bytes: int = 0


@dataclass(frozen=True)
class Benchmark:
    """A named job that yields measurements."""

    name: str
    summary: str
    run: Callable[[], Sequence[Measurement]]


def choose(benchmarks: Sequence[Benchmark], names: Sequence[str]) -> list[Benchmark]:
    """Return benchmarks by names or prefixes (`core` takes all of `core.*`)."""
    for name in names:
        if not any(_matches(b.name, name) for b in benchmarks):
            known = ", ".join(b.name for b in benchmarks)
            raise ValueError(f"unknown benchmark {name!r}; available: {known}")
    if not names:
        return list(benchmarks)
    return [b for b in benchmarks if any(_matches(b.name, n) for n in names)]


def _matches(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}.")


def run_benchmark(benchmark: Benchmark) -> list[dict[str, Any]]:
    """Run one benchmark and give a flat record for each of its cases."""
    return [
        {
            "benchmark": benchmark.name,
            "case": measured.case,
            "unit": measured.unit,
            "items": measured.items,
            "shapes": measured.shapes,
            "repeats": len(measured.timing.seconds),
            "median_seconds": measured.timing.median,
            "p95_seconds": measured.timing.p95,
            "spread": measured.timing.spread,
            "per_second": measured.timing.per_second(measured.items),
            "per_cpu_second": measured.timing.per_cpu_second(measured.items),
            "compile_seconds": measured.timing.compile_seconds,
            "state_bytes": measured.state_bytes,
            "peak_host_bytes": host_memory().peak,
            "peak_device_bytes": device_memory().peak,
        }
        for measured in benchmark.run()
    ]


def document(results: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return records together with date, machine and versions."""
    now = datetime.datetime.now(datetime.UTC)
    return {
        "schema": SCHEMA,
        "date": now.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "versions": package_versions(),
        "backend": jax.default_backend(),
        "results": list(results),
    }


def as_json(results: Iterable[dict[str, Any]]) -> str:
    """Return records with date, machine and versions as JSON."""
    return json.dumps(document(results), indent=1)


def run_benchmarks(
    known: Sequence[Benchmark],
    names: Sequence[str],
    out: Path | None = None,
    print_json: bool = False,
    list_only: bool = False,
) -> None:
    """Run the benchmarks of these names; show tables or JSON, write JSON to a file."""
    console = make_console()
    try:
        chosen = choose(known, names)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if list_only:
        for benchmark in chosen:
            say(console, f"{benchmark.name}: {benchmark.summary}")
        return
    check_writable(out)
    results = []
    for benchmark in chosen:
        records = run_benchmark(benchmark)
        if not print_json:
            say(console, f"{benchmark.name}: {benchmark.summary}")
            console.print(bench_table(records))
        results += records
        if out is not None:  # after each one, so that an interrupted run loses nothing
            write_file(out, as_json(results))
    if print_json:
        typer.echo(as_json(results))
    elif out is not None:
        say(console, f"wrote {out}")


def bench_table(records: Sequence[dict[str, Any]]) -> Table:
    """Return a table of the rates of all cases with their spread and compile time."""
    table = Table(box=box.SIMPLE)
    table.add_column("case", overflow="fold")
    for column in ("per second", "per CPU-s", "spread", "compile"):
        table.add_column(column, justify="right", no_wrap=True, min_width=len(column))
    for record in records:
        table.add_row(
            f"{record['case']}: {record['unit']}",
            format_number(record["per_second"]),
            format_number(record["per_cpu_second"]),
            f"{record['spread']:.0%}",
            f"{record['compile_seconds']:.2f} s",
        )
    return table
