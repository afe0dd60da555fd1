"""Explicit Runge-Kutta methods as tables of numbers (Butcher)."""

import functools
from dataclasses import dataclass
from fractions import Fraction as F

import numpy as np


@dataclass(frozen=True)
class Tableau:
    """One method: where stages lie, how they build on each other, what they add up to.

    `lower` holds the weights of the embedded method of lower order, if there is one.
    """

    name: str
    order: int
    nodes: tuple[float, ...]
    stages: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]
    lower: tuple[float, ...] | None = None

    @property
    def instants(self) -> tuple[float, ...]:
        """The distinct fractions of a step at which stages lie."""
        return tuple(sorted(set(self.nodes)))

    def instant(self, stage: int) -> int:
        """Which of `instants` a stage lies at."""
        return self.instants.index(self.nodes[stage])


def _numbers(*values: F | int | str) -> tuple[float, ...]:
    return tuple(float(F(v)) for v in values)


EULER = Tableau("euler", 1, (0.0,), ((),), (1.0,))
MIDPOINT = Tableau("rk2", 2, (0.0, 0.5), ((), (0.5,)), (0.0, 1.0))
CLASSIC = Tableau(
    "rk4",
    4,
    (0.0, 0.5, 0.5, 1.0),
    ((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)),
    _numbers("1/6", "1/3", "1/3", "1/6"),
)
# Dormand and Prince (1980), order 5 with an embedded order 4.
DORMAND_PRINCE = Tableau(
    "rk45",
    5,
    _numbers(0, "1/5", "3/10", "4/5", "8/9", 1, 1),
    (
        (),
        _numbers("1/5"),
        _numbers("3/40", "9/40"),
        _numbers("44/45", "-56/15", "32/9"),
        _numbers("19372/6561", "-25360/2187", "64448/6561", "-212/729"),
        _numbers("9017/3168", "-355/33", "46732/5247", "49/176", "-5103/18656"),
        _numbers("35/384", 0, "500/1113", "125/192", "-2187/6784", "11/84"),
    ),
    _numbers("35/384", 0, "500/1113", "125/192", "-2187/6784", "11/84", 0),
    _numbers(
        "5179/57600",
        0,
        "7571/16695",
        "393/640",
        "-92097/339200",
        "187/2100",
        "1/40",
    ),
)

METHODS = {t.name: t for t in (EULER, MIDPOINT, CLASSIC, DORMAND_PRINCE)}


def find_method(name: str) -> Tableau:
    """The method of a name."""
    if name not in METHODS:
        raise ValueError(f"integrator {name!r}: choose one of {', '.join(METHODS)}")
    return METHODS[name]


@functools.cache
def stability_limit(tableau: Tableau) -> float:
    """The longest step, in units of tau, that does not blow up x' = -x / tau.

    The step multiplies x by R(z) = 1 + z b (1 - z A)^-1 1 at z = -dt / tau, and the
    limit is where |R| first exceeds 1.
    """
    count = len(tableau.weights)
    matrix = np.array([[*row, *[0.0] * (count - len(row))] for row in tableau.stages])
    powers = [np.ones(count)]
    for _ in range(count - 1):
        powers.append(matrix @ powers[-1])
    growth = np.array([1.0, *(np.dot(tableau.weights, p) for p in powers)])
    factor = np.polynomial.Polynomial(growth * (-1.0) ** np.arange(count + 1))
    crossings = np.concatenate([(factor - 1).roots(), (factor + 1).roots()])
    real = crossings[np.abs(crossings.imag) < 1e-9].real
    beyond = [x for x in real if x > 1e-6 and abs(factor(x * (1 + 1e-6))) > 1]
    return float(min(beyond))
