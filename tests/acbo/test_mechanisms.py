"""Oracles: the sum of units in NumPy, the promised shapes of each kind, and moments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.mechanisms import (
    COSINE,
    GAUSSIAN,
    HETEROSCEDASTIC,
    IDENTITY,
    LAPLACE,
    MECHANISMS,
    NOISE_KINDS,
    OUTPUT_SCALE,
    SQUARE,
    TANH,
    UNIFORM,
    WAVE_LENGTH,
    Features,
    Formula,
    SoftMechanism,
    as_mechanism,
    create_linear_mechanism,
    create_root_mechanism,
    draw_features,
    draw_noise,
    noise_factor,
    plain_number,
    plain_numbers,
)
from jaxrig.keys import batch_keys

FUNCTIONS = {IDENTITY: lambda x: x, SQUARE: np.square, TANH: np.tanh, COSINE: np.cos}
ALL = jax.jit(
    lambda features, row: jax.vmap(features.of, (0, None))(
        jnp.arange(row.shape[0]), row
    )
)


def test_a_mechanism_is_the_weighted_sum_of_its_units():
    random = np.random.default_rng(0)
    d, units = 3, 4
    inner, bias = random.normal(size=(d, units, d)), random.normal(size=(d, units))
    outer, intercept = random.normal(size=(d, units)), random.normal(size=d)
    kind = np.stack([random.permutation(4) for _ in range(d)])
    row = random.normal(size=d)
    expected = [
        intercept[j]
        + sum(
            outer[j, h] * FUNCTIONS[kind[j, h]](inner[j, h] @ row + bias[j, h])
            for h in range(units)
        )
        for j in range(d)
    ]
    single = lambda x: jnp.asarray(x, jnp.float32)
    features = Features(
        single(inner), single(bias), single(outer), jnp.asarray(kind), single(intercept)
    )
    np.testing.assert_allclose(ALL(features, single(row)), expected, rtol=1e-5)


D = 4
ADJACENCY = np.array([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]], bool)
WEIGHT = np.array([[9, -1.5, 0.5, 9], [9, 9, 2, 9], [9] * 4, [9] * 4], np.float32)
STEP = 0.5
LINE = (np.arange(5)[:, None] * STEP - 1) * np.array([[1.0, -0.7, 3.0, 5.0]])
DRAWS = 20 * len(MECHANISMS)
FIRST_UNIT = {"rff": COSINE, "tanh": TANH, "mlp": TANH}
SHAPES = {
    kind: jax.eval_shape(make, jax.random.key(0), jnp.asarray(WEIGHT))
    for kind, make in MECHANISMS.items()
}
UNITS = {kind: features.bias.shape[1] for kind, features in SHAPES.items()}


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


def test_only_causes_are_looked_at_and_without_any_the_value_is_zero(made, curves):
    for values in curves.values():
        np.testing.assert_array_equal(values[..., [0, 3]], 0.0)
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


ROWS = 20_000
KURTOSIS = {GAUSSIAN: 3.0, LAPLACE: 6.0, UNIFORM: 1.8, HETEROSCEDASTIC: 3.0}


@pytest.fixture(scope="module")
def drawn():
    keys = batch_keys(jax.random.key(3), ROWS)
    kinds = jnp.arange(4)
    return np.asarray(jax.jit(jax.vmap(draw_noise, (0, None)))(keys, kinds))


@pytest.mark.parametrize("kind", NOISE_KINDS.values(), ids=NOISE_KINDS)
def test_mean_variance_and_fourth_moment(drawn, kind):
    x = drawn[:, kind]
    error = 4 / np.sqrt(ROWS)
    assert abs(x.mean()) < error
    fourth = KURTOSIS[kind]
    assert abs(np.square(x).mean() - 1) < error * np.sqrt(fourth - 1)
    assert (x**4).mean() == pytest.approx(fourth, rel=0.15)


def test_uniform_noise_is_bounded_and_variables_draw_apart(drawn):
    assert abs(drawn[:, UNIFORM]).max() <= np.sqrt(3) + 1e-6
    correlation = np.corrcoef(drawn.T) - np.eye(4)
    assert abs(correlation).max() < 4 / np.sqrt(ROWS)


def test_only_heteroscedastic_noise_grows_with_the_mean():
    mean = jnp.asarray([-30.0, 0.0, 30.0])
    grown = noise_factor(jnp.full(3, HETEROSCEDASTIC), mean)
    np.testing.assert_allclose(grown, [0.5, 1.0, 1.5], atol=1e-6)
    for kind in (GAUSSIAN, LAPLACE, UNIFORM):
        np.testing.assert_array_equal(noise_factor(jnp.full(3, kind), mean), 1.0)


PARENTS = {"p": jnp.asarray(2.0), "q": jnp.asarray(-1.0)}


def test_linear_without_noise_is_the_formula(key):
    made = create_linear_mechanism(["p", "q"], {"p": 3.0, "q": 0.5}, 1.0, 0.0)
    assert float(made(PARENTS, key)) == 1 + 3 * 2 - 0.5


def test_noise_has_the_scale_and_the_root_its_mean(key):
    made = create_root_mechanism(4.0, 0.5)
    draws = jax.vmap(lambda k: made({}, k))(jax.random.split(key, 4000))
    np.testing.assert_allclose([draws.mean(), draws.std()], [4.0, 0.5], atol=0.03)


def test_output_is_clipped_to_its_bounds(key):
    made = create_linear_mechanism(["p"], {"p": 100.0}, output_bounds=(-1, 1))
    assert float(made(PARENTS, key)) == 1.0


def test_numbers_are_leaves_and_functions_are_not(key):
    made = create_linear_mechanism(["p", "q"], {"p": 3.0, "q": 0.5})
    assert len(jax.tree.leaves(made)) == 3
    wrapped = as_mechanism(lambda values, key: values["p"] ** 2, "y")
    assert isinstance(wrapped, Formula)
    assert jax.tree.leaves(wrapped) == []
    assert float(wrapped(PARENTS, key)) == 4.0
    assert as_mechanism(made, "y") is made


def test_constant_and_soft(key):
    made = create_linear_mechanism(["p"], {"p": 3.0}, noise_scale=0)
    assert float(create_root_mechanism(7.0, 0.0)(PARENTS, key)) == 7.0
    soft = SoftMechanism(made, jnp.asarray(0.5), jnp.asarray(2.0))
    assert float(soft(PARENTS, key)) == 12.5


def test_plain_number_undoes_single_precision():
    assert plain_number(jnp.asarray(0.8)) == 0.8
    assert plain_number(np.float32(1e-7)) == 1e-7
    assert plain_number(np.float64(0.1)) == 0.1
    table = jnp.asarray([[0.1, 0.2]])
    assert plain_numbers(table).tolist() == [[0.1, 0.2]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: create_linear_mechanism(["p"], {}), "'p' has no coefficient"),
        (lambda: create_linear_mechanism([], {"p": 1.0}), "'p' has a coefficient"),
        (lambda: create_linear_mechanism(["p"], {"p": float("nan")}), "coefficient of"),
        (lambda: create_root_mechanism(0.0, -1.0), "noise_scale is -1"),
        (lambda: create_root_mechanism(0.0, float("inf")), "noise_scale is inf"),
        (lambda: create_root_mechanism("x"), "mean is 'x'"),
        (
            lambda: create_linear_mechanism([], {}, output_bounds=(2.0, 1.0)),
            "are empty",
        ),
        (lambda: as_mechanism(3.0, "y"), "mechanism of 'y' is 3.0"),
    ],
)
def test_wrong_numbers_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
