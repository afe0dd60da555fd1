"""Oracle: the posterior over sets that the model itself gives, summed in NumPy."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from acbo.training import predict_parent_posterior
from acbo.training.parent_set_model import SetReader
from causal_experience import MODEL, params

NAMES = ["a", "b", "c", "d"]


@functools.cache
def found():
    random = np.random.default_rng(0)
    x = np.zeros((20, 4, 3), np.float32)
    x[..., 0] = random.normal(size=(20, 4)).cumsum(axis=1)
    mask = jnp.asarray([True, True, True, False])
    ones = jnp.ones(20, bool)
    values = jnp.asarray(x[..., 0]) * mask.astype(jnp.float32)[None]
    free = jnp.zeros((20, 4), bool)
    reader = SetReader(params(), MODEL.max_parent_size)
    read = jax.jit(
        lambda reader, mask: reader.read(values, free, ones, mask, jnp.asarray(1))
    )
    return x[:, :3], read(reader, mask)


def test_the_target_has_the_marginals_of_its_sets():
    x, read = found()
    posterior = predict_parent_posterior(MODEL, params(), x, NAMES[:3], "b")
    wanted = posterior.parent_probs(NAMES[:3])
    np.testing.assert_allclose(
        read.parent_probs, [wanted["a"], 0, wanted["c"], 0], atol=1e-5
    )
    np.testing.assert_array_equal(read.edge_logits[:, 1], read.parent_logits)


def test_what_is_not_there_is_no_edge():
    edges = np.asarray(found()[1].edge_logits)
    there = ~np.eye(4, dtype=bool)
    there[3] = there[:, 3] = False
    np.testing.assert_array_equal(np.isfinite(edges), there)
