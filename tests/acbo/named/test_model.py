import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.mechanisms import (
    create_linear_mechanism,
    create_mechanism,
    create_root_mechanism,
)
from acbo.named.model import create_scm, get_parents, is_linear, linear_form
from acbo.scm import (
    change_variables,
    no_intervention,
    sample_rows,
    set_variable,
)
from causal_models import triangle
from jaxrig.compile_guard import compile_once

ROOT = create_root_mechanism
COUNT = 4000
SAMPLE = jax.jit(sample_rows, static_argnums=(2, 4))


def rows_of(scm, intervention=None, clip=False):
    """Compiled, with one number of rows: a program for each graph, and clipped."""
    done = no_intervention(len(scm.names)) if intervention is None else intervention
    return np.asarray(SAMPLE(jax.random.key(0), scm, COUNT, done, clip))


def setting(place, value, d=3):
    return set_variable(jnp.asarray(place), jnp.asarray(value), d)


def hidden_model():
    """U is hidden and moves X and Y; X moves Y."""
    return create_scm(
        ["X", "Y", "U"],
        [("U", "X"), ("U", "Y"), ("X", "Y")],
        {
            "U": ROOT(),
            "X": lambda v, key: v["U"] + 0.1 * jax.random.normal(key),
            "Y": lambda v, key: 2.0 * v["X"] - v["U"],
        },
        target="Y",
        hidden=("U",),
    )


def test_same_key_same_noise_whatever_is_done():
    scm = triangle()
    seen, done = rows_of(scm), rows_of(scm, setting(1, 2.5))
    moved = rows_of(scm, change_variables(jnp.asarray([0.0, 1.0, 0.0]), jnp.ones(3)))
    np.testing.assert_array_equal(seen[:, 0], done[:, 0])
    np.testing.assert_array_equal(done[:, 1], 2.5)
    np.testing.assert_allclose(moved[:, 1] - seen[:, 1], 1.0, atol=1e-5)
    effect = done[:, 2] - seen[:, 2]
    np.testing.assert_allclose(effect, 2 * (2.5 - seen[:, 1]), atol=1e-4)


def test_a_variable_keeps_its_noise_when_others_join():
    both = create_scm(["P", "Q"], [], {"P": ROOT(), "Q": ROOT()})
    alone = create_scm(["Q"], [], {"Q": ROOT()})
    np.testing.assert_array_equal(rows_of(both)[:, 1], rows_of(alone)[:, 0])


def test_hidden_variables_act_and_have_no_column():
    scm = hidden_model()
    assert scm.names == ("X", "Y")
    assert scm["variables"] == {"X", "Y", "U"}
    rows = rows_of(scm)
    assert rows.shape == (COUNT, 2)
    assert np.corrcoef(rows.T)[0, 1] > 0.9
    cut = rows_of(scm, setting(0, 1.0, 2))
    np.testing.assert_allclose(cut[:, 1].mean(), 2.0, atol=0.1)


def test_clipping_leaves_the_target_alone():
    rows = rows_of(triangle(ranges={"A": (0.0, 0.1), "B": (0.0, 0.1)}), clip=True)
    assert rows[:, :2].min() >= 0
    assert rows[:, :2].max() <= 0.1 + 1e-6
    assert np.abs(rows[:, 2]).max() > 0.5


def test_models_with_other_numbers_share_a_program(key):
    rows = compile_once(sample_rows, max_traces=1)
    mean = lambda scm: rows(key, scm, 2000, done)[:, 2].mean()
    done = setting(0, 2.0)
    weak = {("A", "B"): 0.1, ("A", "C"): 0.0, ("B", "C"): 1.0}
    first, second = mean(triangle()), mean(triangle(coefficients=weak))
    np.testing.assert_allclose(first, 0.3 - 3.0 + 2 * 1.6, atol=0.1)
    np.testing.assert_allclose(second, 0.3 + 0.2, atol=0.1)


def test_reads_like_the_documented_mapping():
    scm = create_scm({"B", "A"}, [], {"A": ROOT(), "B": ROOT()}, metadata={"n": [1]})
    assert scm.names == ("A", "B")
    assert scm["target"] is None
    assert scm["metadata"] == scm.metadata == {"n": [1]}
    assert set(scm["mechanisms"]) == {"A", "B"}
    with pytest.raises(KeyError, match="variables"):
        scm["nodes"]
    with pytest.raises(ValueError, match="has no target"):
        _ = scm.target


def test_ranges_say_what_may_be_set():
    some = triangle(ranges={"B": (-0.8, 2.0), "C": (-9.0, 9.0)})
    assert some.manipulable == ("B",)
    assert some.ranges == {"B": (-0.8, 2.0)}
    assert some.allowed.tolist() == [False, True, False]
    free = triangle(ranges=None)
    assert free.manipulable == ("A", "B")
    assert hidden_model().manipulable == ("X",)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"edges": [("A", "B"), ("B", "A")]}, "cycle: A -> B -> A"),
        ({"edges": [("A", "Z")]}, "'Z' is not known"),
        ({"mechanisms": {"A": ROOT()}}, "'B' has no mechanism"),
        (
            {"mechanisms": {"A": ROOT(), "B": ROOT(), "Q": ROOT()}},
            "variable 'Q' is not known",
        ),
        ({"edges": [("A", "B")]}, "the edges give it \\(A\\)"),
        ({"target": "Q"}, "target 'Q' is not known"),
        ({"hidden": ("Q",)}, "hidden variable 'Q'"),
        ({"hidden": ("A",), "target": "A"}, "target 'A' is not known"),
        ({"ranges": {"Q": (0, 1)}}, "ranges: variable 'Q'"),
        ({"ranges": {"A": (1, 0)}}, "range of 'A'"),
        ({"ranges": {"A": (0, float("nan"))}}, "range of 'A' is nan"),
        ({"variables": ["A", "A", "B"]}, "'A' is a duplicate"),
    ],
)
def test_a_wrong_model_is_refused_by_name(changes, words):
    given = {
        "variables": ["A", "B"],
        "edges": [],
        "mechanisms": {"A": ROOT(), "B": ROOT()},
    }
    with pytest.raises(ValueError, match=words):
        create_scm(**(given | changes))


def test_parents_by_name():
    assert get_parents(triangle(), "C") == {"A", "B"}
    with pytest.raises(ValueError, match=r"'Q' is not known; .* There are: A, B, C"):
        get_parents(triangle(), "Q")


def test_mechanisms_of_any_kind_by_name():
    made = create_mechanism("rff", ["A"], {"A": 1.5}, noise_scale=0.0)
    scm = create_scm(["A", "B"], [("A", "B")], {"A": ROOT(), "B": made})
    row = rows_of(scm, setting(0, 0.7, 2))[0]
    f, phase = made.features, 0.7 * np.asarray(made.features.inner)[1, :, 0]
    expected = f.outer[1] @ np.cos(phase + np.asarray(f.bias[1]))
    np.testing.assert_allclose(row[1], expected, rtol=1e-4)
    with pytest.raises(ValueError, match=r"'cubic' is not known; .* There are: linear"):
        create_mechanism("cubic", ["A"], {"A": 1.5})


def test_moments_by_hand():
    form = linear_form(triangle())
    assert form.names == ("A", "B", "C")
    assert form.weight.tolist() == [[0, 0.8, -1.5], [0, 0, 2.0], [0, 0, 0]]
    assert form.intercept.tolist() == [1.0, 0.0, 0.3]
    assert form.noise_scale.tolist() == [1.0, 0.5, 0.7]
    mean, covariance = form.moments()
    np.testing.assert_allclose(mean, [1.0, 0.8, 0.3 - 1.5 + 1.6])
    np.testing.assert_allclose(covariance[0], [1.0, 0.8, 0.1], atol=1e-12)
    variance = 0.1**2 + (2 * 0.5) ** 2 + 0.7**2  # through A, through B, its own
    np.testing.assert_allclose(covariance[2, 2], variance)
    assert form.mean("C", {"B": 2.0}) == pytest.approx(0.3 - 1.5 + 4)
    assert form.mean("A", {"B": 2.0}) == pytest.approx(1.0)
    assert form.moments({"A": 0.0})[1][0].tolist() == [0.0, 0.0, 0.0]


def test_moments_agree_with_draws():
    rows = rows_of(triangle())
    mean, covariance = linear_form(triangle()).moments()
    np.testing.assert_allclose(rows.mean(0), mean, atol=0.08)
    np.testing.assert_allclose(np.cov(rows.T), covariance, atol=0.1)
    form = linear_form(triangle(hidden=("A",), ranges=None))
    assert form.names == ("B", "C", "A")
    assert form.mean("C", {"B": 0.0}) == pytest.approx(0.3 - 1.5)


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda values, key: jnp.exp(values["A"]),
        create_linear_mechanism(["A"], {"A": 1.0}, output_bounds=(0.0, 1.0)),
    ],
)
def test_what_is_not_linear_is_named(mechanism):
    scm = create_scm(
        ["A", "B"], [("A", "B")], {"A": create_root_mechanism(), "B": mechanism}
    )
    assert not is_linear(scm)
    with pytest.raises(ValueError, match="'B' is not linear"):
        linear_form(scm)


@pytest.mark.parametrize("bounds", [3, (1.0,), (1.0, 2.0, 3.0)])
def test_a_range_that_is_no_pair_is_named(bounds):
    with pytest.raises(ValueError, match=r"the range of 'A' is .*: give \(low, high\)"):
        triangle(ranges={"A": bounds})
