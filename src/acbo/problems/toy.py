"""Small nonlinear problems of the causal optimization literature, in closed form."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from acbo.named.mechanisms import create_root_mechanism
from acbo.named.model import create_scm
from acbo.problems.problem import Problem, make_problem
from acbo.problems.quadrature import gaussian_rule, point_rule

Values = dict[str, Array]


def toy_graph() -> Problem:
    """X = e; Z = exp(-X) + e; Y = cos Z - exp(-Z/20) + e, e from N(0, 1); minimize.

    Local minima of do(Z) lie near 3.10, 9.39 and 15.69, the global one at -3.20.
    """
    scm = create_scm(
        ("X", "Z", "Y"),
        [("X", "Z"), ("Z", "Y")],
        {"X": create_root_mechanism(), "Z": _toy_z, "Y": _toy_y},
        target="Y",
        ranges={"X": (-5.0, 5.0), "Z": (-5.0, 20.0)},
    )
    return make_problem("toy_graph", scm, _toy_mean, {"Z": -3.2003028})


def _toy_z(values: Values, key: PRNGKeyArray) -> Array:
    return jnp.exp(-values["X"]) + jax.random.normal(key)


def _toy_y(values: Values, key: PRNGKeyArray) -> Array:
    z = values["Z"]
    return jnp.cos(z) - jnp.exp(-z / 20) + jax.random.normal(key)


def _toy_mean(do: Mapping[str, float]) -> float:
    if "Z" in do:
        return float(np.cos(do["Z"]) - np.exp(-do["Z"] / 20))
    x, weights = point_rule(do["X"]) if "X" in do else gaussian_rule()
    middle = np.exp(-x)  # of Z, whose noise has these moments
    values = np.cos(middle) * np.exp(-1 / 2) - np.exp(-middle / 20 + 1 / 800)
    return float(weights @ values)


def two_bumps() -> Problem:
    """X, Z = e; Y = -2 exp(-(X-1)^2 - (Z-1)^2) - exp(-(X+1)^2 - Z^2) + e; minimize.

    The ranges (-3, 3) are ours. No single variable reaches the deeper bump.
    """
    scm = create_scm(
        ("X", "Z", "Y"),
        [("X", "Y"), ("Z", "Y")],
        {"X": create_root_mechanism(), "Z": create_root_mechanism(), "Y": _bumps_y},
        target="Y",
        ranges={"X": (-3.0, 3.0), "Z": (-3.0, 3.0)},
    )
    pair = {"X": 0.993048, "Z": 0.996524}
    return make_problem("two_bumps", scm, _bumps_mean, {"Z": 0.7767024}, pair)


def _bumps_y(values: Values, key: PRNGKeyArray) -> Array:
    x, z = values["X"], values["Z"]
    deep = 2 * jnp.exp(-jnp.square(x - 1) - jnp.square(z - 1))
    flat = jnp.exp(-jnp.square(x + 1) - jnp.square(z))
    return -deep - flat + jax.random.normal(key)


def _bumps_mean(do: Mapping[str, float]) -> float:
    deep = 2 * _bump(do.get("X"), 1.0) * _bump(do.get("Z"), 1.0)
    return -deep - _bump(do.get("X"), -1.0) * _bump(do.get("Z"), 0.0)


def _bump(value: float | None, center: float) -> float:
    """exp(-(x - center)^2), or its mean over N(0, 1) where nothing is set."""
    if value is None:
        return float(np.exp(-(center**2) / 3) / np.sqrt(3))
    return float(np.exp(-((value - center) ** 2)))
