"""What every problem must hold, asked of its own equations."""

import itertools

import jax
import numpy as np

from acbo.named.samples import as_array, create_perfect_intervention
from acbo.scm import sample_rows
from acbo.types import lower_is_better


def assert_means_follow_the_model(problem, interventions, draws=20_000, error=0.05):
    """Closed forms against draws from the mechanisms, for one compiled program."""
    target = problem.scm.names.index(problem.target)
    mean = jax.jit(
        lambda scm, done: sample_rows(jax.random.key(1), scm, draws, done)[
            :, target
        ].mean()
    )
    for do in interventions:
        spec = create_perfect_intervention(set(do), do) if do else None
        arrays = as_array(problem.scm, spec)
        drawn = float(mean(problem.scm, arrays))
        assert abs(drawn - problem.expected_outcome(do)) < error, (do, drawn)


def assert_no_better_on_a_grid(problem, optimum, count, points):
    """No intervention on `count` variables of a grid with both ends beats it."""
    sign = lower_is_better(problem.direction)
    best = sign * problem.expected_outcome(optimum.intervention)
    np.testing.assert_allclose(sign * best, optimum.outcome)
    assert len(optimum.intervention) == count
    for names in itertools.combinations(problem.ranges, count):
        bounds = [problem.ranges[name] for name in names]
        axes = [np.linspace(low, high, points) for low, high in bounds]
        for values in itertools.product(*axes):
            do = dict(zip(names, values, strict=True))
            assert sign * problem.expected_outcome(do) >= best - 1e-9, do
