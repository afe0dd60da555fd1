"""Measure what starting costs, in CPU seconds of fresh processes, and print JSON.

python benchmarks/startup.py > startup.json
python benchmarks/startup.py --repeats 3 version help

CPU seconds (user and system, children included), not wall time: other work on the
machine changes them little. `import` cases subtract `import jax, equinox`. "first" runs
with an empty cache folder, "again" with the one that the first run filled.
"""

import argparse
import datetime
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from jaxrig.machine import describe_machine, package_versions

ROOT = Path(__file__).parent.parent
COMMAND = "from jaxrig.cli import main; main()"
ROWS = 60  # of the table that `causal suggest` reads
KEPT = "import jaxrig.compile_cache; jaxrig.compile_cache.keep_compilations()"
COUNT = """
import json
from jaxrig import record_compilations
with record_compilations() as log:
    exec(compile(open("example.py").read(), "README.md", "exec"), {})
print(json.dumps(len(log.compilations)))
"""


def cpu_seconds(
    code: str, words: tuple[str, ...], folder: Path, status: int = 0
) -> tuple[float, str]:
    """CPU seconds of one Python process, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT / "src"),
            "JAXRIG_CACHE": str(folder / "cache"),
            "JAX_PLATFORMS": "cpu",
        },
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != status:
        raise RuntimeError(f"{words or code}: {done.stderr}")
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return used, done.stdout


def write_inputs(folder: Path) -> None:
    """A table for `causal suggest`, and README's first example as a script."""
    rows = [f"{i % 7},{(2 * i) % 5},{i % 7 + 0.1 * (i % 3)}" for i in range(ROWS)]
    (folder / "data.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    text = (ROOT / "README.md").read_text()
    found = re.search(
        r"^```python\n(import jax\nimport jaxarc.*?)^```", text, re.M | re.S
    )
    assert found is not None
    (folder / "example.py").write_text(found[1])


def command(*words: str, warm: bool = True, status: int = 0):
    """A case: the CPU seconds of a command, once before the measured run if warm."""

    def run(folder: Path) -> dict[str, float]:
        if warm:
            cpu_seconds(COMMAND, words, folder, status)
        return {"cpu_seconds": cpu_seconds(COMMAND, words, folder, status)[0]}

    return run


def importing(package: str):
    """A case: what importing a package costs beyond what it stands on."""

    def run(folder: Path) -> dict[str, float]:
        base, _ = cpu_seconds("import jax, equinox", (), folder)
        whole, _ = cpu_seconds(f"import jax, equinox, {package}", (), folder)
        return {"cpu_seconds": whole - base}

    return run


def readme_example(folder: Path) -> dict[str, float]:
    """The first ARC example: without a cache, and in a second process with one."""
    used, printed = cpu_seconds(COUNT, (), folder)
    cpu_seconds(KEPT + COUNT, (), folder)
    again = cpu_seconds(KEPT + COUNT, (), folder)[0]
    programs = int(printed.splitlines()[-1])
    return {"cpu_seconds": used, "programs": programs, "second_process": again}


SIMULATE = """
import time
import jax, numpy as np
import jaxtrace as jt
axes = [np.linspace(0, size, n) for size, n in ((2, 16), (1, 12), (1, 8))]
values = np.random.default_rng(0).normal(0, 0.2, (3, 16, 12, 8, 3)).astype(np.float32)
field = jt.StructuredGridSampler(values, *axes, times=np.linspace(0, 1, 3))
seeds = np.random.default_rng(1).random((1000, 3)).astype(np.float32)
for _ in range(2):
    start = time.process_time()
    jax.block_until_ready(jt.simulate(field, seeds, np.linspace(0, 1, 11)).positions)
    print(time.process_time() - start)
"""


def simulate_twice(folder: Path) -> dict[str, float]:
    """Two plain calls of `simulate` on a grid without a cache: CPU seconds of each."""
    first, second = map(float, cpu_seconds(SIMULATE, (), folder)[1].split())
    return {"first_call": first, "second_call": second}


SUGGEST = ("causal", "suggest", "data.csv", "--target", "y", "--maximize")
CASES = {
    "version": command("--version"),
    "help": command("--help"),
    "typo": command("cause", status=2),
    "import jaxarc": importing("jaxarc"),
    "import jaxtrace": importing("jaxtrace"),
    "import acbo": importing("acbo"),
    "arc show": command("arc", "show", "00d62c1b"),
    "causal suggest, first": command(*SUGGEST, warm=False),
    "causal suggest, again": command(*SUGGEST),
    "README's first ARC example": readme_example,
    "simulate, two calls": simulate_twice,
}


def measure(name: str, repeats: int) -> dict[str, object]:
    """All repeats of a case, each in a folder of its own."""
    runs = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            write_inputs(Path(folder))
            runs.append(CASES[name](Path(folder)))
    found: dict[str, object] = {"case": name, "repeats": repeats}
    for key in runs[0]:
        values = [run[key] for run in runs]
        found[key] = {"median": statistics.median(values), "all": values}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"any of: {', '.join(CASES)}")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    chosen = [name for name in CASES if not given.names or name in given.names]
    results = [measure(name, given.repeats) for name in chosen]
    content = {
        "schema": "jaxrig.startup/1",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "versions": package_versions(),
        "results": results,
    }
    print(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
