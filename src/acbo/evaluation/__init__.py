"""How well systems do: measures, statistics, held-out problems and reports."""

from acbo.evaluation.evaluate import Protocol, evaluate, evaluate_problems
from acbo.evaluation.report import Report

__all__ = ["Protocol", "Report", "evaluate", "evaluate_problems"]
