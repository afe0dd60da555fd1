"""How well systems do: measures, statistics, held-out problems and reports."""

from acbo.evaluation.evaluate import evaluate
from acbo.evaluation.heldout import Cell, Protocol
from acbo.evaluation.problems import evaluate_problems
from acbo.evaluation.report import Report, Result

__all__ = ["Cell", "Protocol", "Report", "Result", "evaluate", "evaluate_problems"]
