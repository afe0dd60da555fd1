"""Compare the trained policy when its edges come from the pooled posterior, as in
`Policy.propose`, and when they are the network's own, as in its training.

python benchmarks/causal_edges.py --models 96 --seeds 40 --steps 5

Both meet the same models and the same noise. Printed are simple regrets, as shares of
the way from doing nothing to the optimum over single variables, their paired
difference, and 95 % intervals of the means.
"""

import argparse
import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from acbo import problems
from acbo.environment import (
    best_on_noise,
    common_noise,
    first_history,
    mean_under,
    problem_spec,
)
from acbo.named.tables import Experiments
from acbo.policy.advisor import load_policy
from acbo.random_models import SCMConfig, random_scm
from acbo.scm import set_variable
from jaxrig.keys import named_key

PROBLEMS = ("butterfly_5var", "chain_3var", "complete_graph")
SOURCES = ("pooled", "network")
ROWS = (20, 0)  # observational and interventional
NOTHING_TO_GAIN = 0.01  # models whose target hardly moves are left out


def random_task(key, size):
    """Return a model, its rows, and functions for a row and for the mean outcome."""
    config = dataclasses.replace(SCMConfig(), families=("er1",))
    scm = random_scm(named_key(key, "model"), config, jnp.asarray(size), size)
    return scm, _history(key, scm, True)


@jax.jit
def respond(key, scm, step, index, value):
    """Return one row under do(index = value)."""
    done = set_variable(index, value, scm.size)
    return scm.respond(scm.draw(jax.random.fold_in(key, step)), done, True)


@jax.jit
def mean_outcome(key, scm, index, value):
    """Return the mean outcome under do(index = value); index -1 does nothing."""
    noise = common_noise(key, scm, 512)
    done = set_variable(index, value, scm.size)
    return mean_under(scm, noise, done, True)


@jax.jit
def optimum(key, scm):
    """Return the lowest mean outcome over single variables."""
    noise = common_noise(key, scm, 512)
    return best_on_noise(
        scm, noise, jnp.asarray(1.0), grid=33, clip_to_range=True
    ).value


def _history(key, scm, clip):
    return first_history(named_key(key, "data"), scm, *ROWS, sum(ROWS), clip)


def episode(policy, scm, history, names, direction, source, draw, steps):
    """Return the settings (variable, value) that the policy makes."""
    spec = problem_spec(scm, direction)
    low, high = np.asarray(spec.low), np.asarray(spec.high)
    allowed = np.flatnonzero(spec.allowed)
    target = names[int(spec.target)]
    ranges = {names[i]: (float(low[i]), float(high[i])) for i in allowed}
    seen = Experiments(
        history.values, history.intervened, names, target, ranges, direction
    )
    # NaN stands for what the network says.
    own = dict.fromkeys(names, float("nan")) if source == "network" else None
    made = []
    for step in range(steps):
        name, value = policy.propose(seen, own)
        row = draw(step, names.index(name), value)
        seen = seen.add(dict(zip(names, np.asarray(row), strict=True)), [name])
        made.append((name, value))
    return made


def on_random_models(policy, count, size, steps, seed):
    """Return regrets [models, sources] on random models."""
    names = tuple(f"X{i}" for i in range(size))
    make = jax.jit(lambda key: random_task(key, size))
    found = []
    for number in range(count):
        key = jax.random.fold_in(jax.random.key(seed), number)
        scm, history = make(key)
        judge, play = named_key(key, "judge"), named_key(key, "play")
        rest = float(mean_outcome(judge, scm, -1, 0.0))
        best = float(optimum(judge, scm))
        if rest - best < NOTHING_TO_GAIN:
            continue
        draw = partial(respond, play, scm)
        both = []
        for source in SOURCES:
            made = episode(policy, scm, history, names, "MINIMIZE", source, draw, steps)
            means = [mean_outcome(judge, scm, names.index(n), v) for n, v in made]
            both.append((float(min(means)) - best) / (rest - best))
        found.append(both)
    return np.array(found)


def on_problem(policy, name, seeds, steps):
    """Return regrets [seeds, sources] on a named problem."""
    problem = problems.get(name)
    scm, names = problem.scm, problem.scm.names
    start = jax.jit(lambda key: _history(key, scm, False))

    @jax.jit
    def row(key, step, index, value):
        done = set_variable(index, value, len(names))
        return scm.respond(scm.draw(jax.random.fold_in(key, step)), done, False)

    rest, best = problem.observational_mean, problem.optimum.outcome
    found = []
    for seed in range(seeds):
        key = jax.random.key(seed)
        history, play = start(key), named_key(key, "play")
        draw = partial(row, play)
        both = []
        for source in SOURCES:
            made = episode(
                policy, scm, history, names, problem.direction, source, draw, steps
            )
            gained = [rest - problem.expected_outcome({n: v}) for n, v in made]
            both.append(1 - max(each / (rest - best) for each in gained))
        found.append(both)
    return np.array(found)


def show(name, regrets):
    """Print means, the paired difference, and 95 % intervals."""
    columns = [*regrets.T, regrets[:, 0] - regrets[:, 1]]
    half = 1.96 / np.sqrt(len(regrets))
    cells = [f"{each.mean():+.3f} ± {half * each.std(ddof=1):.3f}" for each in columns]
    print(f"{name:16} {len(regrets):4}  " + "   ".join(cells), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=24)
    parser.add_argument("--size", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    policy = load_policy()
    print("problem          runs  pooled            network           difference")
    for name in PROBLEMS:
        show(name, on_problem(policy, name, options.seeds, options.steps))
    regrets = on_random_models(policy, options.models, options.size, options.steps, 7)
    show("random models", regrets)


if __name__ == "__main__":
    main()
