"""Move a target by eight experiments: the trained policy against chance.

A share of 1 is the optimum over single variables, 0 is no better than doing nothing.
"""

import argparse

import numpy as np

from acbo import load_policy, problems
from acbo.baselines import Random
from acbo.runs import run_problem

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("problem", nargs="?", default="butterfly_5var")
parser.add_argument("--steps", type=int, default=8)
parser.add_argument("--runs", type=int, default=2)
options = parser.parse_args()

problem = problems.get(options.problem)
print(f"{problem.name}: {problem.direction.lower()} {problem.target}")
best = problem.optimum
print(f"  doing nothing: {problem.observational_mean:.3f}")
print(f"  the optimum: {best.outcome:.3f} by {dict(best.intervention)}")

policy = load_policy()
proposers = {
    "policy": policy.proposer(),
    "random": Random(),
}
for name, proposer in proposers.items():
    runs = [
        run_problem(problem, proposer, steps=options.steps, rows=20, seed=seed)
        for seed in range(options.runs)
    ]
    shares = np.stack([run.shares for run in runs])
    best = runs[0].interventions[runs[0].best]
    made = ", ".join(f"{variable} = {value:.2f}" for variable, value in best.items())
    print(f"{name}: best of the first run {made}")
    for step in sorted({1, (options.steps + 1) // 2, options.steps}):
        at = shares[:, step - 1]
        print(f"  after {step:2d}: {at.mean():.0%} of the way, at worst {at.min():.0%}")
