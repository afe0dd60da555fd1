"""Problems of the field by name, each with its model, ranges and true optimum."""

from acbo.problems.library import (
    SACHS_EDGES,
    SACHS_NAMES,
    SUITE,
    get,
    load_sachs,
    names,
)
from acbo.problems.linear import chain
from acbo.problems.problem import Optimum, Problem, linear_problem, make_problem

__all__ = [
    "SACHS_EDGES",
    "SACHS_NAMES",
    "SUITE",
    "Optimum",
    "Problem",
    "chain",
    "get",
    "linear_problem",
    "load_sachs",
    "make_problem",
    "names",
]
