"""Benchmarks measure what they say: sizes, items, and the same work on both sides."""

import pytest

from acbo import benchmarks
from causal_policies import SIZES, small_surrogate


def test_data_sets_fill_their_bucket():
    data = benchmarks.full_data(variables=5, rows=10)
    assert data.sizes == (5, 5)
    assert data.observational[0] + data.interventional[0] == data.rows == 10


@pytest.mark.slow
def test_the_step_compiles_once_over_different_graphs():
    steps = benchmarks.document_steps()
    counted = benchmarks.count_compilations(3, steps=steps)
    assert counted == {"graphs": 3, "compilations": 1}
    (found,) = benchmarks.step_benchmark(repeats=2, steps=steps)
    assert (found.items, found.unit) == (benchmarks.IN_A_ROW, "steps")
    assert len(found.timing.seconds) == 2


@pytest.mark.slow
def test_training_counts_graphs():
    (found,) = benchmarks.surrogate_benchmark(SIZES, 4, 10, 2, 2, repeats=1)
    assert (found.items, found.unit) == (4, "graphs")
    assert found.shapes["variables"] == 4


@pytest.mark.slow
def test_posteriors_stand_beside_the_exact_ones():
    found = benchmarks.posterior_benchmark(4, 20, 1, small_surrogate())
    assert [m.case for m in found] == ["surrogate", "graphs", "exact"]


@pytest.mark.slow
def test_a_policy_counts_interventions():
    (found,) = benchmarks.grpo_benchmark(2, 2, 4, 1, small_surrogate())
    assert (found.items, found.unit) == (2 * 2, "interventions")
