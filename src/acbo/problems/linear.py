"""Linear problems: the public benchmark suite (chains, forks, colliders, diamonds,
random graphs), and a coral reef of ours.
"""

from itertools import pairwise

import numpy as np

from acbo.named.model import NamedSCM, create_linear_scm
from acbo.problems.problem import Problem, linear_problem

LIMIT = 5.0  # every settable variable within -5 and 5 where nothing else is said
Coefficients = dict[tuple[str, str], float]


def linear_scm(
    names: str | tuple[str, ...], coefficients: Coefficients, target: str
) -> NamedSCM:
    """Return a model with unit noise and the same range for all but the target."""
    ranges = {name: (-LIMIT, LIMIT) for name in names if name != target}
    return create_linear_scm(tuple(names), coefficients, target, ranges)


def two_causes(name: str = "simple") -> Problem:
    """Return X -> Y <- Z with target Y; the public suite calls it a fork."""
    edges = {("X", "Y"): 2.0, ("Z", "Y"): -1.5}
    return linear_problem(name, linear_scm("XYZ", edges, "Y"))


def chain(n: int = 3, c: float = 1.5, name: str | None = None) -> Problem:
    """Return X0 -> X1 -> ... with one coefficient and the last variable as target."""
    if n < 2:
        raise ValueError(f"a chain of {n}: give at least 2 variables")
    names = tuple(f"X{i}" for i in range(n))
    edges = dict.fromkeys(pairwise(names), c)
    return linear_problem(name or f"chain_{n}var", linear_scm(names, edges, names[-1]))


def collider(x: float = 1.5, y: float = 2.0, name: str = "collider") -> Problem:
    """Return X -> Z <- Y with target Z."""
    edges = {("X", "Z"): x, ("Y", "Z"): y}
    return linear_problem(name, linear_scm("XYZ", edges, "Z"))


def common_cause(name: str = "fork") -> Problem:
    """Return X <- Z -> Y with target Y: X moves with the target, not the target."""
    edges = {("Z", "X"): 1.0, ("Z", "Y"): 2.0}
    return linear_problem(name, linear_scm("XYZ", edges, "Y"))


def diamond(name: str = "diamond_4var") -> Problem:
    """Return X -> Y -> W and X -> Z -> W with target W."""
    edges = {("X", "Y"): 1.5, ("X", "Z"): -1.0, ("Y", "W"): 2.0, ("Z", "W"): 1.0}
    return linear_problem(name, linear_scm("XYZW", edges, "W"))


def butterfly(name: str = "butterfly_5var") -> Problem:
    """Return two causes, two links between them, and one target E."""
    edges = {
        ("A", "C"): 0.8,
        ("B", "C"): 1.2,
        ("A", "D"): -0.5,
        ("C", "D"): 0.9,
        ("C", "E"): 1.1,
        ("D", "E"): 0.7,
    }
    return linear_problem(name, linear_scm("ABCDE", edges, "E"))


def mixed_coefficients(name: str = "mixed_coeffs_4var") -> Problem:
    """Return three causes of D, strong, negative and weak."""
    edges = {("A", "D"): 2.0, ("B", "D"): -1.5, ("C", "D"): 0.5}
    return linear_problem(name, linear_scm("ABCD", edges, "D"))


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
    edges: Coefficients = {}
    while not any(effect == names[-1] for _, effect in edges):
        edges = {
            (names[i], names[j]): round(float(draw()), 6)
            for i in range(n)
            for j in range(i + 1, n)
            if random.uniform() < probability
        }
    return linear_problem(name, linear_scm(names, edges, names[-1]))


VARIABLES = (
    *("light", "nutrients", "grazers", "temperature", "carbon_dioxide", "acidity"),
    *("saturation", "algae", "calcification"),
)


def reef_linear() -> Problem:
    """Maximize the calcification of a reef, in standardized units.

    The equations are ours, made for tests in the manner of linear reef models; they
    describe no real reef. Every variable adds noise of standard deviation 0.5.
    Temperature and saturation are measured and cannot be set.
    """
    scm = create_linear_scm(
        VARIABLES,
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
