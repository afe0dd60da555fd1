"""Nonlinear problems of the causal optimization literature, and an epidemic of ours.

Each target is a sum of terms that depend on few variables, so that expected outcomes
are exact but for quadrature over one or two of them. Every `normal(key)` is e, N(0, 1)
and independent for each variable.
"""

from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import sigmoid
from jax.random import normal
from jaxtyping import Array, PRNGKeyArray
from scipy.special import expit

from acbo.mechanisms import create_root_mechanism
from acbo.named.model import LinearForm, create_linear_scm, create_scm, linear_form
from acbo.problems.problem import (
    Problem,
    Rule,
    gaussian_rule,
    make_problem,
    point_rule,
    uniform_rule,
)

# The causes of each variable and its equation, from the values of the causes `v` and a
# key; None for e alone. They are made once: a compiled program is found again by the
# very functions it was made of.
Equations = Mapping[str, tuple[str, Any]]
DAMP = float(np.exp(-1 / 2))  # E cos(m + e) = DAMP cos m, and the same for sin


def rule(value: float | None, scale: float = 1.0) -> Rule:
    """Return the rule of a variable that is set, or of N(0, scale^2) if it is not."""
    return gaussian_rule(scale) if value is None else point_rule(value)


# Local minima of do(Z) lie near 3.10, 9.39 and 15.69, the global one at -3.20.
_TOY: Equations = {
    "X": ("", None),
    "Z": ("X", lambda v, key: jnp.exp(-v["X"]) + normal(key)),
    "Y": ("Z", lambda v, key: jnp.cos(v["Z"]) - jnp.exp(-v["Z"] / 20) + normal(key)),
}


def _toy_mean(do: Mapping[str, float]) -> float:
    if "Z" in do:
        return float(np.cos(do["Z"]) - np.exp(-do["Z"] / 20))
    x, weights = rule(do.get("X"))
    middle = np.exp(-x)  # of Z, whose noise has these moments
    return float(weights @ (DAMP * np.cos(middle) - np.exp(-middle / 20 + 1 / 800)))


# No single variable reaches the deeper bump. The ranges (-3, 3) are ours.
_BUMPS: Equations = {
    "X": ("", None),
    "Z": ("", None),
    "Y": (
        "X Z",
        lambda v, key: (
            -2 * jnp.exp(-jnp.square(v["X"] - 1) - jnp.square(v["Z"] - 1))
            - jnp.exp(-jnp.square(v["X"] + 1) - jnp.square(v["Z"]))
            + normal(key)
        ),
    ),
}


def _bumps_mean(do: Mapping[str, float]) -> float:
    def bump(name: str, center: float) -> float:
        """Return exp(-(x - center)^2), or its mean over N(0, 1) if x is not set."""
        if name in do:
            return float(np.exp(-((do[name] - center) ** 2)))
        return float(np.exp(-(center**2) / 3) / np.sqrt(3))

    return -2 * bump("X", 1.0) * bump("Z", 1.0) - bump("X", -1.0) * bump("Z", 0.0)


def _decay(v: dict[str, Array], key: PRNGKeyArray) -> Array:
    return jnp.exp(-v["C"]) / 10 + normal(key)


def _wave(v: dict[str, Array], key: PRNGKeyArray) -> Array:
    d, e = v["D"], v["E"]
    return jnp.cos(d) - d / 5 + jnp.sin(e) - e / 4 + normal(key)


_COMPLETE: Equations = {
    "F": ("", None),
    "A": ("F U1", lambda v, key: jnp.square(v["F"]) + v["U1"] + normal(key)),
    "B": ("U2", lambda v, key: v["U2"] + normal(key)),
    "C": ("B", lambda v, key: jnp.exp(-v["B"]) + normal(key)),
    "D": ("C", _decay),
    "E": ("A C", lambda v, key: jnp.cos(v["A"]) + v["C"] / 10 + normal(key)),
    "Y": ("D E U1 U2", lambda v, key: _wave(v, key) + v["U1"] + jnp.exp(-v["U2"])),
    "U1": ("", None),
    "U2": ("", None),
}
_SECOND: Equations = {
    "A": ("", None),
    "B": ("", None),
    "C": ("A", lambda v, key: jnp.exp(-v["A"]) / 5 + normal(key)),
    "D": ("B C", lambda v, key: jnp.cos(v["B"]) + v["C"] / 10 + normal(key)),
    "E": ("C", _decay),
    "Y": ("D E", _wave),
}


def _complete_mean(do: Mapping[str, float]) -> float:
    # B has variance 2: its own noise and that of U2.
    wave, decay, tenth_wave, tenth = _moments_of_c(do.get("B"), 2**0.5, 1.0)
    turn, angle = _complete_angle(do.get("F"))
    first = wave.real - decay / 5
    second = (DAMP * turn * tenth_wave).imag - (angle + tenth) / 4
    return _wave_mean(do, first, second) + float(np.exp(1 / 2))  # of exp(-U2)


def _second_mean(do: Mapping[str, float]) -> float:
    wave, decay, tenth_wave, tenth = _moments_of_c(do.get("A"), 1.0, 1 / 5)
    b, chances = gaussian_rule()
    turn = complex(chances @ np.exp(1j * np.cos(b)))
    # E cos B = DAMP for B from N(0, 1).
    first = (DAMP * turn * tenth_wave).real - (DAMP + tenth) / 5
    return _wave_mean(do, first, wave.imag - decay / 4)


def _wave_mean(do: Mapping[str, float], first: float, second: float) -> float:
    """Return E[cos D - D/5] + E[sin E - E/4], given both for D and E that are free."""
    if "D" in do:
        first = float(np.cos(do["D"]) - do["D"] / 5)
    if "E" in do:
        second = float(np.sin(do["E"]) - do["E"] / 4)
    return first + second


# The sums over two variables are kept, so that a grid over others costs them once.
@lru_cache(maxsize=256)
def _moments_of_c(
    cause: float | None, scale: float, factor: float
) -> tuple[complex, float, complex, float]:
    """Return E exp(i (exp(-C)/10 + e)), E exp(-C)/10, E exp(i C/10) and E C/10, where
    C = factor exp(-cause) + e.
    """
    nodes, weights = rule(cause, scale)
    middle = factor * np.exp(-nodes)
    noise, chances = gaussian_rule()
    decay = np.exp(-(middle[:, None] + noise[None, :])) / 10
    wave = complex(DAMP * (weights @ np.exp(1j * decay) @ chances))
    tenth_wave = complex(np.exp(-1 / 200) * (weights @ np.exp(1j * middle / 10)))
    mean_decay = float(weights @ np.exp(-middle)) * float(np.exp(1 / 2)) / 10
    return wave, mean_decay, tenth_wave, float(weights @ middle) / 10


@lru_cache(maxsize=256)
def _complete_angle(f: float | None) -> tuple[complex, float]:
    """Return E exp(i cos A) and E cos A."""
    nodes, chances = rule(f)
    noise, odds = gaussian_rule(2**0.5)  # of A: its own noise and U1
    angle = np.cos(nodes[:, None] ** 2 + noise[None, :])
    turn = complex(chances @ np.exp(1j * angle) @ odds)
    return turn, float(chances @ angle @ odds)


YOUNGEST, OLDEST = 55.0, 75.0  # years
# Prostate antigen Y by aspirin A and statin S.
_PSA: Equations = {
    "age": ("", lambda v, key: jax.random.uniform(key, minval=YOUNGEST, maxval=OLDEST)),
    "bmi": ("age", lambda v, key: 27.0 - 0.01 * v["age"] + 0.7 * normal(key)),
    "A": ("age bmi", lambda v, _: sigmoid(-8.0 + 0.10 * v["age"] + 0.03 * v["bmi"])),
    "S": ("age bmi", lambda v, _: sigmoid(-13.0 + 0.10 * v["age"] + 0.20 * v["bmi"])),
    "cancer": (
        "age bmi A S",
        lambda v, key: sigmoid(
            2.2 - 0.05 * v["age"] + 0.01 * v["bmi"] - 0.04 * v["S"] + 0.02 * v["A"]
        ),
    ),
    "Y": (
        "age bmi A S cancer",
        lambda v, key: (
            6.8
            + 0.04 * v["age"]
            - 0.15 * v["bmi"]
            + (-0.60 * v["S"] + 0.55 * v["A"])
            + v["cancer"]
            + 0.4 * normal(key)
        ),
    ),
}


def _psa_mean(do: Mapping[str, float]) -> float:
    age, chances = uniform_rule(YOUNGEST, OLDEST)
    noise, odds = gaussian_rule(0.7)
    age = age[:, None]
    bmi = 27 - 0.01 * age + noise[None, :]
    a = do.get("A", expit(-8 + 0.10 * age + 0.03 * bmi))
    s = do.get("S", expit(-13 + 0.10 * age + 0.20 * bmi))
    cancer = expit(2.2 - 0.05 * age + 0.01 * bmi - 0.04 * s + 0.02 * a)
    y = 6.8 + 0.04 * age - 0.15 * bmi - 0.60 * s + 0.55 * a + cancer
    return float(chances @ y @ odds)


def _problem(
    name: str,
    equations: Equations,
    mean: Callable[[Mapping[str, float]], float],
    ranges: Mapping[str, tuple[float, float]],
    best: Mapping[str, float],
    best_pair: Mapping[str, float] | None = None,
    *,
    hidden: tuple[str, ...] = (),
) -> Problem:
    """Return the problem to minimize Y of some equations."""
    root = create_root_mechanism()
    scm = create_scm(
        tuple(equations),
        [(c, n) for n, (causes, _) in equations.items() for c in causes.split()],
        {n: root if each is None else each for n, (_, each) in equations.items()},
        target="Y",
        ranges=ranges,
        hidden=hidden,
    )
    return make_problem(name, scm, mean, best, best_pair)


# The equations of the epidemic are ours, made for tests in standardized units; they
# describe no real one. All but the cost are linear: coefficients, and scales of noise.
_SPREAD = {
    ("risk", "vaccines"): 0.5,
    ("risk", "distance"): 0.7,
    ("vaccines", "distance"): -0.4,
    ("risk", "growth"): 0.6,
    ("vaccines", "growth"): -0.5,
    ("distance", "growth"): -0.6,
}
_SCALES = {"risk": 1.0, "vaccines": 0.5, "distance": 0.5, "growth": 0.3}


def _cost(v: dict[str, Array], key: PRNGKeyArray) -> Array:
    squares = 0.3 * jnp.square(v["distance"]) + 0.1 * jnp.square(v["vaccines"])
    return jnp.exp(v["growth"] / 2) + squares + 0.2 * normal(key)


@cache
def _linear_part() -> tuple[Mapping[str, Any], LinearForm]:
    """Return the mechanisms of all but the cost, and their numbers."""
    base = {"growth": 0.2}
    scm = create_linear_scm(
        tuple(_SCALES), _SPREAD, intercepts=base, noise_scales=_SCALES
    )
    return scm.mechanisms, linear_form(scm)


def epidemic_static() -> Problem:
    """Minimize the cost of an epidemic at one moment.

    Vaccines and distance may be set within -2 and 2; either answers the risk when it
    is left alone, so that seeing and doing differ.
    """
    scm = create_scm(
        (*_SCALES, "cost"),
        [*_SPREAD, *((name, "cost") for name in ("growth", "distance", "vaccines"))],
        {**_linear_part()[0], "cost": _cost},
        target="cost",
        ranges={"vaccines": (-2.0, 2.0), "distance": (-2.0, 2.0)},
    )
    best, pair = {"distance": 0.4932466}, {"vaccines": 1.0068738, "distance": 0.4027495}
    return make_problem("epidemic_static", scm, _cost_mean, best, pair)


def _cost_mean(do: Mapping[str, float]) -> float:
    form = _linear_part()[1]
    mean, covariance = form.moments(do)
    moments = zip(mean, covariance.diagonal(), strict=True)
    of = dict(zip(form.names, moments, strict=True))
    square = lambda name: of[name][0] ** 2 + of[name][1]
    growth, variance = of["growth"]
    infections = np.exp(growth / 2 + variance / 8)
    return float(infections + 0.3 * square("distance") + 0.1 * square("vaccines"))


_NEAR_END = {"A": -4.9722818}  # of synthetic2: cos D has a minimum inside the range
_ROWS: dict[str, Any] = {
    "toy_graph": (_TOY, _toy_mean, {"X": (-5, 5), "Z": (-5, 20)}, {"Z": -3.2003028}),
    "complete_graph": (
        *(_COMPLETE, _complete_mean),
        {"B": (-5, 4), "D": (-5, 5), "E": (-6, 3), "F": (-4, 4)},
        *({"B": -5.0}, {"B": -5.0, "D": 3.3429506}),
    ),
    "psa": (
        *(_PSA, _psa_mean, {"A": (0, 1), "S": (0, 1)}),
        *({"S": 1.0}, {"A": 0.0, "S": 1.0}),
    ),
    "synthetic2": (
        *(_SECOND, _second_mean, {"A": (-5, 5), "D": (-1, 1), "E": (-1, 1)}),
        *(_NEAR_END, {**_NEAR_END, "E": -1.0}),
    ),
    "two_bumps": (
        *(_BUMPS, _bumps_mean, {"X": (-3, 3), "Z": (-3, 3)}),
        *({"Z": 0.7767024}, {"X": 0.993048, "Z": 0.996524}),
    ),
}
_HIDDEN = {"complete_graph": ("U1", "U2")}
PROBLEMS: dict[str, Callable[[], Problem]] = {
    name: partial(_problem, name, *row, hidden=_HIDDEN.get(name, ()))
    for name, row in _ROWS.items()
}
