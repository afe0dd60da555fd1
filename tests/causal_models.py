"""Small named models that several tests share."""

from acbo.named.model import create_linear_scm

COEFFICIENTS = {("A", "B"): 0.8, ("A", "C"): -1.5, ("B", "C"): 2.0}


def triangle(**changes):
    """A -> B -> C and A -> C, with target C and ranges of +-5."""
    arguments = {
        "variables": ("A", "B", "C"),
        "coefficients": COEFFICIENTS,
        "target": "C",
        "ranges": {"A": (-5.0, 5.0), "B": (-5.0, 5.0)},
        "intercepts": {"A": 1.0, "C": 0.3},
        "noise_scales": {"A": 1.0, "B": 0.5, "C": 0.7},
    }
    return create_linear_scm(**(arguments | changes))
