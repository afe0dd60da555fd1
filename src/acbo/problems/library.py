"""Every problem by name."""

from collections.abc import Callable
from functools import partial

from acbo.problems import ecology, health, suite, synthetic, toy
from acbo.problems.problem import Problem

_BUILDERS: dict[str, Callable[[], Problem]] = {
    "fork_3var": partial(suite.two_causes, "fork_3var"),
    "chain_3var": partial(suite.chain, 3),
    "collider_3var": partial(suite.collider, 1.2, 0.8, "collider_3var"),
    "diamond_4var": suite.diamond,
    "mixed_coeffs_4var": suite.mixed_coefficients,
    "dense_4var": partial(suite.erdos_renyi, 4, 0.7, 123, "dense_4var"),
    "butterfly_5var": suite.butterfly,
    "sparse_5var": partial(suite.erdos_renyi, 5, 0.2, 456, "sparse_5var"),
    "chain_5var": partial(suite.chain, 5),
    "simple": suite.two_causes,
    "fork": suite.common_cause,
    "collider": suite.collider,
    "collider_4var": suite.strong_diamond,
    "toy_graph": toy.toy_graph,
    "complete_graph": synthetic.complete_graph,
    "psa": health.psa,
    "synthetic2": synthetic.synthetic2,
    "two_bumps": toy.two_bumps,
    "reef_linear": ecology.reef_linear,
    "epidemic_static": health.epidemic_static,
}
SUITE = tuple(_BUILDERS)[:9]  # keys of the public benchmark suite


def names() -> tuple[str, ...]:
    """Names of all problems, the public benchmark suite first."""
    return tuple(_BUILDERS)


def get(name: str) -> Problem:
    """The problem of this name; ValueError listing the names for an unknown one."""
    if name not in _BUILDERS:
        raise ValueError(f"problem {name!r} is not one of: {', '.join(_BUILDERS)}")
    return _BUILDERS[name]()
