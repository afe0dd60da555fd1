"""Oracle: the sum in the module's docstring, written in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np

from acbo.mechanisms.features import (
    COSINE,
    IDENTITY,
    SQUARE,
    TANH,
    Features,
    activate,
    linear_features,
)

FUNCTIONS = {IDENTITY: lambda x: x, SQUARE: np.square, TANH: np.tanh, COSINE: np.cos}
ALL = jax.jit(
    lambda features, row: jax.vmap(features.of, (0, None))(
        jnp.arange(row.shape[0]), row
    )
)


def test_units_by_number():
    x = np.linspace(-2, 2, 5).astype(np.float32)
    for kind, function in FUNCTIONS.items():
        found = activate(jnp.full(5, kind), jnp.asarray(x))
        np.testing.assert_allclose(found, function(x), atol=1e-6)


def test_a_mechanism_is_the_weighted_sum_of_its_units():
    random = np.random.default_rng(0)
    d, units = 3, 4
    inner, bias = random.normal(size=(d, units, d)), random.normal(size=(d, units))
    outer, intercept = random.normal(size=(d, units)), random.normal(size=d)
    kind = np.stack([random.permutation(4) for _ in range(d)])
    row = random.normal(size=d)
    expected = [
        intercept[j]
        + sum(
            outer[j, h] * FUNCTIONS[kind[j, h]](inner[j, h] @ row + bias[j, h])
            for h in range(units)
        )
        for j in range(d)
    ]
    single = lambda x: jnp.asarray(x, jnp.float32)
    features = Features(
        single(inner), single(bias), single(outer), jnp.asarray(kind), single(intercept)
    )
    np.testing.assert_allclose(ALL(features, single(row)), expected, rtol=1e-5)


def test_linear_mechanisms_read_weights_from_cause_to_effect():
    random = np.random.default_rng(1)
    weight, intercept, row = random.normal(size=(3, 3)), [1.0, 2.0, 3.0], [0.5, -1, 2]
    single = lambda x: jnp.asarray(x, jnp.float32)
    features = linear_features(single(weight), single(intercept))
    expected = intercept + np.array(row) @ weight
    np.testing.assert_allclose(ALL(features, single(row)), expected, rtol=1e-5)
