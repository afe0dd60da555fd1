"""Problems by difficulty: random models, and their samples as examples labeled by the
exact expert; training from easy to hard; and the small model and batch that the guide
tests its step on.
"""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple, overload

import jax
import numpy as np
import optax
from jaxtyping import PyTree

from acbo.graphs import enumerate_possible_parent_sets
from acbo.named.model import NamedSCM, create_linear_scm, get_parents
from acbo.named.names import FrozenMap
from acbo.named.samples import Sample, sample_from_scm, samples_to_avici_format
from acbo.posterior.distribution import create_parent_set_posterior
from acbo.posterior.exact import MAX_VARIABLES, exact_parent_posterior
from acbo.surrogate.losses import kl_divergence_loss
from acbo.training.examples import FLAG, TrainingBatch, TrainingExample
from acbo.training.parent_set_model import (
    ParentSetModel,
    SurrogateTrainingConfig,
    create_parent_set_model,
)
from acbo.training.steps import create_jax_surrogate_train_step
from acbo.types import INTERVENED, TARGET, VALUE, check_known


class Difficulty(NamedTuple):
    """Bounds of the sizes, edges and noise of a problem."""

    variables: tuple[int, int]
    edges: tuple[int, int]
    noise: tuple[float, float]


DIFFICULTIES = {
    "easy": Difficulty((3, 5), (2, 4), (0.1, 0.3)),
    "medium": Difficulty((5, 8), (4, 8), (0.3, 0.6)),
    "hard": Difficulty((8, 12), (8, 15), (0.6, 1.0)),
}
MAX_PARENTS = 3
COEFFICIENTS = (0.5, 2.0)  # magnitudes; either sign
RANGE = (-3.0, 3.0)


def classify_difficulty(n_nodes: int, expert_accuracy: float = 1.0) -> str:
    """Return "easy" for at most 5 nodes and an expert above 0.9, "medium" for at most 8
    and above 0.7, else "hard".
    """
    if n_nodes <= 5 and expert_accuracy > 0.9:
        return "easy"
    return "medium" if n_nodes <= 8 and expert_accuracy > 0.7 else "hard"


def generate_scm_for_difficulty(difficulty: str, seed: int = 0) -> NamedSCM:
    """Return a random linear model: easy 3-5 variables, medium 5-8, hard 8-12.

    Harder models have more edges and noise too; no variable has more than three
    parents, and the target has at least one.
    """
    check_known(difficulty, DIFFICULTIES, "difficulty")
    level = DIFFICULTIES[difficulty]
    random = np.random.default_rng([seed, list(DIFFICULTIES).index(difficulty)])
    names = tuple(
        f"X{i}" for i in range(random.integers(*level.variables, endpoint=True))
    )
    order = random.permutation(len(names))
    pairs = [(a, b) for at, b in enumerate(order) for a in order[:at]]
    wanted = int(random.integers(*level.edges, endpoint=True))
    chosen: list[tuple[int, int]] = []
    for place in random.permutation(len(pairs)):
        cause, effect = pairs[place]
        if len(chosen) < wanted and sum(e == effect for _, e in chosen) < MAX_PARENTS:
            chosen.append((cause, effect))
    size = random.uniform(*COEFFICIENTS, len(chosen)) * random.choice(
        [-1, 1], len(chosen)
    )
    weights = {
        (names[a], names[b]): float(w) for (a, b), w in zip(chosen, size, strict=True)
    }
    target = names[int(random.choice(sorted({effect for _, effect in chosen})))]
    noise = {name: float(random.uniform(*level.noise)) for name in names}
    ranges = {name: RANGE for name in names if name != target}
    return create_linear_scm(names, weights, target, ranges, noise_scales=noise)


def collect_observational_data(
    scm: NamedSCM, n_samples: int = 50, seed: int = 0
) -> list[Sample]:
    """Return observational samples whose metadata name target and true parents."""
    target = scm.target_name
    if target is None:
        raise ValueError("the model has no target: create_scm(..., target=name)")
    parents = tuple(sorted(get_parents(scm, target)))
    notes = FrozenMap({"target": target, "true_parents": parents})
    drawn = sample_from_scm(scm, n_samples, seed)
    return [replace(sample, metadata=notes) for sample in drawn]


@overload
def create_training_batch(
    samples: Sequence[Sample], target_variable: str | None = None, /
) -> TrainingBatch: ...
@overload
def create_training_batch(
    scm: NamedSCM,
    samples: Sequence[Sample],
    target_variable: str | None = None,
    standardize: bool = True,
    is_count_data: bool = False,
) -> dict[str, Any]: ...
def create_training_batch(
    scm: Any,
    samples: Any = None,
    target_variable: str | None = None,
    standardize: bool = True,
    is_count_data: bool = False,
) -> TrainingBatch | dict[str, Any]:
    """Return a batch of one example: the samples, labeled by the exact posterior of a
    linear-Gaussian model, which averages over all graphs.

    The target defaults to the `target` in the metadata of the samples. The accuracy of
    the expert is its probability of the `true_parents` there, or of its likeliest set
    where the truth is unknown. Given a model and its samples, return a dictionary with
    the data tensor `x`, the true adjacency `g` and a description of them.
    """
    if not isinstance(scm, NamedSCM):
        return TrainingBatch([_example_of(scm, target_variable or samples)])
    names, target = list(scm.names), target_variable or scm.target_name
    kind = "count" if is_count_data else "default"
    return {
        "x": samples_to_avici_format(samples, names, target, standardize, kind),
        "g": np.array([[(a, b) in scm.edges for b in names] for a in names]),
        "is_count_data": is_count_data,
        "target_variable": target,
        "variable_order": names,
        "metadata": {
            "n_samples": len(samples),
            "n_variables": len(names),
            "standardization_type": kind if standardize else "none",
        },
    }


def _example_of(
    samples: Sequence[Sample], target_variable: str | None
) -> TrainingExample:
    notes = samples[0].metadata if samples else {}
    target = target_variable or notes.get("target")
    if target is None:
        raise ValueError(
            "the target is unknown: pass target_variable, or create the samples "
            "with collect_observational_data"
        )
    names = sorted(samples[0].values)
    x = samples_to_avici_format(samples, names, target)
    data = np.asarray(x)
    expert = exact_parent_posterior(
        *(data[..., VALUE], data[..., INTERVENED] > FLAG, target),
        max_parents=MAX_PARENTS,
        # Each graph counts once where so many variables allow it, else once per order.
        prior="dag" if len(names) <= MAX_VARIABLES["dag"] else "order",
        names=names,
    )
    info = {"n_nodes": len(names), "target": target}
    accuracy = expert.top_k_sets[0][1]
    if "true_parents" in notes:
        info["true_parents"] = notes["true_parents"]
        accuracy = expert.parent_set_probs.get(frozenset(notes["true_parents"]), 0.0)
    difficulty = classify_difficulty(len(names), accuracy)
    return TrainingExample(x, target, names, expert, accuracy, info, difficulty)


def optimized_progressive_learning(
    scms: Sequence[NamedSCM], config: SurrogateTrainingConfig, seed: int = 0
) -> tuple[PyTree, dict[str, dict[str, Any]]]:
    """Train on easy, then medium, then hard models with one compiled step.

    The difficulty of a model is that of its size; a difficulty without any gets a
    random one. An epoch goes through all models, `batch_size` at a time. Every
    `validation_frequency` epochs the loss on fresh rows of the same models is looked
    at, and a difficulty ends early when it was not the lowest so far
    `early_stopping_patience` times in a row. Return the parameters and, by difficulty,
    seconds, the mean loss of every epoch and the validation losses.
    """
    model = create_parent_set_model(config.get_model_kwargs())
    optimizer = optax.adam(config.learning_rate)
    step = create_jax_surrogate_train_step(model, optimizer, kl_divergence_loss, config)
    key = jax.random.key(seed)
    params = model.init(key)
    opt_state, history = step.start(params), {}
    for place, name in enumerate(DIFFICULTIES):
        start = perf_counter()
        given = [scm for scm in scms if classify_difficulty(len(scm.names)) == name]
        chosen = given or [generate_scm_for_difficulty(name, seed)]
        batches = _batches(chosen, seed, config.batch_size)
        fresh: list[TrainingBatch] = []
        losses, checks = [], []
        for epoch in range(config.max_epochs):
            draw = jax.random.fold_in(key, place * config.max_epochs + epoch)
            if epoch and epoch % config.validation_frequency == 0:
                fresh = fresh or _batches(chosen, seed + 1, config.batch_size)
                # Metrics are of the parameters before the step, which is not kept.
                found = [step(params, opt_state, each, draw)[2] for each in fresh]
                checks.append(float(np.mean([each["kl_loss"] for each in found])))
                if len(checks) - np.argmin(checks) > config.early_stopping_patience:
                    break
            epoch_losses = []
            for batch in batches:
                params, opt_state, metrics = step(params, opt_state, batch, draw)
                epoch_losses.append(metrics["total_loss"])
            losses.append(float(np.mean(epoch_losses)))
        seconds = perf_counter() - start
        history[name] = {
            "seconds": seconds,
            "losses": losses,
            "validation_losses": checks,
        }
    return params, history


def _batches(scms: Sequence[NamedSCM], seed: int, size: int) -> list[TrainingBatch]:
    """Return labeled rows of all models, in batches of at most so many."""
    samples = [collect_observational_data(scm, seed=seed) for scm in scms]
    examples = [_example_of(each, None) for each in samples]
    return [
        TrainingBatch(examples[first : first + size])
        for first in range(0, len(examples), size)
    ]


test_config = SurrogateTrainingConfig(
    model_hidden_dim=16, model_n_layers=2, dropout=0.0
)


def create_test_model(
    config: SurrogateTrainingConfig = test_config, seed: int = 0
) -> tuple[ParentSetModel, PyTree]:
    """Return a small model and its first parameters."""
    model = create_parent_set_model(config.get_model_kwargs())
    return model, model.init(jax.random.key(seed))


def create_test_batch(
    n_examples: int = 3,
    n_samples: int = 20,
    seed: int = 0,
    names: Sequence[str] = ("X", "Y", "Z"),
) -> TrainingBatch:
    """Return examples in which the first variable causes the second, the target, and
    the others stand apart, with a made-up expert.
    """
    random, d = np.random.default_rng(seed), len(names)
    cause, target = names[:2]
    sets = enumerate_possible_parent_sets(names, target)
    truth = frozenset([cause])
    odds = [6.0 if one == truth else 2.0 if one > truth else 1.0 for one in sets]
    examples = []
    for _ in range(n_examples):
        data = np.zeros((n_samples, d, 3), np.float32)
        data[..., VALUE] = random.normal(size=(n_samples, d))
        data[:, 1, VALUE] += data[:, 0, VALUE]
        data[:, 1, TARGET] = 1.0
        chances = random.dirichlet(odds)
        expert = create_parent_set_posterior(target, sets, chances)
        accuracy = float(chances[sets.index(truth)])
        info = {"n_nodes": d, "true_parents": (cause,)}
        given = data, target, list(names), expert, accuracy, info, "easy"
        examples.append(TrainingExample(*given))
    return TrainingBatch(examples)
