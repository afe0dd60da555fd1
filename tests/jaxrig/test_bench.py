"""Oracle: records computed by hand from a known timing; each benchmark runs."""

import json

import numpy as np
import pytest

from jaxrig import benchmarks
from jaxrig.bench import (
    Benchmark,
    Measurement,
    as_json,
    choose,
    run_benchmark,
)
from jaxrig.benchmarks import BENCHMARKS
from jaxrig.timing import Timing, compare

TIMING = Timing(2.0, (1.0, 2.0, 3.0), (2.0, 4.0, 6.0))
KNOWN = Benchmark(
    "core.known",
    "a known timing",
    lambda: [Measurement("case", TIMING, 100, "items", {"x": [3]}, state_bytes=12)],
)
OTHERS = [KNOWN, Benchmark("core.other", "", list), Benchmark("arc.step", "", list)]

CASES = {
    "core.dispatch": ["jax.jit", "compile_once", "equinox.filter_jit"],
    "core.chunks": ["one batch", "chunks of 2,000", "chunks of 20,000"],
    "core.progress": ["silent", "text"],
    "core.checkpoints": ["save", "load"],
    "core.learners": ["PPO", "GRPO"],
}


def test_record_holds_what_is_needed_to_judge_it():
    (record,) = run_benchmark(KNOWN)
    assert record["per_second"] == 50.0
    assert record["per_cpu_second"] == 25.0
    assert record["spread"] == pytest.approx(0.5)
    assert (record["repeats"], record["median_seconds"]) == (3, 2.0)
    assert record["compile_seconds"] == 2.0
    assert record["state_bytes"] == 12
    assert record["peak_host_bytes"] > 0
    assert (record["benchmark"], record["case"]) == ("core.known", "case")


def test_results_name_machine_and_versions():
    content = json.loads(as_json(run_benchmark(KNOWN)))
    assert content["schema"] == "jaxrig.bench/1"
    assert content["machine"]["cores"] >= 1
    assert "jax" in content["versions"]
    assert content["results"][0]["unit"] == "items"
    assert {"date", "backend"} < set(content)


def test_names_and_prefixes_choose():
    def names(*wanted):
        return [b.name for b in choose(OTHERS, wanted)]

    assert names() == ["core.known", "core.other", "arc.step"]
    assert names("core") == ["core.known", "core.other"]
    assert names("arc.step", "core.known") == ["core.known", "arc.step"]
    with pytest.raises(ValueError, match=r"benchmark 'cor'; available: core\.known"):
        names("cor")


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda b: b.name)
def test_benchmark_runs(benchmark, monkeypatch):
    once = lambda ways, **_: compare(ways, repeats=1, warmup=0)
    monkeypatch.setattr(benchmarks, "compare", once)
    records = run_benchmark(benchmark)
    assert [r["case"] for r in records] == CASES[benchmark.name]
    assert all(np.isfinite(r["per_second"]) and r["per_second"] > 0 for r in records)
