"""`jaxrig arc train` and `jaxrig arc eval`: an agent, and what it can do."""

import dataclasses
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import jax
import typer
from rich import box
from rich.table import Table

from jaxarc.cli.logs import LogOption, read_log_settings
from jaxarc.cli.output import PathOption
from jaxarc.config import (
    JaxArcConfig,
    LoggingConfig,
    StorageConfig,
    VisualizationConfig,
    WandbConfig,
)
from jaxarc.learning.evaluation import EvaluationResult, evaluate, summarize
from jaxarc.learning.policy import RandomPolicy
from jaxarc.learning.training import (
    AgentConfig,
    load_agent,
    make_agent,
    read_metrics,
    save_config,
    train_agent,
)
from jaxarc.log import ExperimentLogger
from jaxrig.atomic import atomic_write
from jaxrig.console import check_writable, make_console
from jaxrig.learn import PPOConfig
from jaxrig.progress import make_meter
from jaxrig.report import line_chart

OutOption = Annotated[Path, typer.Option("--out", help="Folder of the run.")]


def train(
    env_id: Annotated[
        str, typer.Argument(help="Data set and selector, e.g. Mini-all, AGI1-train.")
    ] = "Mini-all",
    out: OutOption = Path("runs/arc"),
    path: PathOption = "",
    updates: Annotated[int, typer.Option("--updates", min=1, help="How long.")] = 400,
    answer: Annotated[
        bool, typer.Option("--answer", help="Show the agent the answer.")
    ] = False,
    context: Annotated[
        int, typer.Option("--context", min=0, help="Show so many demonstrations.")
    ] = 0,
    augment: Annotated[
        bool, typer.Option("--augment", help="Turn and recolor tasks.")
    ] = False,
    tasks: Annotated[
        int, typer.Option("--tasks", min=0, help="Only the first so many; 0: all.")
    ] = 0,
    envs: Annotated[int, typer.Option("--envs", min=1, help="Environments.")] = 4096,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Steps an update.")] = 32,
    features: Annotated[int, typer.Option("--features", min=1, help="Width.")] = 64,
    depth: Annotated[int, typer.Option("--depth", min=0, help="Blocks.")] = 1,
    learning_rate: Annotated[float, typer.Option("--learning-rate")] = 1e-3,
    seed: Annotated[int, typer.Option("--seed", help="Of network and episodes.")] = 0,
    wandb: Annotated[
        bool, typer.Option("--wandb", help="Log to Weights & Biases as well.")
    ] = False,
    log: LogOption = None,
) -> None:
    """Train the baseline agent with PPO; run again to resume.

    The folder gets the configuration, checkpoints, metrics.jsonl and curve.svg.
    """
    ppo = PPOConfig(
        environments=envs,
        steps=steps,
        epochs=2,
        minibatches=8,
        learning_rate=learning_rate,
    )
    config = AgentConfig(
        environment=env_id,
        dataset_path=path,
        tasks=tasks,
        answer=answer,
        context_pairs=context,
        augment=augment,
        features=features,
        depth=depth,
        seed=seed,
        ppo=ppo,
    )
    run_training(config, updates, out, _log_settings(log, wandb))


def run_training(
    config: AgentConfig, updates: int, out: Path, settings: JaxArcConfig | None = None
) -> None:
    """Train, draw the curve, and say how it went; with settings, log every update."""
    console = make_console()
    agent = make_agent(config)
    save_config(out, config)
    with ExitStack() as stack:
        sinks = ()
        if settings is not None:
            log = ExperimentLogger(settings, console=console, settings=config)
            stack.enter_context(log)
            tell = lambda step, seen: log.log_batch_step({"update_step": step} | seen)
            sinks = (tell,)
        train_agent(agent, updates, out, make_meter(), sinks)
    records = read_metrics(out)
    if any(record["mean_return"] is not None for record in records):
        (out / "curve.svg").write_text(_curve(records))
    last, steps = records[-1], updates * config.ppo.steps_per_update
    console.print(
        f"{updates} updates, {steps:,} steps; mean return "
        f"{_number(last['mean_return'])}, mean length {_number(last['mean_length'])}",
        highlight=False,
    )
    console.print(f"next: jaxrig arc eval {out}", highlight=False)


def evaluate_run(
    run: Annotated[Path, typer.Argument(help="Folder of `jaxrig arc train`.")],
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many.")] = 3,
    attempts: Annotated[int, typer.Option("--attempts", min=1, help="Per pair.")] = 2,
    out: Annotated[
        Path | None, typer.Option("--json", help="Write the figures here.")
    ] = None,
) -> None:
    """Play every pair, demonstrations and tests, and show how many are solved.

    On test pairs only a submitted grid counts; a pair is solved if one of the attempts
    is right, a task if all of its pairs are.
    """
    check_writable(out)
    agent, policy, updates = load_agent(run)
    players = {"agent": policy, "random": RandomPolicy(agent.config.operations)}
    console = make_console()
    table = Table(box=box.SIMPLE, title=f"{run}, after {updates} updates")
    for name in ("player", "pairs", "number", "pairs solved", "first try", "tasks"):
        table.add_column(
            name, justify="left" if name in ("player", "pairs") else "right"
        )
    figures = {}
    for mode, kind in enumerate(("demonstrations", "tests")):
        env = agent.environment(mode)
        for name, player in players.items():
            results: dict[int, EvaluationResult] = {
                seed: evaluate(player, env, jax.random.key(seed), attempts)
                for seed in range(seeds)
            }
            summary = summarize(results)
            figures[f"{name}/{kind}"] = summary
            rates = ("pair_rate", "first_attempt_rate", "task_rate")
            count = f"{summary['pairs'][0]:.0f}"
            shares = [f"{summary[r][0]:.1%} ± {summary[r][1]:.1%}" for r in rates]
            table.add_row(name, kind, count, *shares)
    console.print(table)
    if out is not None:
        with atomic_write(out) as file:
            record = {"run": str(run), "updates": updates, "figures": figures}
            file.write((json.dumps(record, indent=1) + "\n").encode())
        console.print(f"wrote {out}", highlight=False)


def _number(value: float | None) -> str:
    return "unknown (no episode ended)" if value is None else f"{value:.2f}"


def _curve(records: list[dict]) -> str:
    """Returns over updates, where episodes ended."""
    known = [r for r in records if r["mean_return"] is not None]
    steps = [float(record["step"]) for record in known]
    returns = [float(record["mean_return"]) for record in known]
    return line_chart(
        {"mean return": (steps, returns)}, x_label="update", y_label="mean return"
    )


def _log_settings(path: Path | None, wandb: bool) -> JaxArcConfig | None:
    """What to log: what a file says, or with `--wandb` every update there."""
    if path is not None:
        settings = read_log_settings(path)
        if not settings.logging.batched_logging_enabled:
            raise typer.BadParameter(
                f"{path} leaves logging.batched_logging_enabled off, and training logs "
                "nothing but updates: switch it on"
            )
        tracking = dataclasses.replace(settings.wandb, enabled=True)
        return dataclasses.replace(settings, wandb=tracking) if wandb else settings
    if not wandb:
        return None
    return JaxArcConfig(
        visualization=VisualizationConfig(enabled=False),
        storage=StorageConfig(policy="none"),
        logging=LoggingConfig(batched_logging_enabled=True, log_frequency=1),
        wandb=WandbConfig(enabled=True, log_frequency=1),
    )
