"""All commands of `jaxrig causal`; the module of each is imported when it is used."""

from jaxrig.console import lazy_commands

COMMANDS = {
    "suggest": (
        "acbo.cli.suggest:suggest",
        "Suggest the next experiment from a table of experiments.",
    ),
    "campaign": (
        "acbo.cli.campaign:start",
        "Start a campaign of experiments in a folder.",
    ),
    "ask": (
        "acbo.cli.campaign:ask",
        "Ask a campaign for the next experiment.",
    ),
    "tell": (
        "acbo.cli.campaign:tell",
        "Tell a campaign what came out of an experiment.",
    ),
    "report": (
        "acbo.cli.campaign:report",
        "Write a page of how a campaign stands.",
    ),
    "optimize": (
        "acbo.cli.evaluate:optimize",
        "Optimize a problem whose true optimum is known, one intervention at a time.",
    ),
    "problems": (
        "acbo.cli.evaluate:list_problems",
        "List the problems with their targets and true optima.",
    ),
    "graph": (
        "acbo.cli.suggest:graph",
        "Show the probability of each direct causal edge, and which edges to name.",
    ),
    "train": (
        "acbo.cli.train:train",
        "Train on random causal models. Run the same command again to resume.",
    ),
    "eval": (
        "acbo.cli.evaluate:evaluate_models",
        "Evaluate how well methods find causes and optimize targets.",
    ),
}
app = lazy_commands(
    "causal", "Find the causes of a target and the next experiment to run.", COMMANDS
)

__all__ = ["app"]
