"""Problems of the field by name, each with its model, ranges and true optimum."""

from acbo.problems.library import SUITE, get, names
from acbo.problems.problem import Optimum, Problem, linear_problem, make_problem
from acbo.problems.sachs import SACHS_EDGES, SACHS_NAMES, load_sachs
from acbo.problems.suite import chain

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
