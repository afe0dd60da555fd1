"""A solver: networks trained on demonstrations that predict the outputs of tests."""

from jaxarc.learning.solver.playing import count_actions, play_candidates
from jaxarc.learning.solver.training import SolverConfig, train_solver
from jaxarc.learning.solver.voting import (
    Candidate,
    load_solver,
    predict,
    predict_all,
    save_solver,
)

__all__ = [
    "Candidate",
    "SolverConfig",
    "count_actions",
    "load_solver",
    "play_candidates",
    "predict",
    "predict_all",
    "save_solver",
    "train_solver",
]
