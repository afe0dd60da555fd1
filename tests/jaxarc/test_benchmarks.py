"""Each benchmark runs and measures what it says; how fast is not a test's business."""

import numpy as np
import pytest

from jaxarc import benchmarks
from jaxarc.benchmarks import (
    made_up_tasks,
    make_benchmarks,
    small_environment,
)
from jaxarc.envs.spaces import Discrete
from jaxrig.bench import run_benchmark
from jaxrig.timing import compare

pytestmark = pytest.mark.slow  # many programs to compile

CASES = {
    "arc.scan": ["30x30, auto-reset", "30x30, no reset"],
    "arc.small": ["5x5, auto-reset", "5x5, no reset"],
    "arc.step": ["arc_step, no history", "arc_step, 100 records"],
    "arc.batch": ["batch_step", "batch_reset"],
    "arc.compile": ["step and reset"],
}


@pytest.fixture
def quick(monkeypatch):
    once = lambda ways, **_: compare(ways, repeats=1, warmup=0)
    monkeypatch.setattr(benchmarks, "compare", once)
    monkeypatch.setattr(benchmarks, "SCAN_STEPS", {"cpu": (3, 3), "gpu": (3, 3)})
    monkeypatch.setattr(benchmarks, "CALLS", 5)
    monkeypatch.setattr(benchmarks, "BATCH_CALLS", 2)


@pytest.mark.parametrize("benchmark", make_benchmarks(8, 16), ids=lambda b: b.name)
def test_benchmark_runs(benchmark, quick):
    records = run_benchmark(benchmark)
    assert [r["case"] for r in records] == CASES[benchmark.name]
    assert all(np.isfinite(r["per_second"]) and r["per_second"] > 0 for r in records)


def test_batches_are_chosen_by_the_caller(quick, monkeypatch):
    monkeypatch.delenv("JAXRIG_DATA", raising=False)
    small = make_benchmarks(small=16)[1]
    records = run_benchmark(small)
    assert {r["shapes"]["batch"] for r in records} == {16}
    assert {r["items"] for r in records} == {3 * 16}
    assert all(r["shapes"]["made_up"] and r["shapes"]["tasks"] == 32 for r in records)
    assert all(0 < r["state_bytes"] < 200 for r in records)


def test_all_operations_on_the_grid_and_no_other_are_drawn():
    space = small_environment().action_space()
    operations = dict(space.spaces)["operation"]
    assert isinstance(operations, Discrete)
    assert operations.num_values == 35


def test_made_up_tasks_are_distinct_and_repeatable():
    tasks = made_up_tasks()
    grids = np.asarray(tasks.input_grids_examples)[:, 0].reshape(32, -1)
    assert len(np.unique(grids, axis=0)) == 32
    again = np.asarray(made_up_tasks().input_grids_examples)[:, 0].reshape(32, -1)
    np.testing.assert_array_equal(grids, again)
