"""The command `jaxrig arc`: look at tasks, play them, and run agents on them."""

from jaxrig.console import lazy_commands

COMMANDS = {
    "list": (
        "jaxarc.cli.tasks:list_tasks",
        "List data sets, the parts of one, or the tasks of a part.",
    ),
    "show": (
        "jaxarc.cli.tasks:show",
        "Show the demonstrations and tests of a task.",
    ),
    "play": (
        "jaxarc.cli.play:play",
        "Solve a task by hand with the operations of the agents. Type help for a list.",
    ),
    "rollout": (
        "jaxarc.cli.episodes:rollout",
        "Run a random agent in many environments; report its speed and its results.",
    ),
    "train": (
        "jaxarc.cli.train:train",
        "Train the baseline agent with PPO; run again to resume.",
    ),
    "eval": (
        "jaxarc.cli.train:evaluate",
        "Play every pair, demonstrations and tests, and report how many are solved.",
    ),
    "demonstrate": (
        "jaxarc.cli.episodes:demonstrate",
        "Write expert episodes, one for every pair: a data set for imitation.",
    ),
    "solve": (
        "jaxarc.cli.solve:solve",
        "Predict the outputs of tests from the demonstrations, with two attempts.",
    ),
    "train-solver": (
        "jaxarc.cli.solve:train",
        "Train a solver on the demonstrations of a data set; run again to resume.",
    ),
    "replay": (
        "jaxarc.cli.episodes:replay",
        "Replay a recorded episode and verify its rewards.",
    ),
    "download": (
        "jaxarc.cli.tasks:download",
        "Download data sets with git; the only command that uses the network.",
    ),
}
app = lazy_commands(
    "arc", "ARC tasks: show and play them, train and evaluate agents.", COMMANDS
)

__all__ = ["app"]
