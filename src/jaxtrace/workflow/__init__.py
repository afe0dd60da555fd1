"""Whole runs from a file: the case, what it needs, and everything that comes of it."""

from jaxtrace.workflow.case import Case, case_text, load_case, read_case, write_case
from jaxtrace.workflow.run import Outcome, resume_case, run_case

__all__ = [
    "Case",
    "Outcome",
    "case_text",
    "load_case",
    "read_case",
    "resume_case",
    "run_case",
    "write_case",
]
