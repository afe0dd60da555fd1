"""Measure how near `acbo.suggest` gets to the best experiment, beside Gaussian
processes, Thompson sampling and random choice, for one variable at a time, pairs,
batches, costs and forbidden regions.

python benchmarks/causal_regret.py --runs 8
python benchmarks/causal_regret.py --kinds pairs --problems complete_graph --runs 20

Printed is the simple regret: the part of the way from doing nothing to the best
experiment allowed that the best one made leaves, by true expected outcomes, in the
middle and at the end of the budget, with the half of a 95 % interval of the mean. All
start from the same 20 observational rows and meet the same noise. The processes are one
for each set of variables (Matern 5/2, as the baseline `gp`); "Thompson" draws one
function from them and takes its best. In a batch, the processes take their own mean for
the outcomes that are not known yet; ties are broken at random. With costs, improvement
per cost is what counts.
"""

import argparse
import itertools
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky
from scipy.special import ndtr, stdtrit

from acbo import problems
from acbo.environment import first_history
from acbo.named.tables import DataTable
from acbo.policy.planning import COMPARE
from acbo.policy.problem import make_problem, parse_region
from acbo.policy.suggest import suggest_for
from acbo.scm import set_variables
from jaxrig.keys import named_key

ROWS, BUDGET, BATCH = 20, 12, 4
GRID, PAIR_GRID, LENGTH = 33, 17, 0.4
DEAR = 3.0  # cost of the best variable; the others cost 1
AVOID = {  # the best single experiment is in it
    "toy_graph": "Z<-1",
    "complete_graph": "B<-4",
    "psa": "S>0.7",
    "synthetic2": "A<-3",
}
KINDS = {
    "single": {},
    "pairs": {"at_once": 2},
    "batch": {"batch": BATCH},
    "cost": {},
    "constrained": {},
}


class Task(NamedTuple):
    """A problem of the library, what is asked of it, and every experiment allowed."""

    problem: problems.Problem
    asked: object
    sets: list[tuple[str, ...]]
    points: list[np.ndarray]  # settings of each set
    price: Callable[[tuple[str, ...]], float]
    best: float


def make_task(name, kind):
    """Return a problem of a kind with its best experiment."""
    problem = problems.get(name)
    options = dict(KINDS[kind])
    if kind == "cost":
        options["cost"] = dict.fromkeys(problem.ranges, 1.0)
        options["cost"] |= dict.fromkeys(problem.optimum.intervention, DEAR)
    if kind == "constrained":
        options["avoid"] = [AVOID[name]]
    options |= {"ranges": problem.ranges, "settable": list(problem.ranges)}
    asked = make_problem(problem.target, False, **options)
    asked = asked.for_columns(problem.scm.names)
    regions = [parse_region(words) for words in options.get("avoid", ())]
    sets, points = [], []
    for size in range(1, asked.at_once + 1):
        for names in itertools.combinations(problem.ranges, size):
            count = GRID if size == 1 else PAIR_GRID
            axes = [np.linspace(*problem.ranges[n], count) for n in names]
            grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, size)
            bad = [forbids(region, names, grid) for region in regions]
            sets.append(names)
            points.append(grid[~np.any(bad, axis=0)] if bad else grid)
    if kind == "constrained":
        best = min(
            problem.expected_outcome(dict(zip(names, point, strict=True)))
            for names, grid in zip(sets, points, strict=True)
            for point in grid
        )
    else:
        pair = problem.best_pair if kind == "pairs" else None
        best = (pair or problem.optimum).outcome
    return Task(problem, asked, sets, points, asked.price, best)


def forbids(region, names, grid):
    """Return which settings are in a region of the variables that are set."""
    inside = np.ones(len(grid), bool)
    for name, sign, number in region:
        if name not in names:
            return np.zeros(len(grid), bool)
        inside &= COMPARE[sign](grid[:, names.index(name)], number)
    return inside


def check_allowed(task, settings):
    """Raise if an experiment is in a forbidden region."""
    names, point = tuple(settings), np.array([list(settings.values())])
    for words in task.asked.avoid:
        if forbids(parse_region(words), names, point).any():
            raise ValueError(f"{settings} is in the region {words!r}")


def ours(task, table, draw):
    """Return what `acbo.suggest` says to do next."""
    return [dict(each.settings) for each in suggest_for(task.asked, table).experiments]


def at_random(task, table, draw):
    """Return any settings of any set of variables."""
    return [pick(task, draw) for _ in range(task.asked.batch)]


def pick(task, draw):
    """Return one experiment that is allowed."""
    place = draw.integers(len(task.sets))
    point = task.points[place][draw.integers(len(task.points[place]))]
    return dict(zip(task.sets[place], point.tolist(), strict=True))


def matern(a, b):
    """Return the product over variables of Matern 5/2 covariances."""
    away = np.abs(a[:, None] - b[None]) * (5**0.5 / LENGTH)
    return ((1 + away + away**2 / 3) * np.exp(-away)).prod(axis=2)


def processes(task, table, extra):
    """Yield for every set the mean and covariance of outcomes at its points."""
    y = table.values[:, table.index(task.problem.target)]
    resting = ~table.intervened.any(axis=1)
    rest, noise = y[resting].mean(), y[resting].var() + 1e-6
    moved = ((y[~resting] - rest) ** 2).mean() if (~resting).any() else 0.0
    amplitude = max(moved, noise)
    for names, points in zip(task.sets, task.points, strict=True):
        columns = [table.index(name) for name in names]
        flags = np.isin(np.arange(len(table.names)), columns)
        rows = (table.intervened == flags).all(axis=1)
        known = [(s, o) for s, o in extra if set(s) == set(names)]
        x = [
            *table.values[rows][:, columns],
            *([s[n] for n in names] for s, _ in known),
        ]
        seen = np.append(y[rows], [o for _, o in known]) - rest
        low, high = np.array([task.problem.ranges[n] for n in names]).T
        scaled = (points - low) / (high - low)
        covariance = amplitude * matern(scaled, scaled)
        mean = np.full(len(points), rest)
        if len(x):
            x = (np.array(x) - low) / (high - low)
            inner = amplitude * matern(x, x) + noise * np.eye(len(x))
            cross = amplitude * matern(scaled, x)
            factor = cho_factor(inner)
            mean = mean + cross @ cho_solve(factor, seen)
            covariance = covariance - cross @ cho_solve(factor, cross.T)
        yield names, points, mean, covariance


def by_process(task, table, draw, thompson=False):
    """Return the experiments of highest improvement per cost, expected or drawn."""
    chosen = []
    for _ in range(task.asked.batch):
        found = list(processes(task, table, [] if thompson else chosen))
        best = min(mean.min() for _, _, mean, _ in found)
        options = []
        for names, points, mean, covariance in found:
            if thompson:
                root = cholesky(covariance + 1e-6 * np.eye(len(mean)), lower=True)
                gain = best - (mean + root @ draw.normal(size=len(mean)))
            else:
                spread = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
                z = (best - mean) / spread
                density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
                gain = spread * (z * ndtr(z) + density)
            gain = np.where(gain > 0, gain / task.price(names), gain)
            # At first all points are alike: the lowest must not win by its place.
            gain = gain * (1 + 1e-6 * draw.random(len(gain)))
            place = int(np.argmax(gain))
            setting = dict(zip(names, points[place].tolist(), strict=True))
            options.append((gain[place], setting, mean[place]))
        _, setting, expected = max(options, key=lambda each: each[0])
        chosen.append((setting, expected))
    return [setting for setting, _ in chosen]


def thompson(task, table, draw):
    """Return the best experiments of functions drawn from the processes."""
    return by_process(task, table, draw, thompson=True)


METHODS = {"ours": ours, "GP": by_process, "Thompson": thompson, "random": at_random}


def make_rows(problem):
    """Return functions that draw the first rows, and one under an intervention."""
    scm = problem.scm

    def first(seed):
        key = named_key(jax.random.key(seed), "rows")
        return first_history(key, scm, ROWS, 0, ROWS, False).values

    def under(seed, step, mask, values):
        key = jax.random.fold_in(named_key(jax.random.key(seed), "episode"), step)
        return scm.respond(scm.draw(key), set_variables(mask, values), False)

    return jax.jit(first), jax.jit(under)


def play(task, rows, method, seed):
    """Return the regret in the middle and at the end of the budget."""
    names = task.problem.scm.names
    first, under = rows
    draw = np.random.default_rng(seed)
    values = np.asarray(first(seed), np.float64)[:, : len(names)]
    table = DataTable(names, values, np.zeros(values.shape, bool))
    made, spent = [], 0.0
    rest = task.problem.observational_mean
    while spent < BUDGET:
        for settings in method(task, table, draw):
            check_allowed(task, settings)
            spent += task.price(tuple(settings))
            mask = np.isin(names, list(settings))
            value = np.array([settings.get(name, 0.0) for name in names], np.float32)
            row = np.asarray(under(seed, len(made), mask, value), np.float64)
            table = DataTable(
                names,
                np.vstack([table.values, row[None, : len(names)]]),
                np.vstack([table.intervened, mask[None]]),
            )
            outcome = task.problem.expected_outcome(settings)
            made.append((spent, (outcome - task.best) / (rest - task.best)))
    within = lambda most: min(1.0, *(r for s, r in made if s <= most))
    return within(BUDGET / 2), within(BUDGET)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--problems", nargs="*", default=list(AVOID))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=100, help="of the first run")
    given = parser.parse_args()
    heads = [f"{n}, {b:g}" for n in given.methods for b in (BUDGET / 2, BUDGET)]
    print("| kind | problem | " + " | ".join(heads) + " |")
    print("|---" * (len(heads) + 2) + "|")
    wide = stdtrit(given.runs - 1, 0.975) / np.sqrt(given.runs)
    for kind, name in itertools.product(given.kinds, given.problems):
        task, cells = make_task(name, kind), []
        rows = make_rows(task.problem)
        for method in given.methods:
            seeds = range(given.seed, given.seed + given.runs)
            found = np.array([play(task, rows, METHODS[method], s) for s in seeds])
            for mean, spread in zip(found.mean(0), found.std(0, ddof=1), strict=True):
                cells.append(f"{mean:.2f} ± {wide * spread:.2f}")
        print(f"| {kind} | `{name}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
