"""`jaxrig causal train`: a surrogate, a policy, or both together, in a folder."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import jax
import typer

from acbo.cli.common import SeedOption, refusing, with_options
from acbo.policy.advisor import save_policy
from acbo.random_models import DataConfig
from acbo.surrogate.predictor import load_surrogate, save_surrogate
from acbo.training.policy import (
    JointRecipe,
    PolicyRecipe,
    shipped_policy,
    shipped_surrogate,
    start_joint,
    start_policy,
    update_joint,
    update_policy,
)
from acbo.training.surrogate import (
    SurrogateRecipe,
    start_surrogate,
    update_surrogate,
)
from jaxrig.checkpoint import CheckpointManager
from jaxrig.compile_guard import compile_once
from jaxrig.console import HostsOption, check_writable, make_console, say
from jaxrig.learn import GRPOState
from jaxrig.learn.train import JsonLines, Metrics
from jaxrig.learn.train import train as train_loop
from jaxrig.progress import make_meter
from jaxrig.sharding import choose_mesh, is_main, joined_hosts, spread

SURROGATE, POLICY = "surrogate.ckpt", "policy.ckpt"
UPDATES = 200  # of the policy, where nothing is said


class Kind(enum.StrEnum):
    """What is trained."""

    surrogate = "surrogate"
    policy = "policy"
    joint = "joint"


@dataclass(frozen=True)
class Sizes:
    """The options that change a recipe; what is None stays as the recipe has it."""

    steps: Annotated[
        int | None, typer.Option("--steps", min=1, help="Number of optimizer steps.")
    ] = None
    batch: Annotated[
        int | None, typer.Option("--batch", min=1, help="Models per step.")
    ] = None
    variables: Annotated[
        int | None,
        typer.Option(
            "--variables", min=3, help="Number of variables of the largest models."
        ),
    ] = None
    dim: Annotated[
        int | None, typer.Option("--dim", min=1, help="Width of the network.")
    ] = None
    layers: Annotated[
        int | None, typer.Option("--layers", min=1, help="Number of surrogate layers.")
    ] = None
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", help="Learning rate of AdamW.")
    ] = None
    shipped: Annotated[
        bool, typer.Option("--shipped", help="Use the recipe of the included models.")
    ] = False

    def changes(self, **names: str) -> dict[str, Any]:
        """Return what was chosen of these fields, under the recipe's names."""
        found = {new: getattr(self, own) for new, own in names.items()}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, eq=False)
class Job:
    """One training: where it starts, what an update does, and its networks by file."""

    recipe: Any
    updates: int
    start: Callable[[Any], Any]
    update: Callable[[Any], tuple[Any, Any]]
    trained: Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class Settings:
    """What a run is made of: a folder goes on only with the same."""

    recipe: Any
    seed: int


def surrogate_recipe(sizes: Sizes) -> SurrogateRecipe:
    """Return the usual recipe with what was chosen."""
    recipe = shipped_surrogate() if sizes.shipped else SurrogateRecipe()
    data = recipe.data
    if sizes.variables is not None:
        bounds = (3, sizes.variables)
        data = (DataConfig(variables=sizes.variables, sizes=bounds),)
    steps = recipe.steps if sizes.steps is None else sizes.steps
    # The most steps in one program that leave no remainder, which would be a second
    # program to compile.
    fused = next(n for n in range(recipe.steps_per_update, 0, -1) if steps % n == 0)
    return replace(
        recipe,
        model=replace(recipe.model, **sizes.changes(dim="dim", layers="layers")),
        data=data,
        batches=recipe.batches if sizes.batch is None else (sizes.batch,),
        steps=steps,
        steps_per_update=fused,
        **sizes.changes(learning_rate="learning_rate"),
    )


def policy_recipe(sizes: Sizes) -> PolicyRecipe:
    """Return the usual recipe with what was chosen."""
    recipe = shipped_policy() if sizes.shipped else PolicyRecipe()
    episodes = recipe.episodes
    if sizes.variables is not None:
        bounds = (3, sizes.variables)
        episodes = replace(episodes, variables=sizes.variables, sizes=bounds)
    learner = sizes.changes(states="batch", learning_rate="learning_rate")
    return replace(
        recipe,
        model=replace(recipe.model, **sizes.changes(dim="dim")),
        episodes=episodes,
        learner=replace(recipe.learner, **learner),
    )


def surrogate_job(sizes: Sizes, surrogate: Path | None) -> Job:
    """Train the surrogate on random data sets of known graphs."""
    recipe, step = surrogate_recipe(sizes), compile_once(update_surrogate)
    mesh = choose_mesh(*recipe.batches)
    return Job(
        recipe,
        recipe.steps // recipe.steps_per_update,
        lambda key: spread(start_surrogate(key, recipe), mesh),
        lambda state: step(state, recipe, mesh),
        lambda state: {SURROGATE: state.network},
    )


def _starts(learner: GRPOState) -> Any:
    """Return what the devices share out: where the next episodes start."""
    return learner.state, learner.observation


def policy_job(sizes: Sizes, surrogate: Path | None) -> Job:
    """Train the policy with GRPO, on the surrogate given or shipped."""
    if sizes.layers is not None:
        raise ValueError(
            "--layers applies only to the surrogate: a policy has only --dim"
        )
    recipe, step = policy_recipe(sizes), compile_once(update_policy)
    reader = load_surrogate(surrogate)
    mesh = choose_mesh(recipe.learner.states)
    copies = spread(reader, mesh)
    return Job(
        recipe,
        UPDATES if sizes.steps is None else sizes.steps,
        lambda key: spread(start_policy(key, recipe, reader), mesh, _starts),
        lambda state: step(state, recipe, copies, mesh),
        lambda state: {POLICY: state.policy},
    )


def joint_job(sizes: Sizes, surrogate: Path | None) -> Job:
    """Train both in turns, the policy on what the surrogate says at the time."""
    recipe = JointRecipe(surrogate_recipe(sizes), policy_recipe(sizes))
    step = compile_once(update_joint)
    mesh = choose_mesh(*recipe.surrogate.batches, recipe.policy.learner.states)
    return Job(
        recipe,
        recipe.surrogate.steps // recipe.surrogate.steps_per_update,
        lambda key: spread(
            start_joint(key, recipe), mesh, lambda state: _starts(state.policy)
        ),
        lambda state: step(state, recipe, mesh),
        lambda state: {SURROGATE: state.surrogate.network, POLICY: state.policy.policy},
    )


JOBS = {Kind.surrogate: surrogate_job, Kind.policy: policy_job, Kind.joint: joint_job}
WRITERS = {SURROGATE: save_surrogate, POLICY: save_policy}


@with_options(Sizes)
def train(
    kind: Annotated[Kind, typer.Argument(help="Network to train.")],
    out: Annotated[Path, typer.Option("--out", help="Output folder of the run.")],
    seed: SeedOption = 0,
    surrogate: Annotated[
        Path | None,
        typer.Option(
            "--surrogate",
            exists=True,
            help="Surrogate file for training the policy. Default: the included one.",
        ),
    ] = None,
    save_every: Annotated[
        int, typer.Option("--save-every", min=1, help="Updates between checkpoints.")
    ] = 20,
    hosts: HostsOption = None,
    *,
    sizes: Sizes,
) -> None:
    """Train on random causal models. Run the same command again to resume.

    Uses every device of every host. Writes checkpoints, metrics.jsonl and the final
    weights to the folder.
    """
    check_writable(out / "metrics.jsonl")
    with refusing(), joined_hosts(hosts):
        if surrogate is not None and kind != Kind.policy:
            raise ValueError("--surrogate applies only to the policy: remove it")
        job, tell = JOBS[kind](sizes, surrogate), partial(say, make_console(is_main()))
        state, history = run_job(job, out, seed, save_every)
        for name, value in (history[-1] if history else {}).items():
            tell(f"{name}: {value:.4g}")
        for file, network in job.trained(state).items():
            tell(f"wrote {WRITERS[file](out / file, network)}")


def run_job(
    job: Job, out: Path, seed: int, save_every: int
) -> tuple[Any, list[Metrics]]:
    """Run a job until it is done, or go on with what its folder holds."""
    return train_loop(
        job.update,
        job.start(jax.random.key(seed)),
        job.updates,
        meter=make_meter() if is_main() else None,
        sinks=(JsonLines(out / "metrics.jsonl"),) if is_main() else (),
        manager=CheckpointManager(out / "checkpoints"),
        save_every=save_every,
        config=Settings(job.recipe, seed),
    )
