"""A solver: networks trained on demonstrations that predict the outputs of tests."""

from jaxarc.learning.solver.training import SolverConfig, train_solver
from jaxarc.learning.solver.voting import load_solver, predict, predict_all

__all__ = ["SolverConfig", "load_solver", "predict", "predict_all", "train_solver"]
