"""How well systems do: measures, statistics, held-out problems and reports."""

from acbo.evaluation.evaluate import evaluate, evaluate_problems
from acbo.evaluation.report import Report
from acbo.evaluation.scoring import Protocol

__all__ = ["Protocol", "Report", "evaluate", "evaluate_problems"]
