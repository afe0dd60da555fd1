"""Each benchmark runs and measures what it says; how fast is not a test's business."""

import numpy as np
import pytest

from jaxrig import benchmarks
from jaxrig.bench import run_benchmark
from jaxrig.benchmarks import BENCHMARKS
from jaxrig.timing import compare

CASES = {
    "core.dispatch": ["jax.jit", "compile_once", "equinox.filter_jit"],
    "core.chunks": ["one batch", "chunks of 2,000", "chunks of 20,000"],
    "core.progress": ["silent", "text"],
    "core.checkpoints": ["save", "load"],
    "core.learners": ["PPO", "GRPO"],
}


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda b: b.name)
def test_benchmark_runs(benchmark, monkeypatch):
    once = lambda ways, **_: compare(ways, repeats=1, warmup=0)
    monkeypatch.setattr(benchmarks, "compare", once)
    records = run_benchmark(benchmark)
    assert [r["case"] for r in records] == CASES[benchmark.name]
    assert all(np.isfinite(r["per_second"]) and r["per_second"] > 0 for r in records)
