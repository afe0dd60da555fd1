"""Oracle: the symmetries of the model, and its padded form against the plain one."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import softmax

import causal_experience
from acbo.graphs import enumerate_possible_parent_sets
from acbo.training.parent_set_model import (
    SetReader,
    SurrogateTrainingConfig,
    as_model,
    create_parent_set_model,
    predict_parent_posterior,
)
from causal_surrogates import small_model, stand_in

MODEL = stand_in()
NAMES = ["X", "Y", "Z"]


@pytest.fixture(scope="module")
def params():
    return MODEL.init(jax.random.key(1))


def tensor(rows=20, d=3, target=1, seed=0):
    rng = np.random.default_rng(seed)
    x = np.zeros((rows, d, 3), np.float32)
    x[..., 0] = rng.normal(size=(rows, d)) @ (np.eye(d) + np.tri(d, k=-1)).T
    x[-4:, 0, 1] = 1.0
    x[:, target, 2] = 1.0
    return jnp.asarray(x)


FORWARD = jax.jit(lambda params, x: MODEL.apply(params, None, x, NAMES, "Y", False))


def test_scores_every_set_in_enumeration_order(params):
    init, _ = MODEL
    result = FORWARD(params, tensor())
    expected = enumerate_possible_parent_sets(NAMES, "Y", 3)
    assert result["parent_sets"] == expected == result["all_possible_parent_sets"]
    assert result["k"] == 4
    assert result["parent_set_logits"].shape == (4,)
    same = init(jax.random.key(1), tensor(), NAMES, "Y", True)
    jax.tree.map(np.testing.assert_array_equal, same, params)


def test_units_and_order_of_the_columns_do_not_matter(params):
    x = tensor()
    base = predict_parent_posterior(MODEL, params, x, NAMES, "Y").parent_set_probs
    scaled = x.at[..., 0].set(x[..., 0] * jnp.asarray([[10.0, 0.2, 3.0]]) + 5.0)
    moved = predict_parent_posterior(
        MODEL, params, scaled[:, ::-1], NAMES[::-1], "Y"
    ).parent_set_probs
    assert base.keys() == moved.keys()
    for one, chance in base.items():
        assert moved[one] == pytest.approx(chance, abs=1e-4)


def test_posterior_is_the_softmax_of_the_unpadded_logits(params):
    """20 rows and 3 variables are padded to 32 and 4 on the way."""
    x = tensor()
    logits = np.asarray(FORWARD(params, x)["parent_set_logits"], np.float64)
    found = predict_parent_posterior(MODEL, params, x, NAMES, "Y", {"run": 7})
    np.testing.assert_allclose(found.probabilities, softmax(logits), atol=1e-5)
    assert found.metadata["run"] == 7
    assert list(found.parent_probs()) == ["X", "Z"]


def test_parameters_serve_other_sizes(params):
    found = predict_parent_posterior(MODEL, params, tensor(9, 4), list("ABCD"), "B")
    assert len(found.parent_sets) == 8


@pytest.mark.slow
def test_the_network_drops_out_only_in_training():
    """One program for the three: training with a key, and twice not training."""
    model = small_model(dropout=0.3)
    params = model.init(jax.random.key(1))

    @jax.jit
    def score(params, key, x):
        each = [(key, True), (None, False), (key, False)]
        found = [model.apply(params, k, x, NAMES, "Y", train) for k, train in each]
        return [one["parent_set_logits"] for one in found]

    trained, plain, still = score(params, jax.random.key(3), tensor())
    assert not np.allclose(trained, plain)
    np.testing.assert_allclose(still, plain, rtol=1e-5)


def test_precision_changes_the_network_and_not_the_parameters():
    model = small_model()
    half: Any = as_model(model, jnp.bfloat16)
    build = half.build
    assert build.args[0].compute_dtype == "bfloat16"
    shapes = [jax.eval_shape(m.init, jax.random.key(0)) for m in (model, half)]
    assert jax.tree.leaves(shapes[0]) == jax.tree.leaves(shapes[1])
    with pytest.raises(ValueError, match="any other network sets its own precision"):
        as_model(MODEL, jnp.bfloat16)


def test_wrong_use_is_refused(params):
    with pytest.raises(ValueError, match="name 'depth' is not known"):
        create_parent_set_model({"depth": 3})
    assert create_parent_set_model({"max_parent_size": 2}, 5).max_parent_size == 2
    with pytest.raises(ValueError, match="give one name for each column"):
        MODEL.apply(params, None, tensor(), ["X", "Y"], "Y", False)
    with pytest.raises(ValueError, match="the data has shape"):
        predict_parent_posterior(MODEL, params, tensor(), ["X", "Y"], "Y")


@functools.cache
def found():
    random = np.random.default_rng(0)
    x = np.zeros((20, 4, 3), np.float32)
    x[..., 0] = random.normal(size=(20, 4)).cumsum(axis=1)
    mask = jnp.asarray([True, True, True, False])
    ones = jnp.ones(20, bool)
    values = jnp.asarray(x[..., 0]) * mask.astype(jnp.float32)[None]
    free = jnp.zeros((20, 4), bool)
    reader = SetReader(
        causal_experience.params(), causal_experience.MODEL.max_parent_size
    )
    read = jax.jit(
        lambda reader, mask: reader.read(values, free, ones, mask, jnp.asarray(1))
    )
    return x[:, :3], read(reader, mask)


def test_the_target_has_the_marginals_of_its_sets():
    x, read = found()
    names = ["a", "b", "c"]
    given = causal_experience.MODEL, causal_experience.params()
    wanted = predict_parent_posterior(*given, x, names, "b").parent_probs(names)
    np.testing.assert_allclose(
        read.parent_probs, [wanted["a"], 0, wanted["c"], 0], atol=1e-5
    )
    np.testing.assert_array_equal(read.edge_logits[:, 1], read.parent_logits)


def test_what_is_not_there_is_no_edge():
    edges = np.asarray(found()[1].edge_logits)
    there = ~np.eye(4, dtype=bool)
    there[3] = there[:, 3] = False
    np.testing.assert_array_equal(np.isfinite(edges), there)


def test_the_model_of_the_guide_is_allowed():
    config = SurrogateTrainingConfig(16, 2, dropout=0.0, max_parent_size=2)
    wanted = {"layers": 2, "dim": 16, "dropout": 0.0, "max_parent_size": 2}
    assert config.get_model_kwargs() == wanted


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_hidden_dim": 8}, "a whole number from 16 to 512"),
        ({"learning_rate": 0.0}, "a number above 0 up to 0.1"),
        ({"learning_rate": 0.2}, "a number above 0 up to 0.1"),
        ({"dropout": 0.6}, "a number from 0 to 0.5"),
        ({"max_parent_size": 11}, "a whole number from 1 to 10"),
        ({"max_epochs": 0}, "a whole number from 1"),
    ],
)
def test_bad_settings_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        SurrogateTrainingConfig(**values)
