"""What causal optimization costs: training steps, posteriors, and experiments.

Data are made inside what is measured wherever training makes them itself.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np
import optax

from acbo.graphs import enumerate_possible_parent_sets
from acbo.policy.rl_environment import EpisodeConfig
from acbo.posterior.distribution import create_parent_set_posterior
from acbo.posterior.exact import MAX_VARIABLES, exact_parent_posterior
from acbo.random_models import DataConfig
from acbo.surrogate.losses import kl_divergence_loss
from acbo.surrogate.model import SurrogateConfig
from acbo.surrogate.predictor import Surrogate, load_surrogate
from acbo.training.difficulty import create_test_batch, create_test_model, test_config
from acbo.training.examples import TrainingBatch, TrainingExample, convert_to_jax_batch
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
from acbo.types import TARGET, VALUE
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


@dataclass(frozen=True)
class Training:
    """Sizes of a surrogate that is trained for a while; heads share its width."""

    dim: int = 64
    layers: int = 4
    variables: int = 10
    rows: int = 64
    batch: int = 8
    steps: int = 2
    model: SurrogateConfig = field(default_factory=SurrogateConfig)

    def recipe(self) -> SurrogateRecipe:
        """Return the recipe of one update of `steps` steps; every data set is full."""
        watched = self.rows * 4 // 5
        data = DataConfig(
            variables=self.variables,
            rows=self.rows,
            sizes=(self.variables, self.variables),
            observational=(watched, watched),
            interventional=(self.rows - watched, self.rows - watched),
        )
        model = replace(
            self.model,
            dim=self.dim,
            layers=self.layers,
            key_size=max(self.dim // self.model.heads, 1),
        )
        return SurrogateRecipe(
            model=model,
            data=(data,),
            batches=(self.batch,),
            steps=self.steps,
            steps_per_update=self.steps,
        )

    def shapes(self) -> dict[str, int]:
        """Return the sizes for a record."""
        return {name: size for name, size in vars(self).items() if name != "model"}


def surrogate_benchmark(
    training: Training | None = None, repeats: int = 3
) -> list[Measurement]:
    """Graphs per second of training, data and all, on the device."""
    training = training or Training()
    recipe = training.recipe()
    state = start_surrogate(jax.random.key(0), recipe)
    update = compile_once(update_surrogate)
    timing = compare({"run": lambda: update(state, recipe)}, repeats=repeats, warmup=0)
    graphs = training.batch * training.steps
    return [
        Measurement(
            f"width {training.dim}, {training.layers} layers, d={training.variables}",
            timing["run"],
            graphs,
            "graphs",
            training.shapes(),
            tree_bytes(state),
        )
    ]


def linear_rows(d: int, rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of a random linear model, and which cells were set."""
    random = np.random.default_rng(seed)
    weights = np.triu(random.normal(size=(d, d)) * (random.random((d, d)) < 0.3), 1)
    intervened = np.zeros((rows, d), bool)
    acted = np.arange(rows * 4 // 5, rows)
    intervened[acted, random.integers(0, d - 1, len(acted))] = True
    values = np.zeros((rows, d))
    for j in range(d):
        values[:, j] = values @ weights[:, j] + random.normal(size=rows)
        forced = intervened[:, j]
        values[forced, j] = random.choice([-2.0, 2.0], int(forced.sum()))
    return values, intervened


def posterior_benchmark(
    d: int = 10, rows: int = 120, repeats: int = 5, surrogate: Surrogate | None = None
) -> list[Measurement]:
    """Return the posterior of one data set by the surrogate and, where it is possible,
    by the exact expert.
    """
    network = surrogate or load_surrogate()
    values, intervened = linear_rows(d, rows)
    given = values, intervened, d - 1
    runs = {"surrogate": lambda: network.posterior(*given).probabilities}
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


def graph_batch(seed: int, sizes: tuple[int, int]) -> TrainingBatch:
    """Return a batch of the guide's size with random names, sizes and experts."""
    random = np.random.default_rng(seed)
    rows, examples = DOCUMENT["rows"], []
    for _ in range(DOCUMENT["examples"]):
        d = int(random.integers(sizes[0], sizes[1] + 1))
        names = [f"v{number}" for number in random.choice(1_000, d, replace=False)]
        target = int(random.integers(d))
        x = np.zeros((rows, d, 3), np.float32)
        x[..., VALUE] = random.normal(size=(rows, d))
        x[:, target, TARGET] = 1.0
        sets = enumerate_possible_parent_sets(names, names[target])
        chances = random.dirichlet(np.ones(len(sets)))
        expert = create_parent_set_posterior(names[target], sets, chances)
        examples.append(TrainingExample(x, names[target], names, expert, 1.0))
    return TrainingBatch(examples)


def count_compilations(
    graphs: int = 20, sizes: tuple[int, int] = (2, 4), steps: Steps | None = None
) -> dict[str, int]:
    """Count the compilations of one step over batches of different graphs."""
    steps = steps or document_steps()
    params, memory, _, key = steps.args
    for seed in range(graphs):
        batch = convert_to_jax_batch(graph_batch(seed, sizes))
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
