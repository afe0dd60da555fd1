"""Oracle: the shapes of functions that each kind promises, by differences of values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.mechanisms.features import COSINE, IDENTITY, TANH, Features
from acbo.mechanisms.kinds import (
    MECHANISMS,
    OUTPUT_SCALE,
    UNITS,
    WAVE_LENGTH,
    draw_features,
)

D = 4
ADJACENCY = np.array([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]], bool)
WEIGHT = np.array([[9, -1.5, 0.5, 9], [9, 9, 2, 9], [9] * 4, [9] * 4], np.float32)
STEP = 0.5
LINE = (np.arange(5)[:, None] * STEP - 1) * np.array([[1.0, -0.7, 3.0, 5.0]])
DRAWS = 20 * len(MECHANISMS)
FIRST_UNIT = {"rff": COSINE, "tanh": TANH, "mlp": TANH}


@pytest.fixture(scope="module")
def everything():
    """A mixture of all kinds, many times, and its values along a line."""

    def draw(key):
        arguments = (jnp.asarray(ADJACENCY), jnp.asarray(WEIGHT))
        made = draw_features(key, tuple(MECHANISMS), *arguments)
        values = lambda row: jax.vmap(made.of, (0, None))(jnp.arange(D), row)
        return made, jax.vmap(values)(jnp.asarray(LINE, jnp.float32))

    keys = jax.random.split(jax.random.key(0), DRAWS)
    made, values = jax.jit(lambda keys: jax.lax.map(draw, keys))(keys)
    return jax.tree.map(np.asarray, made), np.asarray(values)


@pytest.fixture(scope="module")
def rows(everything) -> dict[str, np.ndarray]:
    """Which draws are of each kind, told apart by their units."""
    features, _ = everything
    units = (features.outer[:, 1] != 0).sum(axis=-1)
    first = features.activation[:, 1, 0]
    found = {
        kind: (units == UNITS[kind]) & (first == FIRST_UNIT.get(kind, IDENTITY))
        for kind in MECHANISMS
    }
    assert (np.sum(list(found.values()), axis=0) == 1).all()
    return found


@pytest.fixture(scope="module")
def made(everything, rows) -> dict[str, Features]:
    pick = lambda row: jax.tree.map(lambda x: x[row], everything[0])
    return {kind: pick(row) for kind, row in rows.items()}


@pytest.fixture(scope="module")
def curves(everything, rows) -> dict[str, np.ndarray]:
    """f_j along the line, [draw, point, variable], for every kind."""
    return {kind: everything[1][row] for kind, row in rows.items()}


def test_a_variable_without_causes_stays_at_zero(curves):
    for values in curves.values():
        np.testing.assert_array_equal(values[..., [0, 3]], 0.0)


def test_only_causes_are_looked_at(made):
    for features in made.values():
        seen = (np.asarray(features.inner) != 0).any(axis=2)  # [draw, child, cause]
        np.testing.assert_array_equal(seen, np.broadcast_to(ADJACENCY.T, seen.shape))


def test_linear_mechanisms_are_the_weights(curves):
    expected = LINE @ np.where(ADJACENCY, WEIGHT, 0)
    found = curves["linear"]
    np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), atol=1e-5)


def test_quadratic_mechanisms_are_bent_evenly(curves):
    values = curves["quadratic"][..., [1, 2]]
    np.testing.assert_allclose(np.diff(values, 3, axis=1), 0.0, atol=1e-5)
    bend = np.diff(values, 2, axis=1)[:, 0] / STEP**2
    assert (abs(bend) > 1e-4).any()
    # Variable 1 has one cause: |c (w/2)^2| at most.
    assert abs(bend[:, 0]).max() <= (1.5 / 2) ** 2 + 1e-4


@pytest.mark.parametrize(("kind", "most"), [("tanh", 4.0), ("mlp", None)])
def test_bounded_mechanisms(made, curves, kind, most):
    bound = np.abs(np.asarray(made[kind].outer)).sum(axis=-1)
    if most is not None:
        assert bound.max() <= most
    assert (abs(curves[kind]) <= bound[:, None] + 1e-5).all()
    assert (np.diff(curves[kind], 2, axis=1)[..., [1, 2]] != 0).any()


def test_random_fourier_mechanisms_have_the_promised_scale(made):
    """Sum of outer^2 / 2 is the variance of the process, about the output scale^2."""
    outer = np.asarray(made["rff"].outer)[:, [1, 2]]
    deviation = np.sqrt(np.square(outer).sum(axis=-1) / 2)
    assert OUTPUT_SCALE[0] / 2 < deviation.min()
    assert deviation.max() < OUTPUT_SCALE[1] * 2


def test_waves_have_the_promised_lengths(made):
    """Directions have length 1, so a wave's number is that of its inner weights."""
    number = np.linalg.norm(np.asarray(made["wave"].inner)[:, [1, 2], 1:4], axis=-1)
    length = 2 * np.pi / number
    assert WAVE_LENGTH[0] * 0.999 <= length.min() < 3
    assert 10 < length.max() <= WAVE_LENGTH[1] * 1.001
    assert (np.asarray(made["wave"].outer)[:, [1, 2], 0] <= 1).all()


def test_a_mixture_draws_every_kind_in_one_shape(everything, rows):
    assert everything[0].inner.shape == (DRAWS, D, max(UNITS.values()), D)
    assert min(row.sum() for row in rows.values()) > 3
