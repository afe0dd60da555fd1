"""Naive references for structure learning: all graphs by enumeration, small data."""

import functools
from itertools import product

import numpy as np
from scipy.special import logsumexp


@functools.cache
def all_dags(d):
    """Parents of every variable as bit masks, for every acyclic graph: [graphs, d]."""
    choices = [[m for m in range(2**d) if not m >> j & 1] for j in range(d)]
    parents = np.array(list(product(*choices)), np.int32)
    left = np.full(len(parents), 2**d - 1)
    for _ in range(d):
        roots = np.zeros_like(left)
        for j in range(d):
            roots |= np.where(parents[:, j] & left == 0, 1 << j, 0)
        left &= ~roots
    return parents[left == 0]


def count_orders(parents):
    """How many orders of the variables put causes first, for every graph."""
    d = parents.shape[1]
    ways = {0: np.ones(len(parents))}
    for mask in range(1, 2**d):
        ways[mask] = np.zeros(len(parents))
        for j in range(d):
            if mask >> j & 1:
                fits = parents[:, j] & ~(mask ^ 1 << j) == 0
                ways[mask] += np.where(fits, ways[mask ^ 1 << j], 0)
    return ways[2**d - 1]


def enumerate_posterior(scores, masks, prior):
    """P(edge) [d, d] and P(parents of j = S) [d, K] by summing over every graph.

    `scores[j, s]` is the log score of the parent set with bit mask `masks[j, s]`.
    """
    d = len(scores)
    table = np.full((d, 2**d), -np.inf)
    np.put_along_axis(table, masks, scores, axis=1)
    parents = all_dags(d)
    logs = sum(table[j, parents[:, j]] for j in range(d))
    if prior == "order":
        logs = logs + np.log(count_orders(parents))
    weights = np.exp(logs - logsumexp(logs))
    edges = np.array(
        [
            [(weights * (parents[:, j] >> i & 1)).sum() for j in range(d)]
            for i in range(d)
        ]
    )
    sets = np.array(
        [np.bincount(parents[:, j], weights, 2**d)[masks[j]] for j in range(d)]
    )
    return edges, sets


def linear_weights(d, rng, chance):
    """Weights [from, to] of a random linear model over a shuffled order."""
    size = rng.uniform(0.5, 2, (d, d)) * rng.choice([-1, 1], (d, d))
    upper = np.triu(size * (rng.random((d, d)) < chance), 1)
    order = rng.permutation(d)
    return upper[np.ix_(order, order)]


def linear_rows(weights, rng, observed, set_rows, target, value=2.0):
    """Rows of a linear model: observational, then one variable set in each.

    The target is never set; a variable is set to `value` standard deviations.
    """
    d, rows = len(weights), observed + set_rows
    intervened = np.zeros((rows, d), bool)
    others = np.delete(np.arange(d), target)
    intervened[np.arange(observed, rows), rng.choice(others, set_rows)] = True
    inverse = np.linalg.inv(np.eye(d) - weights)
    spread = np.sqrt((inverse**2).sum(axis=0))
    noise = rng.standard_normal((rows, d))
    signs = rng.choice([-1, 1], (rows, d))
    values = np.zeros((rows, d))
    for _ in range(d):
        free = values @ weights + noise
        values = np.where(intervened, value * spread * signs, free)
    return values, intervened
