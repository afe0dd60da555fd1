import jax
import jax.numpy as jnp
import numpy as np

from acbo.baselines.exact import SampledModel, expected_target, sample_model
from acbo.graphs import parent_set_membership
from acbo.posterior.exact import set_posterior
from causal_graphs import linear_rows, linear_weights
from jaxrig.testing import assert_one_trace

ROWS, DRAWS = 4000, 2000


def example(rows, seed=0, d=4):
    rng = np.random.default_rng(seed)
    weights = linear_weights(d, rng, 0.7)
    values, flags = linear_rows(weights, rng, rows - 10, 10, d - 1)
    return weights, 2 * values + 5, flags


def arrays_of(values, flags):
    """Arrays of one shape for all tests, which then share one program."""
    rows, d = values.shape
    grow = lambda array: jnp.asarray(np.pad(array, ((0, ROWS - rows), (0, 0))))
    masks = jnp.arange(ROWS) < rows, jnp.ones(d, bool)
    return grow(values.astype(np.float32)), grow(flags), *masks


def sample_models(key, count, *arrays):
    return jax.vmap(lambda key: sample_model(key, *arrays))(
        jax.random.split(key, count)
    )


draw = jax.jit(lambda key, *arrays: sample_models(key, DRAWS, *arrays))


def test_edges_of_draws_have_the_exact_frequencies(key):
    _, values, flags = example(40)
    arrays = arrays_of(values, flags)
    models = draw(key, *arrays)
    sets = np.asarray(jax.jit(set_posterior)(*arrays))
    held = [parent_set_membership(4, 3, j) for j in range(4)]
    wanted = np.einsum("jk,jki->ij", sets, held)
    assert (wanted > 0.05).sum() > (wanted > 0.95).sum(), "some edges are in doubt"
    adjacency = np.asarray(models.weight) != 0
    error = np.abs(adjacency.mean(axis=0) - wanted)
    assert (error < 4.5 * np.sqrt(wanted * (1 - wanted) / DRAWS) + 1e-3).all()
    closed = adjacency.astype(int)
    for _ in range(3):
        closed = np.minimum(closed + closed @ closed, 1)
    assert not np.trace(closed, axis1=1, axis2=2).any(), "graphs have no cycles"
    assert (adjacency.sum(axis=1) <= 3).all()


def test_draws_close_in_on_the_truth(key):
    weights, values, flags = example(ROWS, seed=1)
    arrays = arrays_of(values, flags)
    models = draw(key, *arrays)
    np.testing.assert_allclose(models.weight.mean(axis=0), weights, atol=0.1)
    np.testing.assert_allclose(models.noise_scale.mean(axis=0), 2, rtol=0.05)
    truth = 5 - 5 * weights.sum(axis=0)  # values are 2 x + 5
    np.testing.assert_allclose(models.intercept.mean(axis=0), truth, atol=0.5)


def test_expectations_of_a_chain():
    weight = jnp.zeros((3, 3)).at[0, 1].set(2.0).at[1, 2].set(-1.5)
    model = SampledModel(weight, jnp.asarray([1.0, 0.5, 3.0]), jnp.ones(3))
    ((intercept, slope),) = assert_one_trace(expected_target, (model, jnp.asarray(2)))
    # E[Y | do(X0 = v)] = 3 - 1.5 (0.5 + 2 v), E[Y | do(X1 = v)] = 3 - 1.5 v
    np.testing.assert_allclose(slope, [-3, -1.5, 1], rtol=1e-6)
    np.testing.assert_allclose(intercept, [2.25, 3, 0], atol=1e-6)


def test_padded_variables_stand_apart(key):
    _, values, flags = example(40, d=3)
    wide = np.pad(values, ((0, 0), (0, 1)), constant_values=9.0)
    arrays = list(arrays_of(wide, np.pad(flags, ((0, 0), (0, 1)))))
    arrays[3] = jnp.asarray([True, True, True, False])
    models = draw(key, *arrays)
    assert not models.weight[:, 3].any()
    assert not models.weight[:, :, 3].any()
    assert not models.intercept[:, 3].any()
    assert not models.noise_scale[:, 3].any()
    assert models.weight.any()
