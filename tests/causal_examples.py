"""Examples with made-up experts over graphs of any size and names."""

import numpy as np

from acbo.graphs import enumerate_possible_parent_sets
from acbo.posterior.distribution import create_parent_set_posterior
from acbo.training.examples import TrainingExample

NAMES = "abcdefghijklmnopqrstuvwxyz"


def make_example(
    seed=0, d=3, rows=20, difficulty="easy", max_parents=3, truth=True, sharp=1.0
) -> TrainingExample:
    """Columns with random names, a random target and a random expert."""
    random = np.random.default_rng(seed)
    names = random.permutation(list(NAMES))[:d].tolist()
    target = names[int(random.integers(d))]
    sets = enumerate_possible_parent_sets(names, target, max_parents)
    chances = random.dirichlet(np.full(len(sets), 1 / sharp))
    x = np.zeros((rows, d, 3), np.float32)
    x[..., 0] = random.normal(size=(rows, d))
    x[-2:, (names.index(target) + 1) % d, 1] = 1.0
    x[:, names.index(target), 2] = 1.0
    best = sets[int(chances.argmax())]
    info = {"n_nodes": d, **({"true_parents": tuple(best)} if truth else {})}
    posterior = create_parent_set_posterior(target, sets, chances)
    accuracy = float(chances.max())
    return TrainingExample(x, target, names, posterior, accuracy, info, difficulty)
