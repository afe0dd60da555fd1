"""Nonlinear problems of the causal optimization literature, and an epidemic of ours.

Each target is a sum of terms that depend on few variables, so that expected outcomes
are exact but for quadrature over one or two of them.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import sigmoid
from jax.random import normal
from jaxtyping import Array, PRNGKeyArray
from scipy.special import expit

from acbo.mechanisms import create_linear_mechanism, create_root_mechanism
from acbo.named.model import LinearForm, create_scm
from acbo.problems.problem import (
    Problem,
    Rule,
    gaussian_rule,
    make_problem,
    point_rule,
    uniform_rule,
)

Equations = dict[str, Callable[[dict[str, Array], PRNGKeyArray], Array]]

# The equations of each problem, from the values of the causes `v` and a key. They are
# made once: a compiled program is found again by the very functions it was made of.
_TOY: Equations = {
    "Z": lambda v, key: jnp.exp(-v["X"]) + normal(key),
    "Y": lambda v, key: jnp.cos(v["Z"]) - jnp.exp(-v["Z"] / 20) + normal(key),
}
_BUMPS: Equations = {
    "Y": lambda v, key: (
        -2 * jnp.exp(-jnp.square(v["X"] - 1) - jnp.square(v["Z"] - 1))
        - jnp.exp(-jnp.square(v["X"] + 1) - jnp.square(v["Z"]))
        + normal(key)
    ),
}


def _decay(v: dict[str, Array], key: PRNGKeyArray) -> Array:
    return jnp.exp(-v["C"]) / 10 + normal(key)


def _wave(v: dict[str, Array], key: PRNGKeyArray) -> Array:
    d, e = v["D"], v["E"]
    return jnp.cos(d) - d / 5 + jnp.sin(e) - e / 4 + normal(key)


_COMPLETE: Equations = {
    "A": lambda v, key: jnp.square(v["F"]) + v["U1"] + normal(key),
    "B": lambda v, key: v["U2"] + normal(key),
    "C": lambda v, key: jnp.exp(-v["B"]) + normal(key),
    "D": _decay,
    "E": lambda v, key: jnp.cos(v["A"]) + v["C"] / 10 + normal(key),
    "Y": lambda v, key: _wave(v, key) + v["U1"] + jnp.exp(-v["U2"]),
}
_SECOND: Equations = {
    "C": lambda v, key: jnp.exp(-v["A"]) / 5 + normal(key),
    "D": lambda v, key: jnp.cos(v["B"]) + v["C"] / 10 + normal(key),
    "E": _decay,
    "Y": _wave,
}
YOUNGEST, OLDEST = 55.0, 75.0  # years
_PSA: Equations = {
    "age": lambda v, key: jax.random.uniform(key, minval=YOUNGEST, maxval=OLDEST),
    "bmi": lambda v, key: 27.0 - 0.01 * v["age"] + 0.7 * normal(key),
    "A": lambda v, key: sigmoid(-8.0 + 0.10 * v["age"] + 0.03 * v["bmi"]),
    "S": lambda v, key: sigmoid(-13.0 + 0.10 * v["age"] + 0.20 * v["bmi"]),
    "cancer": lambda v, key: sigmoid(
        2.2 - 0.05 * v["age"] + 0.01 * v["bmi"] - 0.04 * v["S"] + 0.02 * v["A"]
    ),
    "Y": lambda v, key: (
        6.8
        + 0.04 * v["age"]
        - 0.15 * v["bmi"]
        + (-0.60 * v["S"] + 0.55 * v["A"])
        + v["cancer"]
        + 0.4 * normal(key)
    ),
}
_EPIDEMIC: Equations = {
    "cost": lambda v, key: (
        jnp.exp(v["growth"] / 2)
        + (0.3 * jnp.square(v["distance"]) + 0.1 * jnp.square(v["vaccines"]))
        + 0.2 * normal(key)
    ),
}


def toy_graph() -> Problem:
    """Minimize Y = cos Z - exp(-Z/20) + e; X = e, Z = exp(-X) + e, e from N(0, 1).

    Local minima of do(Z) lie near 3.10, 9.39 and 15.69, the global one at -3.20.
    """
    scm = create_scm(
        ("X", "Z", "Y"),
        [("X", "Z"), ("Z", "Y")],
        {"X": create_root_mechanism(), **_TOY},
        target="Y",
        ranges={"X": (-5.0, 5.0), "Z": (-5.0, 20.0)},
    )
    return make_problem("toy_graph", scm, _toy_mean, {"Z": -3.2003028})


def _toy_mean(do: Mapping[str, float]) -> float:
    if "Z" in do:
        return float(np.cos(do["Z"]) - np.exp(-do["Z"] / 20))
    x, weights = point_rule(do["X"]) if "X" in do else gaussian_rule()
    middle = np.exp(-x)  # of Z, whose noise has these moments
    values = np.cos(middle) * np.exp(-1 / 2) - np.exp(-middle / 20 + 1 / 800)
    return float(weights @ values)


def two_bumps() -> Problem:
    """Minimize Y = -2 exp(-(X-1)^2 - (Z-1)^2) - exp(-(X+1)^2 - Z^2) + e; X, Z = e.

    The ranges (-3, 3) are ours. No single variable reaches the deeper bump.
    """
    scm = create_scm(
        ("X", "Z", "Y"),
        [("X", "Y"), ("Z", "Y")],
        {"X": create_root_mechanism(), "Z": create_root_mechanism(), **_BUMPS},
        target="Y",
        ranges={"X": (-3.0, 3.0), "Z": (-3.0, 3.0)},
    )
    pair = {"X": 0.993048, "Z": 0.996524}
    return make_problem("two_bumps", scm, _bumps_mean, {"Z": 0.7767024}, pair)


def _bumps_mean(do: Mapping[str, float]) -> float:
    deep = 2 * _bump(do.get("X"), 1.0) * _bump(do.get("Z"), 1.0)
    return -deep - _bump(do.get("X"), -1.0) * _bump(do.get("Z"), 0.0)


def _bump(value: float | None, center: float) -> float:
    """Return exp(-(x - center)^2), or its mean over N(0, 1) if x is not set."""
    if value is None:
        return float(np.exp(-(center**2) / 3) / np.sqrt(3))
    return float(np.exp(-((value - center) ** 2)))


DAMP = float(np.exp(-1 / 2))  # E cos(m + e) = DAMP cos m, and the same for sin


def complete_graph() -> Problem:
    """Minimize Y over seven variables with hidden causes U1, U2; B, D, E, F may be set.

    F = e; A = F^2 + U1 + e; B = U2 + e; C = exp(-B) + e; D = exp(-C)/10 + e;
    E = cos A + C/10 + e; Y = cos D - D/5 + sin E - E/4 + U1 + exp(-U2) + e.
    """
    root = create_root_mechanism()
    scm = create_scm(
        ("F", "A", "B", "C", "D", "E", "Y", "U1", "U2"),
        [
            *(("F", "A"), ("U1", "A"), ("U2", "B"), ("B", "C"), ("C", "D")),
            *(("A", "E"), ("C", "E"), ("D", "Y"), ("E", "Y"), ("U1", "Y"), ("U2", "Y")),
        ],
        {"F": root, "U1": root, "U2": root, **_COMPLETE},
        target="Y",
        ranges={"B": (-5.0, 4.0), "D": (-5.0, 5.0), "E": (-6.0, 3.0), "F": (-4.0, 4.0)},
        hidden=("U1", "U2"),
    )
    pair = {"B": -5.0, "D": 3.3429506}
    return make_problem("complete_graph", scm, _complete_mean, {"B": -5.0}, pair)


def synthetic2() -> Problem:
    """Minimize Y over six variables of which A, D and E may be set.

    A, B = e; C = exp(-A)/5 + e; D = cos B + C/10 + e; E = exp(-C)/10 + e;
    Y = cos D - D/5 + sin E - E/4 + e.
    """
    root = create_root_mechanism()
    scm = create_scm(
        ("A", "B", "C", "D", "E", "Y"),
        [("A", "C"), ("B", "D"), ("C", "D"), ("C", "E"), ("D", "Y"), ("E", "Y")],
        {"A": root, "B": root, **_SECOND},
        target="Y",
        ranges={"A": (-5.0, 5.0), "D": (-1.0, 1.0), "E": (-1.0, 1.0)},
    )
    # Just inside the range of A: cos D has a minimum there.
    best, pair = {"A": -4.9722818}, {"A": -4.9722818, "E": -1.0}
    return make_problem("synthetic2", scm, _second_mean, best, pair)


def _complete_mean(do: Mapping[str, float]) -> float:
    wave, decay, tenth_wave, tenth = _complete_causes(do.get("B"))
    first = wave.real - decay / 5
    if "D" in do:
        first = float(np.cos(do["D"]) - do["D"] / 5)
    constant = float(np.exp(1 / 2))  # of exp(-U2); U1 has mean 0
    if "E" in do:
        return first + float(np.sin(do["E"]) - do["E"] / 4) + constant
    turn, angle = _complete_angle(do.get("F"))
    second = (DAMP * turn * tenth_wave).imag - (angle + tenth) / 4
    return first + second + constant


def _second_mean(do: Mapping[str, float]) -> float:
    wave, decay, tenth_wave, tenth = _second_causes(do.get("A"))
    if "D" in do:
        first = float(np.cos(do["D"]) - do["D"] / 5)
    else:
        b, chances = gaussian_rule()
        turn = complex(chances @ np.exp(1j * np.cos(b)))
        # E cos B = DAMP for B from N(0, 1).
        first = (DAMP * turn * tenth_wave).real - (DAMP + tenth) / 5
    if "E" in do:
        return first + float(np.sin(do["E"]) - do["E"] / 4)
    return first + wave.imag - decay / 4


# The sums over two variables are kept, so that a grid over others costs them once.
@lru_cache(maxsize=256)
def _complete_causes(b: float | None) -> tuple[complex, float, complex, float]:
    # B has variance 2: its own noise and that of U2.
    nodes, weights = gaussian_rule(2**0.5) if b is None else point_rule(b)
    return _moments_of_c((np.exp(-nodes), weights))


@lru_cache(maxsize=256)
def _second_causes(a: float | None) -> tuple[complex, float, complex, float]:
    nodes, weights = gaussian_rule() if a is None else point_rule(a)
    return _moments_of_c((np.exp(-nodes) / 5, weights))


@lru_cache(maxsize=256)
def _complete_angle(f: float | None) -> tuple[complex, float]:
    """Return E exp(i cos A) and E cos A."""
    nodes, chances = gaussian_rule() if f is None else point_rule(f)
    noise, odds = gaussian_rule(2**0.5)  # of A: its own noise and U1
    angle = np.cos(nodes[:, None] ** 2 + noise[None, :])
    turn = complex(chances @ np.exp(1j * angle) @ odds)
    return turn, float(chances @ angle @ odds)


def _moments_of_c(middle: Rule) -> tuple[complex, float, complex, float]:
    """Return E exp(i (exp(-C)/10 + e)), E exp(-C)/10, E exp(i C/10) and E C/10, where
    C = middle + e.
    """
    nodes, weights = middle
    noise, chances = gaussian_rule()
    decay = np.exp(-(nodes[:, None] + noise[None, :])) / 10
    wave = complex(DAMP * (weights @ np.exp(1j * decay) @ chances))
    tenth_wave = complex(np.exp(-1 / 200) * (weights @ np.exp(1j * nodes / 10)))
    mean_decay = float(weights @ np.exp(-nodes)) * float(np.exp(1 / 2)) / 10
    return wave, mean_decay, tenth_wave, float(weights @ nodes) / 10


def psa() -> Problem:
    """Minimize prostate antigen Y by aspirin A and statin S, each within 0 and 1.

    s is the logistic function, N(m, c) has standard deviation c. age U(55, 75);
    bmi N(27 - 0.01 age, 0.7); A = s(-8 + 0.10 age + 0.03 bmi);
    S = s(-13 + 0.10 age + 0.20 bmi);
    cancer = s(2.2 - 0.05 age + 0.01 bmi - 0.04 S + 0.02 A);
    Y = N(6.8 + 0.04 age - 0.15 bmi - 0.60 S + 0.55 A + cancer, 0.4).
    """
    body = ("age", "bmi")
    edges = [("age", "bmi"), ("cancer", "Y")]
    edges += [(cause, effect) for cause in body for effect in ("A", "S")]
    edges += [(c, effect) for c in (*body, "A", "S") for effect in ("cancer", "Y")]
    scm = create_scm(
        ("age", "bmi", "A", "S", "cancer", "Y"),
        edges,
        _PSA,
        target="Y",
        ranges={"A": (0.0, 1.0), "S": (0.0, 1.0)},
    )
    return make_problem("psa", scm, _psa_mean, {"S": 1.0}, {"A": 0.0, "S": 1.0})


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


# The linear part of the epidemic: cause, effect, coefficient; then noise scales.
_SPREAD = {
    ("risk", "vaccines"): 0.5,
    ("risk", "distance"): 0.7,
    ("vaccines", "distance"): -0.4,
    ("risk", "growth"): 0.6,
    ("vaccines", "growth"): -0.5,
    ("distance", "growth"): -0.6,
}
_SCALES = {"risk": 1.0, "vaccines": 0.5, "distance": 0.5, "growth": 0.3}
_BASE = {"growth": 0.2}


def epidemic_static() -> Problem:
    """Minimize the cost of an epidemic at one moment, in standardized units.

    The equations are ours, made for tests; they describe no real epidemic. e is
    N(0, 1). risk = e; vaccines = 0.5 risk + 0.5 e;
    distance = 0.7 risk - 0.4 vaccines + 0.5 e;
    growth = 0.2 + 0.6 risk - 0.5 vaccines - 0.6 distance + 0.3 e;
    cost = exp(growth / 2) + 0.3 distance^2 + 0.1 vaccines^2 + 0.2 e.
    Vaccines and distance may be set within -2 and 2; either answers the risk when it
    is left alone, so that seeing and doing differ.
    """
    mechanisms = {}
    for name, scale in _SCALES.items():
        weights = {cause: w for (cause, effect), w in _SPREAD.items() if effect == name}
        mechanisms[name] = create_linear_mechanism(
            tuple(weights), weights, _BASE.get(name, 0.0), scale
        )
    causes = [(name, "cost") for name in ("growth", "distance", "vaccines")]
    scm = create_scm(
        (*_SCALES, "cost"),
        [*_SPREAD, *causes],
        mechanisms | _EPIDEMIC,
        target="cost",
        ranges={"vaccines": (-2.0, 2.0), "distance": (-2.0, 2.0)},
    )
    best, pair = {"distance": 0.4932466}, {"vaccines": 1.0068738, "distance": 0.4027495}
    return make_problem("epidemic_static", scm, _cost_mean, best, pair)


def _cost_mean(do: Mapping[str, float]) -> float:
    names = tuple(_SCALES)
    weight = np.zeros((len(names), len(names)))
    for (cause, effect), number in _SPREAD.items():
        weight[names.index(cause), names.index(effect)] = number
    base = np.array([_BASE.get(name, 0.0) for name in names])
    form = LinearForm(names, weight, base, np.array(list(_SCALES.values())))
    mean, covariance = form.moments(do)
    moments = zip(mean, covariance.diagonal(), strict=True)
    of = dict(zip(names, moments, strict=True))
    square = lambda name: of[name][0] ** 2 + of[name][1]
    growth, variance = of["growth"]
    infections = np.exp(growth / 2 + variance / 8)
    return float(infections + 0.3 * square("distance") + 0.1 * square("vaccines"))
