"""Mechanisms and noise of structural causal models, on the device and by name.

On the device every kind has one form, f_j(x) = intercept_j + sum_h outer_jh
act_jh(inner_jh . x + bias_jh), so that models of all kinds share arrays and one
program: linear with one identity unit, quadratic with a square beside it, tanh with
one unit, a network with many of them, random Fourier features with many cosines.

By name a mechanism is called with the values of the causes and a PRNG key, and gives
one value; `create_mechanism` makes one of any kind in `MECHANISMS`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.types import as_float, check_known
from jaxrig.compile_guard import compile_once

IDENTITY, SQUARE, TANH, COSINE = range(4)
NETWORK_UNITS, FOURIER_UNITS, WAVES = 8, 32, 3
LENGTH_SCALE = (7.0, 10.0)  # of random Fourier mechanisms, in units of the causes
OUTPUT_SCALE = (10.0, 20.0)
WAVE_LENGTH = (1.5, 20.0)  # in units of the causes


class Features(eqx.Module):
    """Parameters of the mechanisms of d variables, with h units each."""

    inner: Float[Array, "*batch d h d"]  # [child, unit, cause]; zero for no cause
    bias: Float[Array, "*batch d h"]
    outer: Float[Array, "*batch d h"]
    activation: Int[Array, "*batch d h"]
    intercept: Float[Array, "*batch d"]

    def of(self, j: Int[Array, ""], row: Float[Array, " d"]) -> Float[Array, ""]:
        """Evaluate the mechanism of variable j at a row of values."""
        kind, x = self.activation[j], self.inner[j] @ row + self.bias[j]
        # All four and a choice: under vmap a switch would compute them all too.
        units = jnp.select(
            [kind == IDENTITY, kind == SQUARE, kind == TANH],
            [x, jnp.square(x), jnp.tanh(x)],
            jnp.cos(x),
        )
        return self.intercept[j] + self.outer[j] @ units


def with_equal_units(features: Sequence[Features]) -> list[Features]:
    """Give all the most units that one has; those added have no effect."""
    most = max(each.bias.shape[1] for each in features)

    def pad(leaf: Array) -> Array:
        if leaf.ndim == 1:  # the intercepts
            return leaf
        extra = [
            (0, most - leaf.shape[1] if axis == 1 else 0) for axis in range(leaf.ndim)
        ]
        return jnp.pad(leaf, extra)

    return [jax.tree.map(pad, each) for each in features]


Draw = Callable[[PRNGKeyArray, Float[Array, "d d"]], Features]


def _make(
    inner: Array, bias: Array | float, outer: Array, kinds: list[int]
) -> Features:
    """Return the features of units of these kinds, which every variable has."""
    shape = inner.shape[:2]
    full = lambda x: jnp.broadcast_to(jnp.asarray(x), shape)
    units = full(bias), full(outer), full(jnp.array(kinds)[None])
    return Features(inner, *units, jnp.zeros(shape[0]))


def _between(key: PRNGKeyArray, ends: tuple[float, float], *shape: int) -> Array:
    return jax.random.uniform(key, shape, minval=ends[0], maxval=ends[1])


def _phases(key: PRNGKeyArray, *shape: int) -> Array:
    return jax.random.uniform(key, shape, maxval=float(2 * np.pi))


def _linear(key: PRNGKeyArray, weight: Float[Array, "d d"]) -> Features:
    return _make(weight.T[:, None, :], 0.0, jnp.ones((1, 1)), [IDENTITY])


def _quadratic(key: PRNGKeyArray, weight: Float[Array, "d d"]) -> Features:
    """Draw x_j = w.x + c (v.x)^2 / 2 with |c| <= 1 and v half as long as w."""
    d = weight.shape[0]
    turn, size = jax.random.split(key)
    bent = weight.T / 2 * jax.random.rademacher(turn, (d, d), weight.dtype)
    inner = jnp.stack([weight.T, bent], axis=1)
    outer = jnp.stack([jnp.ones(d), _between(size, (-1.0, 1.0), d) / 2], axis=1)
    return _make(inner, 0.0, outer, [IDENTITY, SQUARE])


def _tanh(key: PRNGKeyArray, weight: Float[Array, "d d"]) -> Features:
    d = weight.shape[0]
    scale, shift = jax.random.split(key)
    bias = jax.random.normal(shift, (d, 1)) / 2
    outer = _between(scale, (1.0, 4.0), d, 1)
    return _make(weight.T[:, None, :], bias, outer, [TANH])


def _mlp(key: PRNGKeyArray, weight: Float[Array, "d d"]) -> Features:
    """Draw one hidden layer of tanh units."""
    d, h = weight.shape[0], NETWORK_UNITS
    turn, shift, last = jax.random.split(key, 3)
    inner = weight.T[:, None, :] * jax.random.normal(turn, (d, h, d))
    bias = jax.random.normal(shift, (d, h))
    outer = jax.random.normal(last, (d, h)) * float(2.0 / np.sqrt(h))
    return _make(inner, bias, outer, [TANH] * h)


def _rff(key: PRNGKeyArray, weight: Float[Array, "d d"]) -> Features:
    """Draw from a Gaussian process: random Fourier features of random length and output
    scale (Rahimi and Recht 2007), as in the AVICI benchmarks.
    """
    d, h = weight.shape[0], FOURIER_UNITS
    turn, shift, last, long, high = jax.random.split(key, 5)
    length = _between(long, LENGTH_SCALE, d, 1, 1)
    cause = (weight.T != 0)[:, None, :]
    inner = jnp.where(cause, jax.random.normal(turn, (d, h, d)) / length, 0.0)
    scale = _between(high, OUTPUT_SCALE, d, 1)
    # sqrt(2 / h) makes the variance of h cosines with random phases that of the kernel.
    outer = jax.random.normal(last, (d, h)) * scale * float(np.sqrt(2.0 / h))
    return _make(inner, _phases(shift, d, h), outer, [COSINE] * h)


def _wave(key: PRNGKeyArray, weight: Float[Array, "d d"]) -> Features:
    """Draw a slope and three waves, each along its own direction through the causes."""
    d, h = weight.shape[0], WAVES
    slope, turn, shift, long, high = jax.random.split(key, 5)
    cause = (weight.T != 0)[:, None, :]
    way = jnp.where(cause, jax.random.normal(turn, (d, h, d)), 0.0)
    way = way / jnp.maximum(jnp.linalg.norm(way, axis=-1, keepdims=True), 1e-6)
    low, top = np.log(WAVE_LENGTH).tolist()
    length = jnp.exp(_between(long, (low, top), d, h, 1))
    inner = jnp.concatenate([weight.T[:, None], way * (2 * np.pi) / length], axis=1)
    bias = jnp.concatenate([jnp.zeros((d, 1)), _phases(shift, d, h)], axis=1)
    tilt = jax.random.uniform(slope, (d, 1))
    outer = jnp.concatenate([tilt, 2 * jax.random.normal(high, (d, h))], axis=1)
    return _make(inner, bias, outer, [IDENTITY] + [COSINE] * h)


# A new kind is one function (key, weight) -> Features and one line here; `weight[i, j]`
# is 0 unless i causes j.
MECHANISMS: dict[str, Draw] = {
    "linear": _linear,
    "quadratic": _quadratic,
    "tanh": _tanh,
    "mlp": _mlp,
    "rff": _rff,
    "wave": _wave,
}


def draw_features(
    key: PRNGKeyArray,
    kinds: tuple[str, ...],
    adjacency: Bool[Array, "d d"],
    weight: Float[Array, "d d"],
) -> Features:
    """Draw mechanisms of one of the kinds; variables without a cause stay at 0."""
    pick, draw = jax.random.split(key)
    weight = jnp.where(adjacency, weight, 0.0)
    made = with_equal_units([MECHANISMS[kind](draw, weight) for kind in kinds])
    which = jax.random.randint(pick, (), 0, len(kinds))
    features = jax.tree.map(lambda *each: jnp.stack(each)[which], *made)
    caused = adjacency.any(axis=0)
    outer = jnp.where(caused[:, None], features.outer, 0.0)
    return eqx.tree_at(lambda f: f.outer, features, outer)


GAUSSIAN, LAPLACE, UNIFORM, HETEROSCEDASTIC = range(4)
NOISE_KINDS = {
    "gaussian": GAUSSIAN,
    "laplace": LAPLACE,
    "uniform": UNIFORM,
    "heteroscedastic": HETEROSCEDASTIC,
}


def draw_noise(key: PRNGKeyArray, kind: Int[Array, " d"]) -> Float[Array, " d"]:
    """Draw the noise of each variable, of mean 0 and variance 1."""
    # One key for all kinds, since each variable uses one of the draws. A Laplace of
    # scale 1 has variance 2, a uniform on [-b, b] has b**2 / 3.
    d = kind.shape[0]
    gaussian = jax.random.normal(key, (d,))
    laplace = jax.random.laplace(key, (d,)) / float(np.sqrt(2.0))
    bound = float(np.sqrt(3.0))
    uniform = jax.random.uniform(key, (d,), minval=-bound, maxval=bound)
    return jnp.select([kind == LAPLACE, kind == UNIFORM], [laplace, uniform], gaussian)


def noise_factor(
    kind: Int[Array, "*n"], mean: Float[Array, "*n"]
) -> Float[Array, "*n"]:
    """Return what multiplies the noise: 1, or for heteroscedastic noise between 1/2 and
    3/2, growing with the mean.
    """
    return jnp.where(kind == HETEROSCEDASTIC, 0.5 + jax.nn.sigmoid(mean), 1.0)


Values = Mapping[str, Array]
Mechanism = Callable[[dict[str, Array], PRNGKeyArray], Any]


class LinearMechanism(eqx.Module):
    """intercept + sum of coefficient * cause + noise_scale * N(0, 1), then clipped."""

    parents: tuple[str, ...] = eqx.field(static=True)
    coefficients: Float[Array, "*batch parents"]
    intercept: Float[Array, "*batch"]
    noise_scale: Float[Array, "*batch"]
    output_bounds: Float[Array, "*batch 2"] | None = None

    def __call__(self, parents: Values, key: PRNGKeyArray) -> Float[Array, ""]:
        """Return the value that follows from the causes and the noise of this key."""
        mean = self.intercept
        for place, name in enumerate(self.parents):
            mean = mean + self.coefficients[place] * parents[name]
        value = mean + self.noise_scale * jax.random.normal(key)
        if self.output_bounds is None:
            return value
        return jnp.clip(value, self.output_bounds[0], self.output_bounds[1])


class FeatureMechanism(eqx.Module):
    """A mechanism of any registered kind, of one variable and its causes by name."""

    parents: tuple[str, ...] = eqx.field(static=True)
    features: Features  # of the causes in order and, last, the variable itself
    noise_scale: Float[Array, "*batch"]

    def __call__(self, parents: Values, key: PRNGKeyArray) -> Float[Array, ""]:
        """Return the value that follows from the causes and the noise of this key."""
        row = jnp.stack([*(parents[name] for name in self.parents), jnp.zeros(())])
        mean = self.features.of(jnp.asarray(len(self.parents)), row)
        return mean + self.noise_scale * jax.random.normal(key)


class SoftMechanism(eqx.Module):
    """Another mechanism scaled and moved: what a soft intervention makes of it."""

    inner: Any
    shift: Float[Array, "*batch"]
    scale: Float[Array, "*batch"]

    def __call__(self, parents: Values, key: PRNGKeyArray) -> Float[Array, ""]:
        """Return the mechanism's value, scaled and moved."""
        return self.scale * self.inner(parents, key) + self.shift


def soften(mechanism: Any, shift: float, scale: float) -> Any:
    """Return scale * mechanism + shift; a linear mechanism stays linear."""
    plain = isinstance(mechanism, LinearMechanism) and mechanism.output_bounds is None
    if not plain:
        return SoftMechanism(mechanism, jnp.asarray(shift), jnp.asarray(scale))
    return LinearMechanism(
        mechanism.parents,
        scale * mechanism.coefficients,
        scale * mechanism.intercept + shift,
        scale * mechanism.noise_scale,
    )


class Formula(eqx.Module):
    """A plain function as a mechanism; it is part of the compiled program."""

    function: Mechanism = eqx.field(static=True)

    def __call__(self, parents: Values, key: PRNGKeyArray) -> Any:
        """Return the function's value."""
        return self.function(dict(parents), key)


def as_mechanism(function: Any, name: str) -> Any:
    """Return a mechanism that is a pytree of arrays; plain functions are wrapped."""
    if not callable(function):
        raise ValueError(
            f"the mechanism of {name!r} is {function!r}: give a function of "
            "(values of the causes by name, key)"
        )
    return function if isinstance(function, eqx.Module) else Formula(function)


def create_linear_mechanism(
    parents: Sequence[str],
    coefficients: Mapping[str, Any],
    intercept: Any = 0.0,
    noise_scale: Any = 1.0,
    output_bounds: tuple[Any, Any] | None = None,
) -> LinearMechanism:
    """Return intercept + sum of coefficients * causes + noise_scale * N(0, 1).

    With `output_bounds` (low, high) the value is clipped to them.
    """
    bounds = None
    if output_bounds is not None:
        low, high = (as_float(b, "output_bounds") for b in output_bounds)
        if low > high:
            raise ValueError(
                f"output_bounds ({low}, {high}) are empty: give low <= high"
            )
        bounds = jnp.asarray([low, high], dtype=float)
    base = jnp.asarray(as_float(intercept, "intercept"), dtype=float)
    weights, scale = _weights(parents, coefficients), _noise_scale(noise_scale)
    return LinearMechanism(tuple(parents), weights, base, scale, bounds)


def create_root_mechanism(mean: Any = 0.0, noise_scale: Any = 1.0) -> LinearMechanism:
    """Return a variable without causes: mean + noise_scale * N(0, 1); without noise it
    is a constant, as after a perfect intervention.
    """
    return create_linear_mechanism((), {}, as_float(mean, "mean"), noise_scale)


# One program for each kind and number of causes.
_draw_features = compile_once(draw_features, max_traces=128)


def create_mechanism(
    kind: str,
    parents: Sequence[str],
    coefficients: Mapping[str, Any],
    noise_scale: Any = 1.0,
    seed: int = 0,
) -> FeatureMechanism:
    """Return a mechanism of a kind in `MECHANISMS`; the seed draws its other numbers.

    >>> create_mechanism("tanh", ["dose"], {"dose": 1.5}).parents
    ('dose',)
    """
    check_known(kind, MECHANISMS, "mechanism")
    d = len(parents) + 1
    weight = jnp.zeros((d, d)).at[:-1, -1].set(_weights(parents, coefficients))
    adjacency = weight != 0
    features = _draw_features(jax.random.key(seed), (kind,), adjacency, weight)
    return FeatureMechanism(tuple(parents), features, _noise_scale(noise_scale))


def plain_number(value: Any) -> float:
    """Return the shortest decimal that stands for the device's number, as a float.

    0.8 in single precision is 0.800000011920929 in double; this gives 0.8 again.
    """
    return float(str(np.asarray(value)[()]))


def plain_numbers(values: Any) -> np.ndarray:
    """Return `plain_number` of every cell of an array, in double precision."""
    table = np.asarray(values)
    cells = [plain_number(cell) for cell in table.ravel()]
    return np.array(cells, dtype=np.float64).reshape(table.shape)


def _weights(
    parents: Sequence[str], coefficients: Mapping[str, Any]
) -> Float[Array, " parents"]:
    missing = sorted(set(parents) - set(coefficients))
    extra = sorted(set(coefficients) - set(parents))
    if missing:
        raise ValueError(f"the cause {missing[0]!r} has no coefficient: give one")
    if extra:
        raise ValueError(
            f"{extra[0]!r} has a coefficient and is not a cause: give coefficients for "
            f"exactly the parents ({', '.join(parents)})"
        )
    weights = [as_float(coefficients[p], f"coefficient of {p!r}") for p in parents]
    return jnp.asarray(weights, dtype=float)


def _noise_scale(given: Any) -> Float[Array, ""]:
    scale = as_float(given, "noise_scale")
    if scale < 0:
        raise ValueError(f"noise_scale is {scale}: give 0 (no noise) or more")
    return jnp.asarray(scale, dtype=float)
