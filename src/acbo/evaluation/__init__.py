"""How well systems do: measures, statistics, held-out problems and reports."""

from acbo.evaluation.evaluate import evaluate, evaluate_problems
from acbo.evaluation.report import Report, Result
from acbo.evaluation.scoring import Cell, Protocol

__all__ = ["Cell", "Protocol", "Report", "Result", "evaluate", "evaluate_problems"]
