"""The command `bench`, the same for the front door and for every system's own."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from jaxrig.bench import Benchmark, choose, run_benchmark, write_results
from jaxrig.console import make_console, say
from jaxrig.outputs import check_writable
from jaxrig.report.numerals import format_number

JsonOption = Annotated[
    Path | None, typer.Option("--json", help="Write the results to this file.")
]
ListOption = Annotated[
    bool, typer.Option("--list", help="List the benchmarks and stop.")
]


def run_benchmarks(
    known: Sequence[Benchmark],
    names: Sequence[str],
    json: Path | None = None,
    list_only: bool = False,
    console: Console | None = None,
) -> None:
    """Run the benchmarks of these names, show tables, and write JSON if asked to."""
    console = console or make_console()
    try:
        chosen = choose(known, names)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if list_only:
        for benchmark in chosen:
            say(console, f"{benchmark.name}: {benchmark.summary}")
        return
    check_writable(json)
    results = []
    for benchmark in chosen:
        say(console, f"{benchmark.name}: {benchmark.summary}")
        records = run_benchmark(benchmark)
        console.print(bench_table(records))
        results += records
        if json is not None:  # after each one, so that an interrupted run loses nothing
            write_results(json, results)
    if json is not None:
        say(console, f"wrote {json}")


def bench_command(
    system: str, benchmarks: Sequence[Benchmark]
) -> Callable[[list[str] | None, Path | None, bool], None]:
    """A system's own `bench`; its benchmarks go by their names with or without it."""
    prefix = f"{system}."
    shorts = ", ".join(b.name.removeprefix(prefix) for b in benchmarks)
    words = f"Names: {shorts}; default: all."

    def run_bench(
        names: Annotated[list[str] | None, typer.Argument(help=words)] = None,
        json: JsonOption = None,
        list_only: ListOption = False,
    ) -> None:
        chosen = [f"{prefix}{name.removeprefix(prefix)}" for name in names or []]
        run_benchmarks(benchmarks, chosen, json, list_only)

    run_bench.__doc__ = f"Measure this machine; the same as `jaxrig bench {system}`."
    return run_bench


def bench_table(records: Sequence[dict]) -> Table:
    """Rates of all cases with their spread and compile time."""
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
