import jax
import jax.numpy as jnp
import numpy as np

from acbo.baselines.proposers import Greedy, Oracle, ParentOracle, Random
from causal_linear import (
    assert_allowed,
    best_corner,
    edges,
    linear_scm,
    random_cases,
    situations,
)

STRONG = linear_scm(edges(4, e01=9.0, e03=1.0, e13=-1.5, e23=0.5), 3)
FALLING = linear_scm(edges(4, e02=-2.0), 2)
ORPHAN = linear_scm(edges(4, e01=1.0), 0)
CASES = [
    *random_cases(3),
    *[(scm, way) for scm in (STRONG, FALLING) for way in ("MINIMIZE", "MAXIMIZE")],
    (ORPHAN, "MINIMIZE"),
]


def first_is_the_parent(values, intervened, row_mask, var_mask, target):
    return jnp.array([0.9, 0.2, 1.0, 0.4]), None


def propose(proposer):
    situation = situations(CASES)
    actions = jax.jit(jax.vmap(proposer.propose))(*situation)
    assert_allowed(actions, situation)
    variables, values = actions.variable.tolist(), actions.value.tolist()
    return list(zip(variables, values, strict=True))


def test_random_depends_on_its_key():
    assert len(set(propose(Random()))) == len(CASES)


def test_the_oracle_is_right_without_clipping():
    found = propose(Oracle(grid=3, draws=2, clip_to_range=False))
    known = [best_corner(scm, way)[1:] for scm, way in CASES]
    assert found[:-1] == known[:-1]  # nothing moves the last one's target


def test_the_parent_oracle_takes_the_strongest_parent():
    found = propose(ParentOracle())
    assert found[3:7] == [(1, 3.0), (0, 3.0), (0, 3.0), (0, -2.0)]
    assert found[7][0] != 0


def test_greedy_moves_the_likeliest_parent_down_its_slope():
    found = propose(Greedy(first_is_the_parent))
    assert found[5:7] == [(0, 3.0), (0, -2.0)]
    assert all(np.isin([value for _, value in found], [-2.0, 3.0]))
