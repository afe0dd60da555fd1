"""Steps in time: explicit Runge-Kutta methods, fixed and adaptive."""

from jaxtrace.integrators.steps import (
    euler_step,
    euler_step_batch,
    rk2_step,
    rk2_step_batch,
    rk4_step,
)
from jaxtrace.integrators.tableau import METHODS, Tableau, find_method

__all__ = [
    "METHODS",
    "Tableau",
    "euler_step",
    "euler_step_batch",
    "find_method",
    "rk2_step",
    "rk2_step_batch",
    "rk4_step",
]
