import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.surrogate.model import set_logits
from acbo.surrogate.predictor import (
    SHIPPED,
    Surrogate,
    infer_graphs,
    load_surrogate,
    save_surrogate,
)
from causal_policies import small_surrogate
from jaxrig.testing import assert_trees_close

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=12)
VALUES = np.stack([X, 2 * X + RANDOM.normal(size=12), RANDOM.normal(size=12)], axis=1)
NAMES = ["cause", "effect", "other"]


def test_the_posterior_is_that_of_the_network_without_padding():
    surrogate = small_surrogate()
    found = surrogate.posterior(VALUES, None, "effect", NAMES)
    with jax.numpy_rank_promotion("allow"):
        alone = eqx.filter_jit(surrogate.read)(
            jnp.asarray(VALUES, jnp.float32),
            jnp.zeros((12, 3), bool),
            jnp.ones(12, bool),
            jnp.ones(3, bool),
            jnp.asarray(1),
        )
    sets = [(), ("cause",), ("other",), ("cause", "other")]
    held = np.array([[name in each for name in NAMES] for each in sets])
    chances = jax.jit(lambda *given: jax.nn.softmax(set_logits(*given)))
    found_chances = np.asarray(chances(alone, held, np.ones(4, bool)))
    for each, chance in zip(sets, found_chances, strict=True):
        assert np.exp(found.log_prob(frozenset(each))) == pytest.approx(
            float(chance), rel=1e-4
        )
    edges = surrogate.edge_probs(VALUES, None, NAMES)
    np.testing.assert_allclose(
        edges, jax.nn.sigmoid(alone.edge_logits), rtol=1e-4, atol=1e-6
    )
    assert (np.diagonal(edges) == 0).all()


def test_units_and_the_order_of_names_change_nothing():
    surrogate = small_surrogate()
    first = surrogate.posterior(VALUES, None, 1, NAMES)
    turned = [2, 0, 1]
    names = [NAMES[i] for i in turned]
    again = surrogate.posterior(VALUES[:, turned] * 1e3 + 1e10, None, "effect", names)
    for each, chance in first.parent_set_probs.items():
        assert again.parent_set_probs[each] == pytest.approx(chance, abs=1e-3)


def test_pooled_with_the_rows_signs_change_nothing_either():
    asked = lambda values: infer_graphs(values, surrogate=small_surrogate())
    units = [-1, 1e-12, -1e20]
    levels = np.column_stack([VALUES[:, :2], np.arange(12) % 2])  # no longer tail
    for values in (VALUES, levels):
        first, turned = asked(values), asked(values[:, ::-1] * units + [1e6, 0, 0])
        assert first.discrepancy > 0
        np.testing.assert_allclose(
            turned.edge_probs[::-1, ::-1], first.edge_probs, atol=1e-5
        )


def test_bad_data_is_refused_and_much_of_it_answered_with_a_warning():
    surrogate = small_surrogate()
    with pytest.raises(ValueError, match="nobody"):
        surrogate.posterior(VALUES, None, "nobody", NAMES)
    with pytest.raises(ValueError, match="constant"):
        surrogate.posterior(VALUES * [1, 1, 0], None, "effect", NAMES)
    values = np.random.default_rng(0).normal(size=(20, 17))
    with pytest.warns(UserWarning, match="more than the 16"):
        surrogate.edge_probs(values)


def test_a_saved_surrogate_is_loaded_to_half_precision(tmp_path):
    surrogate = small_surrogate()
    path = save_surrogate(tmp_path / "own.ckpt", surrogate.network)
    loaded = load_surrogate(path)
    assert loaded.network.config == surrogate.network.config
    assert_trees_close(loaded, surrogate, rtol=1e-3, atol=1e-6)


def test_the_shipped_surrogate_knows_a_cause_when_it_sees_one():
    assert SHIPPED.stat().st_size <= 2_000_000
    surrogate = load_surrogate()
    assert isinstance(surrogate, Surrogate)
    random = np.random.default_rng(1)
    cause = random.normal(size=100)
    effect = 1.5 * cause + random.normal(size=100)
    after = effect - random.normal(size=100)
    values = np.stack([cause, effect, after], axis=1)
    intervened = np.zeros((100, 3), bool)
    intervened[80:90, 0] = intervened[90:, 2] = True
    values[80:90, 0] = 3.0
    values[80:90, 1] = 4.5 + random.normal(size=10)
    values[80:90, 2] = values[80:90, 1] - random.normal(size=10)
    values[90:, 2] = -3.0
    found = surrogate.posterior(values, intervened, "effect", NAMES).parent_probs()
    assert found["cause"] > 0.9
    assert found["other"] < 0.1
