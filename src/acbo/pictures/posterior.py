"""What a posterior says about the causes of a target, as bars."""

from acbo.posterior import ParentSetPosterior
from jaxrig.report import bar_chart

SETS = 8
NOTHING = "none"


def draw_parent_sets(posterior: ParentSetPosterior, most: int = SETS) -> str:
    """The likeliest sets of direct causes, the likeliest first."""
    bars: dict[str, float] = {}
    for chosen, chance in posterior.top_sets(most):
        bars[", ".join(sorted(chosen)) or NOTHING] = float(chance)
    title = f"Sets of direct causes of {posterior.target_variable}"
    return bar_chart(bars, title=title, x_label="probability")


def draw_parent_probs(posterior: ParentSetPosterior) -> str:
    """How likely each variable is a direct cause of the target, likeliest first."""
    chances = posterior.parent_probs()
    order = sorted(chances, key=lambda name: -chances[name])
    title = f"Direct causes of {posterior.target_variable}"
    bars = {name: chances[name] for name in order}
    return bar_chart(bars, title=title, x_label="probability")
