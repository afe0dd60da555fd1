"""Benchmarks measure what they say: sizes, items, and the same work on both sides."""

import numpy as np
import pytest

from acbo import benchmarks
from acbo.benchmarks import Training, graph_batch, linear_rows
from causal_policies import SIZES, small_surrogate


def test_the_recipe_trains_on_full_data_of_one_size():
    training = Training(dim=8, layers=1, variables=5, rows=10, batch=3, steps=4)
    recipe = training.recipe()
    (data,) = recipe.data
    assert data.sizes == (5, 5)
    assert data.observational[0] + data.interventional[0] == data.rows == 10
    assert (recipe.steps, recipe.steps_per_update, recipe.batches) == (4, 4, (3,))
    assert (recipe.model.dim, recipe.model.layers) == (8, 1)


def test_batches_of_graphs_differ_in_names_and_sizes():
    batches = [graph_batch(seed, (2, 4)) for seed in range(4)]
    orders = {tuple(e.variable_order) for b in batches for e in b.examples}
    assert len(orders) == 12
    assert {len(order) for order in orders} == {2, 3, 4}


def test_rows_of_a_linear_model_set_all_but_the_last():
    values, intervened = linear_rows(6, 50)
    assert values.shape == intervened.shape == (50, 6)
    assert intervened.sum(axis=1).tolist() == [0] * 40 + [1] * 10
    assert not intervened[:, -1].any()
    assert set(np.abs(values[intervened])) == {2.0}


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
    training = Training(4, 1, 4, 10, 2, 2, model=SIZES)
    (found,) = benchmarks.surrogate_benchmark(training, repeats=1)
    assert (found.items, found.unit) == (4, "graphs")
    assert found.shapes["variables"] == 4


@pytest.mark.slow
def test_posteriors_stand_beside_the_exact_ones():
    found = benchmarks.posterior_benchmark(4, 20, 1, small_surrogate())
    assert [m.case for m in found] == ["surrogate", "exact"]


@pytest.mark.slow
def test_a_policy_counts_interventions():
    (found,) = benchmarks.grpo_benchmark(2, 2, 4, 1, small_surrogate())
    assert (found.items, found.unit) == (2 * 2, "interventions")
