from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.environment import best_on_noise, common_noise, mean_under
from acbo.mechanisms import SQUARE, Features
from acbo.scm import set_variable
from causal_linear import (
    linear_scm,
    random_cases,
    random_weights,
    stack,
)


def best_single(key, scm, sign=1.0, *, draws, **options):
    noise = common_noise(key, scm, draws)
    return best_on_noise(scm, noise, jnp.asarray(sign), **options)


def test_no_made_action_beats_the_optimum_on_the_same_noise(key):
    scms = stack([scm for scm, _ in random_cases(3)])
    actions = jnp.array([0, 1, 3, 0]), jnp.array([-2.0, 3.0, 0.0, 1.1])

    @jax.jit
    @jax.vmap
    def gap(scm):
        noise = common_noise(key, scm, 16)
        outcome = lambda i, v: mean_under(scm, noise, set_variable(i, v, scm.size))
        made = jax.vmap(outcome)(*actions)
        return made.min() - best_single(key, scm, grid=9, draws=16).value

    assert (np.asarray(gap(scms)) > -1e-5).all()


def test_clipping_bounds_what_passes_through_a_variable(key):
    weight = np.zeros((3, 3))
    weight[0, 1], weight[1, 2] = 10.0, 1.0
    scm = linear_scm(weight, 2, noise=0.0)
    for clip, expected in ((True, -2.0), (False, -20.0)):
        run = partial(best_single, grid=3, draws=2, clip_to_range=clip)
        assert jax.jit(run)(key, scm).value == pytest.approx(expected)


def test_an_inner_optimum_is_found_between_the_grid_points(key):
    scm = linear_scm(
        np.array([[0.0, 1.0], [0.0, 0.0]]), 1, noise=0.0, low=-2.0, high=2.0
    )
    bent = Features(
        scm.features.inner,
        jnp.array([[0.0], [-0.37]]),
        scm.features.outer,
        jnp.full((2, 1), SQUARE),
        scm.features.intercept,
    )
    scm = eqx.tree_at(lambda s: s.features, scm, bent)
    best = jax.jit(partial(best_single, grid=17, draws=2))(key, scm)
    assert float(best.setting) == pytest.approx(0.37, abs=0.02)


def test_bad_sizes_are_refused(key):
    scm = linear_scm(random_weights(0), 2)
    for size in ({"grid": 1, "draws": 2}, {"draws": 3}):
        with pytest.raises(ValueError, match=r"grid=1|draws=3"):
            jax.eval_shape(lambda size=size: best_single(key, scm, **size))
