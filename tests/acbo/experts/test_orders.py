from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np

from acbo.experts.orders import (
    predecessor_weights,
    sum_orders_into,
    sum_orders_out,
)

D = 4
SUMS = np.random.default_rng(0).normal(0, 3, (D, 2**D))


def weights_of_orders():
    """Log weight of each order, and the predecessors of each variable in it."""
    for order in permutations(range(D)):
        before = {j: sum(1 << i for i in order[:k]) for k, j in enumerate(order)}
        yield sum(SUMS[j, before[j]] for j in range(D)), before


def test_sums_are_over_all_orders():
    total = np.log(sum(np.exp(weight) for weight, _ in weights_of_orders()))
    with jax.enable_x64(True):
        sums = jnp.asarray(SUMS)
        into, out = jax.jit(lambda s: (sum_orders_into(s), sum_orders_out(s)))(sums)
        weights = jax.jit(predecessor_weights)(sums)
    into, out, weights = (np.asarray(x) for x in (into, out, weights))
    assert np.isclose(into[-1], total)
    assert np.isclose(out[0], total)
    assert (into[0], out[-1]) == (0, 0)
    wanted = np.zeros((D, 2**D))
    for weight, before in weights_of_orders():
        for j in range(D):
            wanted[j, before[j]] += np.exp(weight - total)
    np.testing.assert_allclose(np.exp(weights), wanted, rtol=1e-9)
