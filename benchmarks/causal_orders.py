"""Compare sampled graphs with least squares on random linear networks; print a table.

python benchmarks/causal_orders.py --seed 0

Least squares is given the threshold on its t statistic that is best for each data set,
which nobody has in practice.
"""

import argparse
import time

import numpy as np

from acbo.posterior.order_chains import sample_graphs

CASES = (  # variables, mean degree, observational rows, interventional rows, noise
    (20, 2, 100, 60, "normal"),
    (50, 2, 200, 100, "normal"),
    (50, 2, 500, 0, "normal"),
    (50, 2, 200, 100, "exponential"),
    (100, 2, 200, 100, "normal"),
    (100, 3, 500, 0, "normal"),
    (128, 2, 200, 128, "normal"),
)


def draw_data(draw, d, degree, watched, acted, noise):
    """Return weights [cause, effect], rows, and which cells were set."""
    order = draw.permutation(d)
    present = np.triu(draw.random((d, d)) < degree / (d - 1), 1)
    size = draw.uniform(0.3, 1.5, (d, d)) * draw.choice([-1, 1], (d, d))
    weights = np.zeros((d, d))
    weights[np.ix_(order, order)] = np.where(present, size, 0)
    rows = watched + acted
    sample = draw.normal if noise == "normal" else draw.exponential
    values, flags = sample(size=(rows, d)), np.zeros((rows, d), bool)
    flags[np.arange(watched, rows), draw.integers(0, d, acted)] = True
    setting = draw.choice([-2.0, 2.0], rows)
    for j in order:
        values[:, j] += values @ np.where(np.arange(d) == j, 0, weights[:, j])
        values[:, j] = np.where(flags[:, j], setting, values[:, j])
    return weights, values, flags


def t_statistics(values, flags):
    """Return |t| of the regression of every variable on all others [cause, effect]."""
    d = values.shape[1]
    z = (values - values.mean(axis=0)) / values.std(axis=0)
    found = np.zeros((d, d))
    for j in range(d):
        free, others = ~flags[:, j], np.arange(d) != j
        design = np.column_stack([np.ones(free.sum()), z[free][:, others]])
        inverse = np.linalg.inv(design.T @ design + 1e-3 * np.eye(d))
        weights = inverse @ design.T @ z[free, j]
        rest = z[free, j] - design @ weights
        variance = rest @ rest / max(len(rest) - d, 1)
        found[others, j] = np.abs(weights / np.sqrt(np.diag(inverse) * variance))[1:]
    return found


def f1(chosen, present):
    """Return the harmonic mean of precision and recall."""
    return 2 * (chosen & present).sum() / max(chosen.sum() + present.sum(), 1)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--seed", type=int, default=0)
draw = np.random.default_rng(parser.parse_args().seed)
print("| variables | degree | rows | noise | least squares F1 | ours F1 | seconds |")
print("|---|---|---|---|---|---|---|")
for d, degree, watched, acted, noise in CASES:
    weights, values, flags = draw_data(draw, d, degree, watched, acted, noise)
    present = weights != 0
    sample_graphs(values, flags)  # compile
    start = time.perf_counter()
    found = sample_graphs(values, flags, seed=1).edge_probs
    seconds = time.perf_counter() - start
    t = t_statistics(values, flags)
    best = max(f1(t > limit, present) for limit in np.linspace(1, 6, 51))
    print(
        f"| {d} | {degree} | {watched}+{acted} | {noise} | {best:.2f} "
        f"| {f1(found > 0.5, present):.2f} | {seconds:.2f} |",
        flush=True,
    )
