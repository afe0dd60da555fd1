import functools

import jax.numpy as jnp
import numpy as np
import pytest

from acbo.named.codec import samples_to_arrays
from acbo.named.fit import fit_scm
from acbo.named.interventions import create_perfect_intervention
from acbo.named.linear import linear_form
from acbo.named.sampling import generate_mixed_dataset
from acbo.named.tables import DataTable
from causal_models import COEFFICIENTS, triangle

pd = pytest.importorskip("pandas")

nx = pytest.importorskip("networkx")

GRAPH = list(COEFFICIENTS)


@functools.cache
def data():
    specs = [create_perfect_intervention({"B"}, {"B": v}) for v in (-4.0, 4.0)]
    samples = generate_mixed_dataset(triangle(), 1500, specs, 250, seed=1)
    return DataTable(("A", "B", "C"), *samples_to_arrays(samples))


def test_the_numbers_come_back():
    form = linear_form(fit_scm(data(), nx.DiGraph(GRAPH), target="C"))
    truth = linear_form(triangle())
    np.testing.assert_allclose(form.weight, truth.weight, atol=0.06)
    np.testing.assert_allclose(form.intercept, truth.intercept, atol=0.08)
    np.testing.assert_allclose(form.noise_scale, truth.noise_scale, rtol=0.05)


def test_least_squares_by_hand_over_the_rows_left_alone():
    table = data()
    form = linear_form(fit_scm(table, GRAPH))
    rows = np.asarray(table.values, dtype=np.float64)[:1500]
    design = np.column_stack([np.ones(1500), rows[:, 0]])
    (base, slope), (rest, *_) = np.linalg.lstsq(design, rows[:, 1], rcond=None)[:2]
    assert form.weight[0, 1] == pytest.approx(slope, rel=1e-5)
    assert form.intercept[1] == pytest.approx(base, abs=1e-5)
    assert form.noise_scale[1] == pytest.approx(np.sqrt(rest / 1498), rel=1e-5)


def test_units_do_not_matter():
    table = data()
    scaled = DataTable(
        table.names, table.values * jnp.asarray([[1e-6, 1.0, 1e4]]), table.intervened
    )
    form, other = (
        linear_form(fit_scm(table, GRAPH)),
        linear_form(fit_scm(scaled, GRAPH)),
    )
    assert other.weight[0, 2] == pytest.approx(form.weight[0, 2] * 1e10, rel=1e-4)


def test_too_little_data_is_named():
    few = data()
    few = DataTable(few.names, few.values[:3], few.intervened[:3])
    with pytest.raises(ValueError, match="'C' was left alone in 3 row"):
        fit_scm(few, GRAPH)
    same = pd.DataFrame({"a": [1.0, 2, 3, 4, 5], "b": [2.0, 4, 6, 8, 10]})
    same["c"] = [0.0, 1.0, 0.0, 2.0, 5.0]
    with pytest.raises(ValueError, match="causes of 'c' \\(a, b\\) depend linearly"):
        fit_scm(same, [("a", "c"), ("b", "c")])


def test_a_cycle_and_an_unknown_name_are_named():
    with pytest.raises(ValueError, match="cycle"):
        fit_scm(data(), [("A", "B"), ("B", "A")])
    with pytest.raises(ValueError, match="'Q' is not one of"):
        fit_scm(data(), [("A", "Q")])
