"""Whole runs from a file: the case, what it needs, and everything that comes of it."""

from jaxtrace.workflow.case import Case, load_case
from jaxtrace.workflow.run import Outcome, run_case

__all__ = ["Case", "Outcome", "load_case", "run_case"]
