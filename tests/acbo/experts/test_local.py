import jax
import jax.numpy as jnp
import numpy as np

from acbo.experts.local import local_parent_posterior, local_posterior, marginals_of
from acbo.experts.scores import gather_statistics, local_scores
from causal_graphs import linear_rows, linear_weights
from jaxrig.testing import assert_one_trace


def test_it_is_the_share_of_the_score():
    rng = np.random.default_rng(0)
    values, flags = linear_rows(linear_weights(4, rng, 0.7), rng, 30, 10, 1)
    found = local_parent_posterior(values, flags, 1)
    with jax.enable_x64(True):
        arrays = jnp.asarray(values), jnp.asarray(flags)
        masks = jnp.ones(40, bool), jnp.ones(4, bool)
        scores = np.asarray(jax.jit(local_scores)(gather_statistics(*arrays, *masks)))
    share = np.exp(scores[1] - scores[1].max())
    np.testing.assert_allclose(found.probabilities, share / share.sum(), rtol=1e-9)
    assert found.metadata["method"] == "local"


def test_batches_with_padding():
    rng = np.random.default_rng(1)
    values, flags = linear_rows(linear_weights(3, rng, 0.7), rng, 30, 10, 1)
    wide = np.pad(values, ((0, 0), (0, 1)), constant_values=5.0)
    mask = jnp.asarray([True, True, True, False])
    rows = jnp.ones(40, bool)

    def run(x, f, target):
        logs = local_posterior(x, f, rows, mask, target)
        return marginals_of(logs, mask, target)

    x = jnp.asarray(wide, float)
    f = jnp.asarray(np.pad(flags, ((0, 0), (0, 1))))
    calls = [(x, f, jnp.asarray(1)), (x, f, jnp.asarray(0))]
    found, _ = assert_one_trace(run, *calls)
    wanted = local_parent_posterior(values, flags, 1).parent_probs()
    np.testing.assert_allclose(found, [wanted["X0"], 0, wanted["X2"], 0], atol=1e-3)


def test_a_child_is_taken_for_a_cause():
    """What the exact posterior is for: scores alone do not know the direction."""
    rng = np.random.default_rng(2)
    cause = rng.standard_normal(200)
    values = np.stack([cause, 2 * cause + rng.standard_normal(200)], axis=1)
    assert local_parent_posterior(values, None, 0).parent_probs()["X1"] > 0.99
