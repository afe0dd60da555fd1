"""Values of nodes against sums written out."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.clock import Instant
from jaxtrace.fields.mesh import (
    blend,
    blend_slices,
    check_clock,
    check_values,
    pays,
    whole_slice,
)

pytestmark = pytest.mark.slow  # compiles many programs

VALUES = np.random.default_rng(0).standard_normal((3, 6, 3)).astype(np.float32)
NODES = np.array([[0, 3, 5], [1, 2, 4]], np.int32)
LATER = np.array([[0.2, 0.5], [0.1, 0.3]], np.float32)


def at(slices, weights):
    weights = np.asarray(weights, np.float32)
    when = np.zeros(weights.shape[:-1], np.float32)
    return Instant(when, np.asarray(slices, np.int32), weights)


def expected(particle, slices, weights):
    shares = [1 - LATER[:, particle].sum(), *LATER[:, particle]]
    return sum(
        w * share * VALUES[s, node]
        for s, w in zip(slices, weights, strict=True)
        for node, share in zip(NODES[particle], shares, strict=True)
    )


def ask(when):
    later = [jnp.asarray(row) for row in LATER]
    return blend(jnp.asarray(VALUES), jnp.asarray(NODES), later, when)


def test_one_instant_for_all():
    found = ask(at([0, 2], [0.25, 0.75]))
    for i in range(2):
        np.testing.assert_allclose(
            found[i], expected(i, [0, 2], [0.25, 0.75]), atol=1e-6
        )


def test_an_instant_for_each():
    found = ask(at([[0, 2], [1, 2]], [[0.25, 0.75], [0.5, 0.5]]))
    np.testing.assert_allclose(found[0], expected(0, [0, 2], [0.25, 0.75]), atol=1e-6)
    np.testing.assert_allclose(found[1], expected(1, [1, 2], [0.5, 0.5]), atol=1e-6)


def test_constant_values_stay_constant_to_the_bit():
    values = jnp.full((1, 6, 3), 0.1, np.float32)
    later = [jnp.asarray(row) for row in LATER]
    found = blend(values, jnp.asarray(NODES), later, whole_slice(np.float32))
    assert np.all(np.asarray(found) == np.float32(0.1))


def test_slices_blended_beforehand():
    when = at([0, 2], [0.25, 0.75])
    values, clock, instant = blend_slices(jnp.asarray(VALUES), when)
    np.testing.assert_allclose(
        values[0], 0.25 * VALUES[0] + 0.75 * VALUES[2], atol=1e-6
    )
    assert clock.times.shape == (1,)
    assert instant.weights.tolist() == [1.0]


def test_blending_pays_for_few_nodes_and_one_instant():
    when = at([0, 2], [0.25, 0.75])
    assert pays(VALUES, when, 1)
    assert not pays(VALUES, when, 0)
    assert not pays(VALUES[:1], when, 100)
    assert not pays(VALUES, at([[0, 2]], [[0.25, 0.75]]), 100)


def test_values_are_brought_into_shape():
    assert check_values(np.zeros((4, 2)), 4, None).shape == (1, 4, 3)
    assert check_values(np.zeros((2, 4, 3), int), 4, None).dtype == np.float32
    with pytest.raises(ValueError, match="values of 4 nodes for 5 points"):
        check_values(np.zeros((4, 3)), 5, None)


def test_a_single_slice_needs_no_time():
    assert check_clock(None, 1, "linear", "constant").times.shape == (1,)
    with pytest.raises(ValueError, match="2 slices and no times"):
        check_clock(None, 2, "linear", "constant")
