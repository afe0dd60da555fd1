"""Linear problems: the public benchmark suite (chains, forks, colliders, diamonds,
random graphs), and a coral reef of ours.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from acbo.named.model import create_linear_scm
from acbo.problems.problem import Problem, linear_problem

LIMIT = 5.0  # every settable variable within -5 and 5 where nothing else is said


def plain_problem(
    name: str, variables: Sequence[str], target: str, edges: Mapping[Any, float]
) -> Problem:
    """Return a problem with unit noise and one range for all but the target; `edges`
    gives the coefficient of each (cause, effect), or "XY" for names of one letter.
    """
    coefficients = {(edge[0], edge[1]): weight for edge, weight in edges.items()}
    ranges = {each: (-LIMIT, LIMIT) for each in variables if each != target}
    scm = create_linear_scm(tuple(variables), coefficients, target, ranges)
    return linear_problem(name, scm)


def chain(n: int = 3, c: float = 1.5, name: str | None = None) -> Problem:
    """Return X0 -> X1 -> ... with one coefficient and the last variable as target."""
    if n < 2:
        raise ValueError(f"a chain of {n}: give at least 2 variables")
    names = [f"X{i}" for i in range(n)]
    edges = dict.fromkeys(pairwise(names), c)
    return plain_problem(name or f"chain_{n}var", names, names[-1], edges)


def strong_diamond(name: str = "collider_4var") -> Problem:
    """Return X0 -> X1, X2 -> X3, all of 2, with little noise and ranges of +-3."""
    names = ("X0", "X1", "X2", "X3")
    pairs = (("X0", "X1"), ("X0", "X2"), ("X1", "X3"), ("X2", "X3"))
    ranges = {name: (-3.0, 3.0) for name in names} | {"X3": (-12.0, 12.0)}
    edges = dict.fromkeys(pairs, 2.0)
    scm = create_linear_scm(names, edges, "X3", ranges, noise_scales=0.1)
    return linear_problem(name, scm)


def erdos_renyi(n: int, probability: float, seed: int, name: str) -> Problem:
    """Draw Xi -> Xj, i < j, with this probability; the last variable is the target.

    Coefficients are uniform on (-2, 2) without (-0.1, 0.1). Graphs are drawn from
    NumPy's generator of this seed until the target has a cause.
    """
    random = np.random.default_rng(seed)
    names = tuple(f"X{i}" for i in range(n))
    draw = lambda: random.uniform(0.1, 2.0) * random.choice([-1.0, 1.0])
    edges: dict[tuple[str, str], float] = {}
    while not any(effect == names[-1] for _, effect in edges):
        edges = {
            (names[i], names[j]): round(float(draw()), 6)
            for i in range(n)
            for j in range(i + 1, n)
            if random.uniform() < probability
        }
    return plain_problem(name, names, names[-1], edges)


def reef_linear() -> Problem:
    """Maximize the calcification of a reef, in standardized units.

    The equations are ours, made for tests in the manner of linear reef models; they
    describe no real reef. Every variable adds noise of standard deviation 0.5.
    Temperature and saturation are measured and cannot be set.
    """
    scm = create_linear_scm(
        (
            *("light", "nutrients", "grazers", "temperature", "carbon_dioxide"),
            *("acidity", "saturation", "algae", "calcification"),
        ),
        {
            ("light", "temperature"): 0.5,
            ("temperature", "carbon_dioxide"): 0.6,
            ("carbon_dioxide", "acidity"): 0.8,
            ("acidity", "saturation"): -0.7,
            ("temperature", "saturation"): 0.3,
            ("nutrients", "algae"): 0.7,
            ("grazers", "algae"): -0.6,
            ("light", "algae"): 0.3,
            ("saturation", "calcification"): 0.8,
            ("light", "calcification"): 0.4,
            ("algae", "calcification"): -0.5,
            ("temperature", "calcification"): -0.4,
        },
        target="calcification",
        ranges={
            "light": (-1.0, 1.0),
            "nutrients": (-1.0, 2.0),
            "grazers": (-2.0, 1.5),
            "carbon_dioxide": (-1.5, 2.0),
            "acidity": (-1.0, 1.0),
            "algae": (-1.0, 2.0),
        },
        intercepts={"calcification": 1.0},
        noise_scales=0.5,
    )
    return linear_problem("reef_linear", scm, "MAXIMIZE")


# In the order of the public suite: variables, target and coefficients, or a function.
_ROWS: dict[str, Any] = {
    "fork_3var": ("XYZ", "Y", {"XY": 2.0, "ZY": -1.5}),  # two causes; the suite's name
    "chain_3var": partial(chain, 3),
    "collider_3var": ("XYZ", "Z", {"XZ": 1.2, "YZ": 0.8}),
    "diamond_4var": ("XYZW", "W", {"XY": 1.5, "XZ": -1.0, "YW": 2.0, "ZW": 1.0}),
    "mixed_coeffs_4var": ("ABCD", "D", {"AD": 2.0, "BD": -1.5, "CD": 0.5}),
    "dense_4var": partial(erdos_renyi, 4, 0.7, 123, "dense_4var"),
    "butterfly_5var": (
        *("ABCDE", "E"),
        {"AC": 0.8, "BC": 1.2, "AD": -0.5, "CD": 0.9, "CE": 1.1, "DE": 0.7},
    ),
    "sparse_5var": partial(erdos_renyi, 5, 0.2, 456, "sparse_5var"),
    "chain_5var": partial(chain, 5),
    "simple": ("XYZ", "Y", {"XY": 2.0, "ZY": -1.5}),
    "fork": ("XYZ", "Y", {"ZX": 1.0, "ZY": 2.0}),  # X moves with the target, not it
    "collider": ("XYZ", "Z", {"XZ": 1.5, "YZ": 2.0}),
    "collider_4var": strong_diamond,
}
SUITE: dict[str, Any] = {
    name: row if callable(row) else partial(plain_problem, name, *row)
    for name, row in _ROWS.items()
}
