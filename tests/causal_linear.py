"""Small linear models and histories of them, made in NumPy so that nothing compiles."""

import jax
import jax.numpy as jnp
import numpy as np

from acbo.environment import ProblemSpec
from acbo.history import History
from acbo.mechanisms import IDENTITY, Features
from acbo.scm import SCM


def linear_scm(weight, target, *, intercept=None, noise=0.5, low=-2.0, high=3.0):
    """A model with x_j = intercept_j + sum_i weight[i, j] x_i, i before j."""
    weight = np.asarray(weight, np.float32)
    d = len(weight)
    full = lambda value: jnp.asarray(np.full(d, value, np.float32))
    units = lambda value: jnp.asarray(np.full((d, 1), value, np.float32))
    features = Features(
        jnp.asarray(weight.T[:, None, :]),
        units(0),
        units(1),
        jnp.asarray(np.full((d, 1), IDENTITY, np.int32)),
        full(0) if intercept is None else jnp.asarray(intercept, jnp.float32),
    )
    return SCM(
        adjacency=jnp.asarray(weight != 0),
        order=jnp.asarray(np.arange(d)),
        features=features,
        noise_scale=full(noise),
        noise_kind=jnp.asarray(np.zeros(d, np.int32)),
        low=full(low),
        high=full(high),
        target=jnp.asarray(target),
        mask=jnp.asarray(np.ones(d, bool)),
    )


def edges(d, **weights):
    """Weights by names such as e01=2.0 for the edge from 0 to 1."""
    weight = np.zeros((d, d), np.float32)
    for name, value in weights.items():
        weight[int(name[1]), int(name[2])] = value
    return weight


def random_weights(seed, d=4):
    """Weights of a full graph in causal order."""
    random = np.random.default_rng(seed)
    return np.triu(random.uniform(-2, 2, (d, d)), 1)


def mean_after(scm, variable, value):
    """E[target | do] of a linear model, variable by variable in causal order."""
    weight = np.asarray(scm.features.inner)[:, 0, :].T
    base = np.asarray(scm.features.intercept)
    mean = np.zeros(len(weight))
    for j in range(len(weight)):
        follows = base[j] + mean @ weight[:, j]
        mean[j] = value if j == variable else follows
    return mean[int(scm.target)]


def best_corner(scm, direction):
    """Best expected outcome, variable and value among the ends of all ranges."""
    sign = 1 if direction == "MINIMIZE" else -1
    ends = np.stack([scm.low, scm.high], axis=1)
    choices = [
        (sign * mean_after(scm, i, float(end)), i, float(end))
        for i in range(scm.size)
        for end in ends[i]
        if i != int(scm.target)
    ]
    score, variable, value = min(choices)
    return sign * score, variable, value


def draw_history(scm, seed=0, observational=12, interventional=8, capacity=24):
    """Observational rows, then rows with one random variable set; nothing clipped."""
    random = np.random.default_rng(seed)
    # Looking up single numbers of device arrays would take most of a test's time.
    weight = np.asarray(scm.features.inner)[:, 0, :].T
    base, noise = np.asarray(scm.features.intercept), np.asarray(scm.noise_scale)
    low, high = np.asarray(scm.low), np.asarray(scm.high)
    d, rows = len(weight), observational + interventional
    values, flags = np.zeros((capacity, d), np.float32), np.zeros((capacity, d), bool)
    allowed = [i for i in range(d) if i != int(scm.target)]
    for row in range(rows):
        chosen = random.choice(allowed) if row >= observational else None
        for j in range(d):
            mean = base[j] + values[row] @ weight[:, j]
            values[row, j] = random.normal(mean, noise[j])
            if j == chosen:
                flags[row, j] = True
                values[row, j] = random.uniform(low[j], high[j])
    return History(jnp.asarray(values), jnp.asarray(flags), jnp.asarray(rows))


def spec_for(scm, direction="MINIMIZE"):
    """What may be known of a model."""
    sign = jnp.asarray(1.0 if direction == "MINIMIZE" else -1.0)
    return ProblemSpec(scm.target, scm.low, scm.high, scm.mask, scm.allowed, sign)


def stack(items):
    """One tree of arrays with a leading axis from many."""
    join = lambda *each: jnp.asarray(np.stack([np.asarray(x) for x in each]))
    return jax.tree.map(join, *items)


def situations(cases, seed=0, **options):
    """Keys, histories, settings and models for (scm, direction) pairs, stacked."""
    scms = [scm for scm, _ in cases]
    given = [spec_for(scm, direction) for scm, direction in cases]
    seen = [draw_history(scm, seed, **options) for scm in scms]
    keys = jax.random.split(jax.random.key(seed), len(cases))
    return keys, stack(seen), stack(given), stack(scms)


def random_cases(count=3, target=2):
    """Models of four variables whose target is no sink, to be minimized."""
    weights = [random_weights(seed) for seed in range(count)]
    return [(linear_scm(weight, target), "MINIMIZE") for weight in weights]


def assert_allowed(actions, situation):
    """Never the target, and within the range, both ends included."""
    _, _, given, _ = situation
    variable, value = np.asarray(actions.variable), np.asarray(actions.value)
    assert (variable != np.asarray(given.target)).all()
    rows = np.arange(len(variable))
    assert (value >= np.asarray(given.low)[rows, variable]).all()
    assert (value <= np.asarray(given.high)[rows, variable]).all()
