"""Oracle: NumPy loops over heads and places."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from acbo.surrogate import layers
from causal_parameters import fill

DIM, HEADS, SIZE, LENGTH = 6, 2, 3, 5
RANDOM = np.random.default_rng(0)
KEY = jax.random.key(0)
CALL = jax.jit(lambda layer, *given: layer(*given))


def normed(norm, x):
    centered = x - x.mean(axis=-1, keepdims=True)
    unit = centered / np.sqrt(x.var(axis=-1, keepdims=True) + layers.EPSILON)
    return unit * np.asarray(norm.scale) + np.asarray(norm.shift)


def dense(linear, x):
    return x @ np.asarray(linear.weight) + np.asarray(linear.bias)


def rows(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def test_linear_starts_with_the_variance_asked_for():
    layer = jax.jit(lambda key: layers.Linear(400, 50, key, 2.0))(KEY)
    assert float(jnp.std(layer.weight)) == pytest.approx(np.sqrt(2 / 400), rel=0.05)
    assert not layer.bias.any()


@pytest.mark.parametrize("shape", [(DIM,), (2, 3, DIM)])
def test_linear_and_norm_over_the_last_axis(shape):
    linear, norm = (
        fill(layers.Linear, DIM, 4, KEY),
        fill(layers.Norm, DIM, seed=1),
    )
    x = 3 * rows(*shape) + 1
    np.testing.assert_allclose(CALL(linear, x), dense(linear, x), atol=1e-4)
    np.testing.assert_allclose(CALL(norm, x), normed(norm, x), atol=1e-4)


def test_the_gradient_of_the_norm():
    norm = fill(layers.Norm, DIM, seed=1)
    check_grads(CALL, (norm, jnp.asarray(rows(2, 3, DIM))), 1, modes=["rev"])


def test_perceptron():
    layer = fill(layers.Perceptron, DIM, 2, KEY)
    x = rows(3, DIM)
    hidden = np.maximum(dense(layer.widen, normed(layer.norm, x)), 0)
    expected = dense(layer.narrow, hidden)
    np.testing.assert_allclose(CALL(layer, x), expected, atol=1e-4)


def naive_attention(layer, x, mask):
    """One head and one place after the other, over the places of the mask alone."""
    mixed = dense(layer.project, normed(layer.norm, x))
    query, key, value = mixed.reshape(LENGTH, 3, HEADS, SIZE).swapaxes(0, 1)
    seen = np.zeros((LENGTH, HEADS, SIZE))
    for h in range(HEADS):
        for q in range(LENGTH):
            scores = key[mask, h] @ query[q, h] / np.sqrt(SIZE)
            weights = np.exp(scores - scores.max())
            seen[q, h] = weights / weights.sum() @ value[mask, h]
    return dense(layer.out, seen.reshape(LENGTH, -1))


@pytest.mark.parametrize("long", [LENGTH, LENGTH - 1], ids=["together", "in turn"])
@pytest.mark.parametrize("axis", [0, 1])
def test_attention_looks_at_the_mask_alone(long, axis, monkeypatch):
    # Long sequences are done one after the other.
    monkeypatch.setattr(layers, "LONG", long)
    layer = fill(layers.Attention, DIM, HEADS, SIZE, KEY)
    lines = rows(2, LENGTH, DIM)
    turn = lambda table: table if axis == 1 else table.swapaxes(0, 1)
    cells = turn(lines).reshape(-1, DIM)
    shape = turn(lines).shape
    run = jax.jit(lambda x, mask: layer(x, shape[:2], mask, axis))
    back = lambda found: turn(np.asarray(found, np.float32).reshape(shape))
    for hidden in ([], [1], [0, 2, 4]):
        mask = ~np.isin(np.arange(LENGTH), hidden)
        wanted = np.stack([naive_attention(layer, line, mask) for line in lines])
        found = back(run(cells, mask))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    if long == LENGTH:  # layers keep the precision of their input
        half = run(cells.astype(jnp.bfloat16), mask)
        assert half.dtype == jnp.bfloat16
        assert abs(back(half) - wanted).max() < 0.05 * abs(wanted).max() + 0.05


def test_dropout_keeps_the_mean(key):
    x = jnp.ones(20_000)
    kept = np.asarray(layers.drop(x, 0.25, key))
    assert set(np.unique(kept).tolist()) == {0.0, np.float32(1 / 0.75)}
    assert kept.mean() == pytest.approx(1, abs=0.02)
    assert layers.drop(x, 0.25, None) is x
    assert layers.drop(x, 0.0, key) is x


def test_scrambled_words_are_as_good_as_random_ones():
    shape = (64, 16, 32)
    keys = jax.random.split(KEY, 4)
    words = np.asarray(jax.jit(jax.vmap(lambda key: layers.scramble(key, shape)))(keys))
    assert len(np.unique(words[0])) == words[0].size  # places never share a word
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 32)
    kept = (words >= np.uint32(0.1 * 2**32)).reshape(4, -1).astype(float)
    kept -= kept.mean(axis=1, keepdims=True)
    count = kept.shape[1]
    slack = 5 / np.sqrt(count)  # standard errors
    assert abs(bits.mean(axis=0) - 0.5).max() < slack
    assert abs(np.corrcoef(kept) - np.eye(4)).max() < slack
    for lag in (1, 2, 32, 512):  # the next number, cell and row
        together = (kept[:, lag:] * kept[:, :-lag]).mean(axis=1) / kept.var(axis=1)
        assert abs(together).max() < slack
    # Sums over a cell's numbers scatter as those of independent draws do.
    sums = kept.reshape(-1, 32).sum(axis=1)
    assert sums.var() == pytest.approx(32 * 0.09, rel=0.1)
