"""The commands of `jaxrig arc`: their options and help.

What a command needs is imported when it runs, so that `jaxrig arc --help` and looking
at tasks do not load environments and learners.
"""

import enum
from pathlib import Path
from typing import Annotated

import typer

from jaxrig.console import check_writable

PICTURES = (".svg", ".png", ".pdf")

TaskArgument = Annotated[str, typer.Argument(help="Id of a task, e.g. 00d62c1b.")]
EnvironmentArgument = Annotated[
    str, typer.Argument(help="Data set and selector, e.g. AGI1-train or Mini-all.")
]
DatasetOption = Annotated[
    str,
    typer.Option("--dataset", "-d", help="AGI1, AGI2, AGI12, Mini or Concept."),
]
PathOption = Annotated[
    str,
    typer.Option(
        "--path",
        help="Folder of the data set; required for Mini and Concept "
        "(see `jaxrig arc download`).",
    ),
]
LogOption = Annotated[
    Path | None,
    typer.Option(
        "--log",
        help="Log the run as configured in this YAML file (groups visualization, "
        "storage, logging and wandb, and environment.debug_level).",
    ),
]
EnvsOption = Annotated[
    int, typer.Option("--envs", min=1, help="Number of environments.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Random seed.")]
RunOption = Annotated[Path, typer.Option("--out", help="Folder of the run.")]
UpdatesOption = Annotated[
    int, typer.Option("--updates", min=1, help="Number of updates.")
]
AnswerOption = Annotated[
    bool, typer.Option("--answer", help="Include the output in the observation.")
]
ContextOption = Annotated[
    int, typer.Option("--context", min=0, help="Number of demonstrations to show.")
]
AugmentOption = Annotated[
    bool, typer.Option("--augment", help="Rotate, reflect and recolor tasks.")
]
TasksOption = Annotated[
    int, typer.Option("--tasks", min=0, help="Use the first n tasks; 0 uses all.")
]
UpdateStepsOption = Annotated[
    int, typer.Option("--steps", min=1, help="Steps per update.")
]
FeaturesOption = Annotated[
    int, typer.Option("--features", min=1, help="Width of the network.")
]
DepthOption = Annotated[
    int, typer.Option("--depth", min=0, help="Number of residual blocks.")
]
RateOption = Annotated[
    float, typer.Option("--learning-rate", help="Learning rate of Adam.")
]
WandbOption = Annotated[
    bool, typer.Option("--wandb", help="Also log to Weights & Biases.")
]


class Actions(enum.StrEnum):
    """How an action selects cells."""

    point = "point"
    bbox = "bbox"
    mask = "mask"


class Download(enum.StrEnum):
    """What can be downloaded."""

    arc_agi_1 = "arc-agi-1"
    arc_agi_2 = "arc-agi-2"
    conceptarc = "conceptarc"
    miniarc = "miniarc"
    all = "all"


def check_picture(path: Path | None) -> None:
    """Refuse a picture that cannot be written, or whose name has no known format."""
    if path is not None and path.suffix.lower() not in PICTURES:
        raise typer.BadParameter(f"{path.name} does not end in {', '.join(PICTURES)}")
    check_writable(path)


def list_tasks(
    dataset: Annotated[
        str | None, typer.Argument(help="AGI1, AGI2, AGI12, Mini or Concept.")
    ] = None,
    selector: Annotated[
        str | None,
        typer.Option("--selector", "-s", help="A split, subset, concept or task id."),
    ] = None,
    path: PathOption = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List data sets, the parts of one, or the tasks of a part."""
    if dataset is None and (selector or path):
        raise typer.BadParameter("missing data set: jaxrig arc list AGI1 ...")
    from jaxarc.cli.tasks import print_listing

    print_listing(dataset, selector, path, as_json)


def show(
    task: TaskArgument,
    dataset: DatasetOption = "AGI1",
    path: PathOption = "",
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Write an SVG picture to this file.")
    ] = None,
    answer: Annotated[
        bool, typer.Option("--answer", help="Also show the outputs of the test pairs.")
    ] = False,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Print color numbers in the cells.")
    ] = False,
) -> None:
    """Show the demonstrations and tests of a task."""
    check_picture(svg)
    from jaxarc.cli.tasks import show_task

    show_task(task, dataset, path, svg, answer, numbers)


def play(
    task: TaskArgument,
    dataset: DatasetOption = "AGI1",
    path: PathOption = "",
    test: Annotated[
        bool, typer.Option("--test", help="Play the tests; their targets are hidden.")
    ] = False,
    pair: Annotated[int, typer.Option("--pair", min=1, help="Pair to start with.")] = 1,
    script: Annotated[
        Path | None,
        typer.Option(
            "--script", exists=True, dir_okay=False, help="Read commands from a file."
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", help="Write the episode to this file, for `replay`."),
    ] = None,
    steps: Annotated[
        int, typer.Option("--steps", min=1, help="Maximum number of steps.")
    ] = 1000,
) -> None:
    """Solve a task by hand with the operations of the agents. Type help for a list."""
    check_writable(save)
    from jaxarc.cli.play import play_task

    play_task(task, dataset, path, test, pair, script, save, steps)


def rollout(
    env_id: EnvironmentArgument = "AGI1-train",
    envs: EnvsOption = 256,
    steps: Annotated[
        int, typer.Option("--steps", min=1, help="Steps per environment.")
    ] = 200,
    seed: SeedOption = 0,
    actions: Annotated[
        Actions,
        typer.Option("--actions", help="Action type: how actions select cells."),
    ] = Actions.point,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write one episode to this file, for `replay`."),
    ] = None,
    path: PathOption = "",
    log: LogOption = None,
) -> None:
    """Run a random agent in many environments; report its speed and its results."""
    check_writable(out)
    from jaxarc.cli.episodes import run_rollout

    run_rollout(env_id, actions.value, envs, steps, seed, out, path, log)


def replay(
    file: Annotated[
        Path, typer.Argument(help="Episode file written by `rollout` or `play`.")
    ],
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write a page that plays the episode."),
    ] = None,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", help="Write a picture of its key moments."),
    ] = None,
    speed: Annotated[
        float,
        typer.Option(
            "--speed", min=0.0, help="Frames per second; 0 prints all frames at once."
        ),
    ] = 0.0,
    path: PathOption = "",
) -> None:
    """Replay a recorded episode and verify its rewards."""
    check_writable(html)
    check_picture(svg)
    from jaxarc.cli.episodes import show_replay

    show_replay(file, html, svg, speed, path)


def train(
    env_id: EnvironmentArgument = "Mini-all",
    out: RunOption = Path("runs/arc"),
    path: PathOption = "",
    updates: UpdatesOption = 400,
    answer: AnswerOption = False,
    context: ContextOption = 0,
    augment: AugmentOption = False,
    tasks: TasksOption = 0,
    envs: EnvsOption = 4096,
    steps: UpdateStepsOption = 32,
    features: FeaturesOption = 64,
    depth: DepthOption = 1,
    learning_rate: RateOption = 1e-3,
    seed: SeedOption = 0,
    wandb: WandbOption = False,
    log: LogOption = None,
) -> None:
    """Train the baseline agent with PPO; run again to resume.

    Writes the configuration, checkpoints, metrics.jsonl and curve.svg to the folder.
    """
    from jaxarc.cli.train import log_settings, make_config, run_training

    config = make_config(
        envs,
        steps,
        learning_rate,
        environment=env_id,
        dataset_path=path,
        tasks=tasks,
        answer=answer,
        context_pairs=context,
        augment=augment,
        features=features,
        depth=depth,
        seed=seed,
    )
    run_training(config, updates, out, log_settings(log, wandb))


def evaluate(
    run: Annotated[
        Path, typer.Argument(help="Run folder written by `jaxrig arc train`.")
    ],
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Number of seeds.")] = 3,
    attempts: Annotated[
        int, typer.Option("--attempts", min=1, help="Attempts per pair.")
    ] = 2,
    out: Annotated[
        Path | None, typer.Option("--json", help="Write the results to this JSON file.")
    ] = None,
) -> None:
    """Play every pair, demonstrations and tests, and report how many are solved.

    On test pairs only a submitted grid counts; a pair is solved if one of the attempts
    is right, a task if all of its pairs are.
    """
    check_writable(out)
    from jaxarc.cli.train import run_evaluation

    run_evaluation(run, seeds, attempts, out)


def download(
    dataset: Annotated[Download, typer.Argument(help="Data set to download.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output folder.")
    ] = Path("data"),
    force: Annotated[
        bool, typer.Option("--force", help="Download again if the folder exists.")
    ] = False,
) -> None:
    """Download data sets with git; the only command that uses the network."""
    from jaxarc.cli.tasks import download_datasets

    download_datasets(dataset.value, output, force)
