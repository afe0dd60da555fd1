"""Oracle: NumPy, optax, and a loop over the examples."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from acbo.surrogate.losses import kl_divergence_loss_jax
from acbo.training.examples import TrainingBatch, convert_to_jax_batch
from acbo.training.steps import Objective, clip_first, learning_rate_of, map_examples
from causal_examples import make_example
from causal_surrogates import stand_in


def test_mapping_falls_back_to_a_loop_where_values_are_asked_for():
    double = lambda x: {"y": 2 * x}
    asks = lambda x: {"y": 2 * x if float(x) > 0 else jnp.zeros(())}
    x = jnp.asarray([1.0, -1.0, 3.0])
    np.testing.assert_array_equal(map_examples(double)(x)["y"], [2, -2, 6])
    np.testing.assert_array_equal(map_examples(asks)(x)["y"], [2, 0, 6])
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(map_examples(asks))(x)


def test_terms_are_means_over_examples():
    model = stand_in()
    examples = [make_example(0), make_example(1, d=4)]
    params = model.init(jax.random.key(0))
    objective = Objective(model, kl_divergence_loss_jax, 0.5)
    batch = convert_to_jax_batch(TrainingBatch(examples)).arrays
    total, terms = jax.jit(objective)(params, batch, jax.random.key(1))
    squares = float(jnp.square(params.weight).sum())
    expert = np.mean([e.expert_posterior.uncertainty for e in examples])
    assert float(terms.regularization_loss) == pytest.approx(0.5 * squares, rel=1e-5)
    assert float(terms.expert_entropy) == pytest.approx(expert, rel=1e-4)
    assert float(total) == float(terms.total_loss)
    evaluate = jax.jit(objective)
    alone = [convert_to_jax_batch(TrainingBatch([e])).arrays for e in examples]
    each = [evaluate(params, one, jax.random.key(1)) for one in alone]
    for name in ("kl_loss", "predicted_entropy", "mean_expert_accuracy"):
        mean = np.mean([getattr(t, name) for _, t in each])
        assert float(getattr(terms, name)) == pytest.approx(mean, rel=1e-5)


def test_gradients_are_clipped_before_the_optimizer():
    optimizer = clip_first(optax.sgd(1.0))
    given = {"a": jnp.asarray([3.0, 4.0])}
    change, _ = optimizer.update(given, optimizer.init(given), given)
    np.testing.assert_allclose(jax.tree.leaves(change)[0], [-0.6, -0.8], rtol=1e-6)
    small = {"a": jnp.asarray([0.3, 0.4])}
    change, _ = optimizer.update(small, optimizer.init(small), small)
    np.testing.assert_allclose(jax.tree.leaves(change)[0], [-0.3, -0.4], rtol=1e-6)


def test_learning_rates():
    params = {"a": jnp.zeros(2)}
    plain = optax.adam(0.3).init(params)
    assert float(learning_rate_of(plain, 0.1)) == pytest.approx(0.1)
    held = optax.inject_hyperparams(optax.adam)(learning_rate=0.3).init(params)
    assert float(learning_rate_of(held, 0.1)) == pytest.approx(0.3)
