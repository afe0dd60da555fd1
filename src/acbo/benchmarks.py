"""What causal optimization costs: training steps, posteriors, and experiments.

Data are made inside what is measured wherever training makes them itself.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import optax

from acbo.policy.rl_environment import EpisodeConfig
from acbo.posterior.exact import MAX_VARIABLES, exact_parent_posterior
from acbo.random_models import DataConfig, SCMConfig, draw_dataset
from acbo.surrogate.losses import kl_divergence_loss
from acbo.surrogate.model import SurrogateConfig
from acbo.surrogate.predictor import Surrogate, infer_graphs, load_surrogate
from acbo.training.difficulty import create_test_batch, create_test_model, test_config
from acbo.training.examples import convert_to_jax_batch
from acbo.training.policy import PolicyRecipe, start_policy, update_policy
from acbo.training.steps import (
    TrainStep,
    create_jax_surrogate_train_step,
    create_surrogate_train_step,
)
from acbo.training.surrogate import (
    SurrogateRecipe,
    start_surrogate,
    update_surrogate,
)
from jaxrig.bench import Benchmark, Measurement
from jaxrig.compile_guard import compile_once
from jaxrig.memory import tree_bytes
from jaxrig.timing import compare

LEARNING_RATE = 1e-3
IN_A_ROW = 20  # compiled steps that are timed together
DOCUMENT = {"hidden": 16, "layers": 2, "examples": 3, "rows": 20, "variables": 3}


@dataclass(frozen=True, eq=False)
class Steps:
    """The same training step compiled and not, and what both are called with."""

    compiled: TrainStep
    eager: TrainStep
    args: tuple[Any, ...]

    def losses(self, count: int) -> dict[str, np.ndarray]:
        """Losses of `count` steps in a row, by each of the two."""
        found = {}
        for name, step in (("compiled", self.compiled), ("eager", self.eager)):
            params, memory, batch, key = self.args
            losses = []
            with jax.disable_jit(step is self.eager):
                for _ in range(count):
                    params, memory, metrics = step.run(params, memory, batch, key)
                    losses.append(float(metrics["total_loss"]))
            found[name] = np.array(losses)
        return found

    def timed(self) -> dict[str, Callable[[], Any]]:
        """Return the two as functions to time; the eager one goes operation by
        operation.

        Of the compiled one `IN_A_ROW` steps follow each other, as in training: after a
        second of something else its data are out of the caches. Without `disable_jit`
        the scans of the eager one would be compiled anew in every call, and compiling
        would count as running.
        """

        def eager() -> Any:
            with jax.disable_jit():
                return self.eager.run(*self.args)

        def compiled() -> Any:
            for _ in range(IN_A_ROW - 1):  # each is waited for: its loss is looked at
                jax.block_until_ready(self.compiled.run(*self.args))
            return self.compiled.run(*self.args)

        return {"compiled": compiled, "eager": eager}


def document_steps() -> Steps:
    """Return the model, loss, optimizer and batch of the users' guide."""
    model, params = create_test_model()
    given = model, optax.adam(LEARNING_RATE), kl_divergence_loss, test_config
    compiled = create_jax_surrogate_train_step(*given)
    eager = create_surrogate_train_step(*given)
    batch = convert_to_jax_batch(create_test_batch()).arrays
    memory = compiled.start(params)
    return Steps(compiled, eager, (params, memory, batch, jax.random.key(0)))


def step_benchmark(
    repeats: int = 20, eager: bool = False, steps: Steps | None = None
) -> list[Measurement]:
    """Time the compiled step; with `eager`, in turns with the uncompiled one."""
    steps = steps or document_steps()
    runs = steps.timed()
    if not eager:  # its first call takes a minute, for hundreds of small programs
        del runs["eager"]
    size = tree_bytes(steps.args[:2])
    taken = {"compiled": IN_A_ROW, "eager": 1}
    return [
        Measurement(name, timing, taken[name], "steps", DOCUMENT, size)
        for name, timing in compare(runs, repeats=repeats).items()
    ]


def full_data(variables: int, rows: int) -> DataConfig:
    """Return data sets that fill their bucket, a fifth of their rows interventional."""
    watched = rows * 4 // 5
    acted = rows - watched
    sizes = (variables, variables), (watched, watched), (acted, acted)
    return DataConfig((SCMConfig(),), variables, rows, *sizes)


def surrogate_benchmark(
    model: SurrogateConfig | None = None,
    variables: int = 10,
    rows: int = 64,
    batch: int = 8,
    steps: int = 2,
    repeats: int = 3,
) -> list[Measurement]:
    """Graphs per second of training, data and all, on the device."""
    model = model or SurrogateConfig(dim=64, layers=4, key_size=8)
    recipe = SurrogateRecipe(
        model=model,
        data=(full_data(variables, rows),),
        batches=(batch,),
        steps=steps,
        steps_per_update=steps,
    )
    state = start_surrogate(jax.random.key(0), recipe)
    update = compile_once(update_surrogate)
    timing = compare({"run": lambda: update(state, recipe)}, repeats=repeats, warmup=0)
    shapes = {"dim": model.dim, "layers": model.layers, "variables": variables}
    shapes |= {"rows": rows, "batch": batch, "steps": steps}
    case = f"width {model.dim}, {model.layers} layers, d={variables}"
    taken = timing["run"], batch * steps, "graphs", shapes, tree_bytes(state)
    return [Measurement(case, *taken)]


def posterior_benchmark(
    d: int = 10, rows: int = 120, repeats: int = 5, surrogate: Surrogate | None = None
) -> list[Measurement]:
    """Return the posterior of one data set by the surrogate, pooled with the rows over
    graphs, and, where it is possible, by the exact expert.
    """
    network = surrogate or load_surrogate()
    data = jax.jit(draw_dataset, static_argnums=1)(
        jax.random.key(0), full_data(d, rows)
    )
    given = np.asarray(data.values), np.asarray(data.intervened), int(data.target)
    runs = {
        "surrogate": lambda: network.posterior(*given).probabilities,
        "graphs": lambda: infer_graphs(*given[:2], surrogate=network).edge_probs,
    }
    if d <= MAX_VARIABLES["order"]:
        runs["exact"] = lambda: exact_parent_posterior(*given).probabilities
    shapes = {"variables": d, "rows": rows}
    return [
        Measurement(name, timing, 1, "posteriors", shapes, tree_bytes(network))
        for name, timing in compare(runs, repeats=repeats).items()
    ]


def grpo_benchmark(
    states: int = 16,
    group_size: int = 64,
    variables: int = 8,
    repeats: int = 3,
    surrogate: Surrogate | None = None,
) -> list[Measurement]:
    """Interventions a second of a policy that learns from groups of single
    experiments, the whole loop on the device.
    """
    network = surrogate or load_surrogate()
    plain = PolicyRecipe()
    sizes = (variables, variables)
    recipe = replace(
        plain,
        episodes=EpisodeConfig(variables=variables, sizes=sizes),
        learner=replace(plain.learner, states=states, group_size=group_size, horizon=1),
    )
    state = start_policy(jax.random.key(0), recipe, network)
    update = compile_once(update_policy)
    run = lambda: update(state, recipe, network)
    timing = compare({"run": run}, repeats=repeats, warmup=0)["run"]
    items = recipe.learner.steps_per_update
    shapes = {"states": states, "group": group_size, "variables": variables}
    case = f"GRPO, d={variables}"
    size = tree_bytes(state)
    return [Measurement(case, timing, items, "interventions", shapes, size)]


def count_compilations(
    graphs: int = 20, sizes: tuple[int, int] = (2, 4), steps: Steps | None = None
) -> dict[str, int]:
    """Count the compilations of one step over batches of different graphs."""
    steps = steps or document_steps()
    params, memory, _, key = steps.args
    for seed in range(graphs):
        random = np.random.default_rng(seed)
        count = random.integers(*sizes, endpoint=True)
        names = [f"v{each}" for each in random.choice(1_000, count, replace=False)]
        batch = convert_to_jax_batch(create_test_batch(seed=seed, names=names))
        params, memory, _ = steps.compiled(params, memory, *batch.as_args(), key)
    return {"graphs": graphs, "compilations": steps.compiled.compilations}


BENCHMARKS = (
    Benchmark("causal.step", "training steps of the users' guide", step_benchmark),
    Benchmark(
        "causal.surrogate", "surrogate training on new graphs", surrogate_benchmark
    ),
    Benchmark("causal.posterior", "posterior of one data set", posterior_benchmark),
    Benchmark("causal.grpo", "GRPO training of the policy", grpo_benchmark),
)
