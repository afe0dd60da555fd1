"""Ranges, moments and reproducibility of draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.config import configure, reset_config
from jaxtrace.utils.random import (
    normal,
    random_choice,
    random_integers,
    rng_key,
    shuffle,
    split_keys,
    uniform,
)


@pytest.fixture(autouse=True)
def defaults():
    yield
    reset_config()


def test_keys_are_reproducible_and_independent():
    assert rng_key() == jax.random.key(42)
    few, many = split_keys(rng_key(1), 2), split_keys(rng_key(1), 5)
    assert (few == many[:2]).all()
    assert len({tuple(k) for k in jax.random.key_data(many).tolist()}) == 5


def test_uniform_and_normal():
    draws = uniform(rng_key(0), (4000,), 2.0, 4.0)
    assert draws.dtype == jnp.float32
    assert (draws >= 2).all()
    assert (draws < 4).all()
    assert abs(draws.mean() - 3) < 0.05
    bell = normal(rng_key(0), 4000, mean=5.0, std=2.0)
    assert abs(bell.mean() - 5) < 0.1
    assert abs(bell.std() - 2) < 0.1
    configure(dtype="float64")
    assert uniform(rng_key(0)).dtype == normal(rng_key(0)).dtype == jnp.float64


def test_shuffle_keeps_rows():
    rows = np.arange(20).reshape(10, 2)
    mixed = np.asarray(shuffle(rng_key(3), rows))
    assert not np.array_equal(mixed, rows)
    np.testing.assert_array_equal(mixed[mixed[:, 0].argsort()], rows)


def test_choice_and_integers():
    picked = random_choice(rng_key(0), np.array([5, 7, 9]), 3000, p=[0.0, 0.25, 0.75])
    assert set(picked.tolist()) == {7, 9}
    assert abs((picked == 9).mean() - 0.75) < 0.05
    order = random_choice(rng_key(0), 8, (8,), replace=False)
    assert sorted(order.tolist()) == list(range(8))
    whole = random_integers(rng_key(0), (500,), -1, 3)
    assert set(whole.tolist()) == {-1, 0, 1, 2}
