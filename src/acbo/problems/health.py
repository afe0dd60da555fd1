"""Health problems: the prostate antigen study of the field, an epidemic of ours."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray
from scipy.special import expit

from acbo.named.linear import LinearForm
from acbo.named.mechanisms import create_linear_mechanism
from acbo.named.model import create_scm
from acbo.problems.problem import Problem, make_problem
from acbo.problems.quadrature import gaussian_rule, uniform_rule

Values = dict[str, Array]

YOUNGEST, OLDEST = 55.0, 75.0  # years


def psa() -> Problem:
    """Prostate antigen Y under aspirin A and statin S, each within 0 and 1; minimize.

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
        {"age": _age, "bmi": _bmi, "A": _aspirin, "S": _statin}
        | {"cancer": _cancer, "Y": _antigen},
        target="Y",
        ranges={"A": (0.0, 1.0), "S": (0.0, 1.0)},
    )
    return make_problem("psa", scm, _psa_mean, {"S": 1.0}, {"A": 0.0, "S": 1.0})


def _age(values: Values, key: PRNGKeyArray) -> Array:
    return jax.random.uniform(key, minval=YOUNGEST, maxval=OLDEST)


def _bmi(values: Values, key: PRNGKeyArray) -> Array:
    return 27.0 - 0.01 * values["age"] + 0.7 * jax.random.normal(key)


def _aspirin(values: Values, key: PRNGKeyArray) -> Array:
    return jax.nn.sigmoid(-8.0 + 0.10 * values["age"] + 0.03 * values["bmi"])


def _statin(values: Values, key: PRNGKeyArray) -> Array:
    return jax.nn.sigmoid(-13.0 + 0.10 * values["age"] + 0.20 * values["bmi"])


def _cancer(values: Values, key: PRNGKeyArray) -> Array:
    body = 2.2 - 0.05 * values["age"] + 0.01 * values["bmi"]
    return jax.nn.sigmoid(body - 0.04 * values["S"] + 0.02 * values["A"])


def _antigen(values: Values, key: PRNGKeyArray) -> Array:
    body = 6.8 + 0.04 * values["age"] - 0.15 * values["bmi"]
    drugs = -0.60 * values["S"] + 0.55 * values["A"]
    return body + drugs + values["cancer"] + 0.4 * jax.random.normal(key)


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
    """Cost of an epidemic at one moment, in standardized units; minimize.

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
        mechanisms | {"cost": _cost},
        target="cost",
        ranges={"vaccines": (-2.0, 2.0), "distance": (-2.0, 2.0)},
    )
    best, pair = {"distance": 0.4932466}, {"vaccines": 1.0068738, "distance": 0.4027495}
    return make_problem("epidemic_static", scm, _cost_mean, best, pair)


def _cost(values: Values, key: PRNGKeyArray) -> Array:
    measures = 0.3 * jnp.square(values["distance"])
    measures = measures + 0.1 * jnp.square(values["vaccines"])
    return jnp.exp(values["growth"] / 2) + measures + 0.2 * jax.random.normal(key)


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
