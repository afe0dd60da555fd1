"""Two larger nonlinear problems of the literature, by sums over one or two variables.

Every node adds N(0, 1) noise, and the target is a sum of terms each of which depends
on few variables, so that expectations are exact but for the quadrature.
"""

from collections.abc import Mapping
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from acbo.named.mechanisms import create_root_mechanism
from acbo.named.model import create_scm
from acbo.problems.problem import Problem, make_problem
from acbo.problems.quadrature import Rule, gaussian_rule, point_rule

Values = dict[str, Array]
DAMP = float(np.exp(-1 / 2))  # E cos(m + e) = DAMP cos m, and the same for sin


def complete_graph() -> Problem:
    """Seven variables and two hidden causes U1, U2; B, D, E and F may be set; minimize.

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
        {"F": root, "U1": root, "U2": root, "A": _complete_a, "B": _complete_b}
        | {"C": _complete_c, "D": _decay, "E": _complete_e, "Y": _complete_y},
        target="Y",
        ranges={"B": (-5.0, 4.0), "D": (-5.0, 5.0), "E": (-6.0, 3.0), "F": (-4.0, 4.0)},
        hidden=("U1", "U2"),
    )
    pair = {"B": -5.0, "D": 3.3429506}
    return make_problem("complete_graph", scm, _complete_mean, {"B": -5.0}, pair)


def synthetic2() -> Problem:
    """Six variables of which A, D and E may be set; minimize.

    A, B = e; C = exp(-A)/5 + e; D = cos B + C/10 + e; E = exp(-C)/10 + e;
    Y = cos D - D/5 + sin E - E/4 + e.
    """
    root = create_root_mechanism()
    scm = create_scm(
        ("A", "B", "C", "D", "E", "Y"),
        [("A", "C"), ("B", "D"), ("C", "D"), ("C", "E"), ("D", "Y"), ("E", "Y")],
        {"A": root, "B": root, "C": _second_c, "D": _second_d, "E": _decay, "Y": _wave},
        target="Y",
        ranges={"A": (-5.0, 5.0), "D": (-1.0, 1.0), "E": (-1.0, 1.0)},
    )
    pair = {"A": -5.0, "E": -1.0}
    return make_problem("synthetic2", scm, _second_mean, {"A": -5.0}, pair)


def _complete_a(values: Values, key: PRNGKeyArray) -> Array:
    return jnp.square(values["F"]) + values["U1"] + jax.random.normal(key)


def _complete_b(values: Values, key: PRNGKeyArray) -> Array:
    return values["U2"] + jax.random.normal(key)


def _complete_c(values: Values, key: PRNGKeyArray) -> Array:
    return jnp.exp(-values["B"]) + jax.random.normal(key)


def _complete_e(values: Values, key: PRNGKeyArray) -> Array:
    return jnp.cos(values["A"]) + values["C"] / 10 + jax.random.normal(key)


def _complete_y(values: Values, key: PRNGKeyArray) -> Array:
    return _wave(values, key) + values["U1"] + jnp.exp(-values["U2"])


def _second_c(values: Values, key: PRNGKeyArray) -> Array:
    return jnp.exp(-values["A"]) / 5 + jax.random.normal(key)


def _second_d(values: Values, key: PRNGKeyArray) -> Array:
    return jnp.cos(values["B"]) + values["C"] / 10 + jax.random.normal(key)


def _decay(values: Values, key: PRNGKeyArray) -> Array:
    return jnp.exp(-values["C"]) / 10 + jax.random.normal(key)


def _wave(values: Values, key: PRNGKeyArray) -> Array:
    d, e = values["D"], values["E"]
    smooth = jnp.cos(d) - d / 5 + jnp.sin(e) - e / 4
    return smooth + jax.random.normal(key)


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
    """E exp(i cos A) and E cos A."""
    nodes, chances = gaussian_rule() if f is None else point_rule(f)
    noise, odds = gaussian_rule(2**0.5)  # of A: its own noise and U1
    angle = np.cos(nodes[:, None] ** 2 + noise[None, :])
    turn = complex(chances @ np.exp(1j * angle) @ odds)
    return turn, float(chances @ angle @ odds)


def _moments_of_c(middle: Rule) -> tuple[complex, float, complex, float]:
    """E exp(i (exp(-C)/10 + e)), E exp(-C)/10, E exp(i C/10) and E C/10, where
    C = middle + e.
    """
    nodes, weights = middle
    noise, chances = gaussian_rule()
    decay = np.exp(-(nodes[:, None] + noise[None, :])) / 10
    wave = complex(DAMP * (weights @ np.exp(1j * decay) @ chances))
    tenth_wave = complex(np.exp(-1 / 200) * (weights @ np.exp(1j * nodes / 10)))
    mean_decay = float(weights @ np.exp(-nodes)) * float(np.exp(1 / 2)) / 10
    return wave, mean_decay, tenth_wave, float(weights @ nodes) / 10
