"""Expectations over Gaussian and uniform variables by sums over fixed nodes."""

import numpy as np
from jaxtyping import Float

Rule = tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]

POINTS = 1201
WIDTH = 9.0  # standard deviations; beyond lies a mass of 2e-19


def gaussian_rule(scale: float = 1.0) -> Rule:
    """Nodes and weights of N(0, scale^2).

    Equally spaced: for smooth functions as good as Gauss's nodes, and better for those
    that oscillate fast in the tails, like cos(exp(-x)).
    """
    nodes = np.linspace(-WIDTH, WIDTH, POINTS)
    weights = np.exp(-(nodes**2) / 2)
    return scale * nodes, weights / weights.sum()


def uniform_rule(low: float, high: float, points: int = 40) -> Rule:
    """Gauss's nodes and weights of the uniform distribution on an interval."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return (low + high) / 2 + (high - low) / 2 * nodes, weights / 2


def point_rule(value: float) -> Rule:
    """The rule of a constant, for variables that are set."""
    return np.array([value]), np.ones(1)
