"""`jaxrig arc train` and `eval`: the baseline agent."""

import dataclasses
import json
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jaxarc.cli import episodes
from jaxarc.cli.evaluation_page import TESTS, evaluation_page, learning_curve
from jaxarc.cli.tasks import PathOption, table_of
from jaxarc.config import JaxArcConfig
from jaxrig.atomic import write_file
from jaxrig.console import HostsOption, OutOption, check_writable, make_console, say
from jaxrig.report.text import count_of

if TYPE_CHECKING:
    from jaxarc.learning.training import AgentConfig

RATES = {
    "pairs solved": "pair_rate",
    "first try": "first_attempt_rate",
    "tasks": "task_rate",
}
RunOption = Annotated[Path, typer.Option(help="Folder of the run.")]
UpdatesOption = Annotated[int, typer.Option(min=1, help="Number of updates.")]
AnswerOption = Annotated[
    bool, typer.Option("--answer", help="Include the output in the observation.")
]
ContextOption = Annotated[
    int, typer.Option(min=0, help="Number of demonstrations to show.")
]
AugmentOption = Annotated[
    bool, typer.Option("--augment", help="Rotate, reflect and recolor tasks.")
]
TasksOption = Annotated[
    int, typer.Option(min=0, help="Use the first n tasks; 0 uses all.")
]
SideOption = Annotated[
    int,
    typer.Option(
        min=0,
        help="Use the tasks whose grids fit so many rows and columns; 0 uses all.",
    ),
]
UpdateStepsOption = Annotated[int, typer.Option(min=1, help="Steps per update.")]
FeaturesOption = Annotated[int, typer.Option(min=1, help="Width of the network.")]
DepthOption = Annotated[int, typer.Option(min=0, help="Number of residual blocks.")]
HalfOption = Annotated[
    bool, typer.Option("--half", help="Run convolutions in bfloat16 (faster on GPUs).")
]
RateOption = Annotated[float, typer.Option(help="Learning rate of Adam.")]
WandbOption = Annotated[
    bool, typer.Option("--wandb", help="Also log to Weights & Biases.")
]


def train(
    env_id: episodes.EnvironmentArgument = "AGI1-train",
    out: RunOption = Path("runs/arc"),
    path: PathOption = "",
    max_side: SideOption = 5,
    updates: UpdatesOption = 200,
    answer: AnswerOption = False,
    context: ContextOption = 0,
    augment: AugmentOption = False,
    tasks: TasksOption = 0,
    envs: episodes.EnvsOption = 256,
    steps: UpdateStepsOption = 32,
    features: FeaturesOption = 32,
    depth: DepthOption = 0,
    half: HalfOption = False,
    learning_rate: RateOption = 1e-3,
    seed: episodes.SeedOption = 0,
    wandb: WandbOption = False,
    log: episodes.LogOption = None,
    hosts: HostsOption = None,
) -> None:
    """Train the baseline agent with PPO; run again to resume.

    The defaults take a few minutes on a laptop. On a GPU use more environments.
    Uses every device of every host. Writes the configuration, checkpoints,
    metrics.jsonl and curve.svg to the folder.
    """
    # Imported here, so that help and typos do not wait for JAX.
    from jaxarc.learning.training import AgentConfig
    from jaxrig.learn import PPOConfig
    from jaxrig.sharding import joined_hosts

    settings = log_settings(log, wandb)
    config = AgentConfig(
        environment=env_id,
        dataset_path=path,
        max_side=max_side,
        tasks=tasks,
        answer=answer,
        context_pairs=context,
        augment=augment,
        features=features,
        depth=depth,
        dtype="bfloat16" if half else "float32",
        seed=seed,
        ppo=PPOConfig(
            environments=envs,
            steps=steps,
            epochs=2,
            minibatches=8,
            learning_rate=learning_rate,
        ),
    )
    with joined_hosts(hosts):
        run_training(config, updates, out, settings)


def run_training(
    config: "AgentConfig", updates: int, out: Path, settings: JaxArcConfig | None
) -> None:
    """Train, draw the curve and print the outcome; with settings, log every update."""
    from jaxarc.learning import training
    from jaxarc.log import ExperimentLogger
    from jaxrig.progress import make_meter
    from jaxrig.sharding import choose_mesh, is_main

    main, ppo = is_main(), config.ppo
    console = make_console(main)
    mesh = choose_mesh(ppo.environments, ppo.steps_per_update // ppo.minibatches)
    agent = training.make_agent(config)
    if main:
        training.save_config(out, config)
    with ExitStack() as stack:
        sinks = ()
        if settings is not None and main:
            logger = ExperimentLogger(settings, console=console, settings=config)
            told = stack.enter_context(logger).log_batch_step
            sinks = (lambda step, seen: told({"update_step": step} | seen),)
        meter = make_meter() if main else None
        training.train_agent(agent, updates, out, meter, sinks, mesh=mesh)
    if not main:  # one process tells of the run
        return
    records = training.read_metrics(out)
    known = [r for r in records if r["mean_return"] is not None]
    if known:  # some episode ended
        (out / "curve.svg").write_text(learning_curve(known))
    last, total = records[-1], updates * config.ppo.steps_per_update
    console.print(
        f"{updates} updates, {total:,} steps; mean return "
        f"{_number(last['mean_return'])}, mean length {_number(last['mean_length'])}",
        highlight=False,
    )
    console.print(f"next: jaxrig arc eval {out}", highlight=False)


def evaluate(
    run: Annotated[
        Path, typer.Argument(help="Run folder written by `jaxrig arc train`.")
    ],
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 3,
    attempts: Annotated[int, typer.Option(min=1, help="Attempts per pair.")] = 2,
    out: OutOption = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with an episode to play.")
    ] = None,
) -> None:
    """Play every pair, demonstrations and tests, and report how many are solved.

    On test pairs only a submitted grid counts; a pair is solved if one of the attempts
    is right, a task if all of its pairs are.
    """
    check_writable(out)
    check_writable(html)
    import jax

    from jaxarc.learning import evaluation
    from jaxarc.learning.policy import RandomPolicy
    from jaxarc.learning.training import load_agent, read_metrics

    agent, policy, updates = load_agent(run)
    players = {"agent": policy, "random": RandomPolicy(agent.config.operations)}
    console = make_console()
    figures, rows, played = {}, [], {}
    for mode, kind in enumerate(("demonstrations", "tests")):
        env = agent.environment(mode)
        for name, player in players.items():
            play = partial(evaluation.evaluate, player, env, attempts=attempts)
            results = {seed: play(jax.random.key(seed)) for seed in range(seeds)}
            summary = evaluation.summarize(results)
            if results[0].known.any():
                figures[f"{name}/{kind}"] = summary
            played[name, kind] = results
            row = {"player": name, "pairs": kind, "number": int(summary["pairs"][0])}
            for column, rate in RATES.items():
                row[column] = "{:.1%} ± {:.1%}".format(*summary[rate])
            rows.append(row)
    console.print(table_of(rows, title=f"{run}, after {updates} updates"))
    unknown = int((~played[TESTS][0].known).sum())
    if unknown:
        say(console, f"left out: {count_of(unknown, 'test')} without a known output")
    if out is not None:
        record = {"run": str(run), "updates": updates, "figures": figures}
        write_file(out, json.dumps(record, indent=1) + "\n")
        say(console, f"wrote {out}")
    if html is not None:
        command = f"jaxrig arc eval {run} --seeds {seeds} --attempts {attempts}"
        page = evaluation_page(
            played,
            agent.environment(1),
            _about(run, agent.config, updates),
            f"{command} --html {html}",
            read_metrics(run),
        )
        say(console, f"open {page.write(html)}")


def _about(run: Path, config: "AgentConfig", updates: int) -> str:
    return (
        f"The agent of {run} learned from the demonstrations of "
        f"{config.environment} in {updates:,} updates"
        + ", and is shown the answers"
        * config.answer
    )


def _number(value: float | None) -> str:
    return "unknown (no episode ended)" if value is None else f"{value:.2f}"


def log_settings(path: Path | None, wandb: bool) -> JaxArcConfig | None:
    """Return what to log: as a file says, or with `--wandb` every update there."""
    if path is not None:
        settings = episodes.read_log_settings(path)
        if not settings.logging.batched_logging_enabled:
            raise typer.BadParameter(
                f"{path} has logging.batched_logging_enabled off, but training logs "
                "only updates: switch it on"
            )
        tracking = dataclasses.replace(settings.wandb, enabled=True)
        return dataclasses.replace(settings, wandb=tracking) if wandb else settings
    if not wandb:
        return None
    return JaxArcConfig.from_hydra(
        {
            "visualization": {"enabled": False},
            "storage": {"policy": "none"},
            "logging": {"batched_logging_enabled": True, "log_frequency": 1},
            "wandb": {"enabled": True, "log_frequency": 1},
        }
    )
