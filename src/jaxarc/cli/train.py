"""Train and evaluate the baseline agent."""

import dataclasses
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jax
import typer
from rich import box
from rich.table import Table

from jaxarc.cli.episodes import read_log_settings
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
from jaxrig.console import make_console
from jaxrig.learn import PPOConfig
from jaxrig.progress import make_meter
from jaxrig.report import line_chart


def make_config(
    environments: int, steps: int, learning_rate: float, **agent: Any
) -> AgentConfig:
    """Return the configuration of the baseline; `agent` are fields of AgentConfig."""
    ppo = PPOConfig(
        environments=environments,
        steps=steps,
        epochs=2,
        minibatches=8,
        learning_rate=learning_rate,
    )
    return AgentConfig(ppo=ppo, **agent)


def run_training(
    config: AgentConfig, updates: int, out: Path, settings: JaxArcConfig | None = None
) -> None:
    """Train, draw the curve and print the outcome; with settings, log every update."""
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


def run_evaluation(run: Path, seeds: int, attempts: int, out: Path | None) -> None:
    """Evaluate a trained agent and a random one; print how many pairs they solve."""
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
    """Draw returns over updates, where episodes ended."""
    known = [r for r in records if r["mean_return"] is not None]
    steps = [float(record["step"]) for record in known]
    returns = [float(record["mean_return"]) for record in known]
    return line_chart(
        {"mean return": (steps, returns)}, x_label="update", y_label="mean return"
    )


def log_settings(path: Path | None, wandb: bool) -> JaxArcConfig | None:
    """Return what to log: as a file says, or with `--wandb` every update there."""
    if path is not None:
        settings = read_log_settings(path)
        if not settings.logging.batched_logging_enabled:
            raise typer.BadParameter(
                f"{path} has logging.batched_logging_enabled off, but training logs "
                "only updates: switch it on"
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
