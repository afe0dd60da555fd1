"""Problems of the field by name, each with its model, ranges and true optimum."""

from acbo.problems.library import (
    SACHS_EDGES,
    get,
    load_sachs,
    names,
)
from acbo.problems.problem import Problem, linear_problem, make_problem

__all__ = [
    "SACHS_EDGES",
    "Problem",
    "get",
    "linear_problem",
    "load_sachs",
    "make_problem",
    "names",
]
