"""Training by difficulty: random models, their samples labeled by the exact expert, and
the guide's loop over easy, medium and hard problems.

The expert averages over all graphs of a linear-Gaussian model, so its posterior is
what a surrogate would best learn to give in one pass.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, overload

import jax
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree

from acbo.named.model import NamedSCM, create_linear_scm, get_parents
from acbo.named.names import Codec, FrozenMap
from acbo.named.samples import Sample, sample_from_scm
from acbo.named.tables import samples_to_avici_format
from acbo.posterior.distribution import ParentSetPosterior, create_parent_set_posterior
from acbo.posterior.exact import MAX_VARIABLES, exact_parent_posterior
from acbo.surrogate.losses import kl_divergence_loss
from acbo.training.config import SurrogateTrainingConfig
from acbo.training.curriculum import DIFFICULTIES, LEVELS, classify_difficulty
from acbo.training.examples import (
    FLAG,
    TrainingBatch,
    TrainingExample,
    convert_to_jax_batch,
)
from acbo.training.parent_set_model import (
    ParentSetModel,
    create_parent_set_model,
)
from acbo.training.steps import TrainStep, create_jax_surrogate_train_step
from acbo.types import INTERVENED, TARGET, VALUE
from jaxrig.keys import named_key


def expert_posterior(
    x: Float[Array, "N d 3"] | np.ndarray,
    variable_order: Sequence[str],
    target_variable: str,
    max_parents: int = 3,
) -> ParentSetPosterior:
    """Return the exact posterior over parent sets of a linear-Gaussian model, by name.

    Each graph counts once where so many variables allow it, else once for each order.
    """
    names, data = list(variable_order), np.asarray(x)
    return exact_parent_posterior(
        *(data[..., VALUE], data[..., INTERVENED] > FLAG, target_variable),
        max_parents=max_parents,
        prior="dag" if len(names) <= MAX_VARIABLES["dag"] else "order",
        names=names,
    )


def example_from_samples(
    samples: Sequence[Sample],
    target_variable: str | None = None,
    *,
    true_parents: Sequence[str] | frozenset[str] | None = None,
    max_parents: int = 3,
) -> TrainingExample:
    """Return one example: the samples' data tensor and the exact expert's posterior.

    Target and true parents default to the `target` and `true_parents` in the metadata
    of the samples. The accuracy of the expert is its probability of the true set, or
    of its likeliest where the truth is unknown.
    """
    notes = samples[0].metadata if samples else {}
    target = target_variable or notes.get("target")
    if target is None:
        raise ValueError(
            "the target is unknown: pass target_variable, or create the samples "
            "with collect_observational_data"
        )
    names = sorted(samples[0].values)
    known = notes.get("true_parents") if true_parents is None else true_parents
    x = samples_to_avici_format(samples, names, target)
    expert = expert_posterior(x, names, target, max_parents)
    accuracy = expert.top_k_sets[0][1]
    if known is not None:
        accuracy = expert.parent_set_probs.get(frozenset(known), 0.0)
    info: dict[str, Any] = {"n_nodes": len(names), "target": target}
    if known is not None:
        info["true_parents"] = tuple(sorted(known))
    return TrainingExample(
        *(x, target, names, expert, accuracy, info),
        classify_difficulty(len(names), accuracy),
    )


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
    """Return a batch of one example: the samples, labeled by the exact expert.

    Given a model and its samples, return a dictionary with the data tensor `x`, the
    true adjacency `g` and a description of them.
    """
    if not isinstance(scm, NamedSCM):
        return TrainingBatch([example_from_samples(scm, target_variable or samples)])
    names, target = list(scm.names), target_variable or scm.target_name
    kind = "count" if is_count_data else "default"
    return {
        "x": samples_to_avici_format(samples, names, target, standardize, kind),
        "g": Codec(scm.names).adjacency(scm.edges),
        "is_count_data": is_count_data,
        "target_variable": target,
        "variable_order": names,
        "metadata": {
            "n_samples": len(samples),
            "n_variables": len(names),
            "standardization_type": kind if standardize else "none",
        },
    }


def with_notes(samples: Sequence[Sample], scm: NamedSCM) -> list[Sample]:
    """Return the samples with target and true parents of their model in the
    metadata.
    """
    target = scm.target_name
    if target is None:
        raise ValueError("the model has no target: create_scm(..., target=name)")
    parents = tuple(sorted(get_parents(scm, target)))
    notes = {"target": target, "true_parents": parents}
    return [replace(s, metadata=FrozenMap({**s.metadata, **notes})) for s in samples]


logger = logging.getLogger(__name__)

MAX_PARENTS = 3
COEFFICIENTS = (0.5, 2.0)  # magnitudes; either sign
RANGE = (-3.0, 3.0)


def generate_scm_for_difficulty(difficulty: str, seed: int = 0) -> NamedSCM:
    """Return a random linear model: easy 3-5 variables, medium 5-8, hard 8-12.

    Edges and noise follow the curriculum's levels; no variable has more than three
    parents, and the target has at least one.
    """
    if difficulty not in DIFFICULTIES:
        allowed = ", ".join(DIFFICULTIES)
        raise ValueError(f"difficulty={difficulty!r} is not one of: {allowed}")
    level = LEVELS[DIFFICULTIES.index(difficulty)]
    random = np.random.default_rng([seed, DIFFICULTIES.index(difficulty)])
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
    return with_notes(sample_from_scm(scm, n_samples, seed), scm)


def _train(
    step: TrainStep, batch: TrainingBatch, params: PyTree, epochs: int, seed: int
) -> tuple[PyTree, list[float]]:
    arrays = convert_to_jax_batch(batch).arrays
    key, state, found = jax.random.key(seed), step.start(params), []
    for epoch in range(epochs):
        own = jax.random.fold_in(key, epoch)
        params, state, metrics = step.run(params, state, arrays, own)
        found.append(metrics["total_loss"])
    return params, [float(loss) for loss in jax.device_get(found)]


def optimized_progressive_learning(
    scms: Mapping[str, NamedSCM] | Sequence[NamedSCM],
    config: SurrogateTrainingConfig,
    *,
    model: ParentSetModel | None = None,
    seed: int = 0,
) -> tuple[PyTree, dict[str, dict[str, Any]]]:
    """Train on easy, then medium, then hard problems with one compiled step.

    `scms` gives a model by difficulty, or a list whose difficulties are those of
    their sizes; a difficulty without any gets a random model. Returns parameters and,
    by difficulty, seconds and losses.
    """
    net = create_parent_set_model(config.get_model_kwargs()) if model is None else model
    step = create_jax_surrogate_train_step(
        net, optax.adam(config.learning_rate), kl_divergence_loss, config
    )
    params = net.init(named_key(jax.random.key(seed), "parameters"))
    given = _by_difficulty(scms)
    history = {}
    for place, difficulty in enumerate(DIFFICULTIES):
        start = perf_counter()
        models = given.get(difficulty) or [
            generate_scm_for_difficulty(difficulty, seed)
        ]
        samples = [collect_observational_data(scm, seed=seed) for scm in models]
        batch = TrainingBatch([example_from_samples(each) for each in samples])
        params, losses = _train(step, batch, params, config.max_epochs, seed + place)
        seconds = perf_counter() - start
        logger.info("Difficulty %s: %.2fs", difficulty, seconds)
        history[difficulty] = {"seconds": seconds, "losses": losses}
    return params, history


def _by_difficulty(
    scms: Mapping[str, NamedSCM] | Sequence[NamedSCM],
) -> dict[str, list[NamedSCM]]:
    if isinstance(scms, Mapping):
        return {name: [scm] for name, scm in scms.items()}
    found: dict[str, list[NamedSCM]] = {}
    for scm in scms:
        found.setdefault(classify_difficulty(len(scm.names)), []).append(scm)
    return found


test_config = SurrogateTrainingConfig(
    model_hidden_dim=16, model_n_layers=2, dropout=0.0, batch_size=3
)


def create_test_model(
    config: SurrogateTrainingConfig = test_config, seed: int = 0
) -> tuple[ParentSetModel, PyTree]:
    """Return a small model and its first parameters."""
    model = create_parent_set_model(config.get_model_kwargs())
    return model, model.init(jax.random.key(seed))


def create_test_batch(
    n_examples: int = 3, n_samples: int = 20, seed: int = 0
) -> TrainingBatch:
    """Return examples of three variables: Y = X + noise, Z apart, and a made-up
    expert.
    """
    random = np.random.default_rng(seed)
    names = ["X", "Y", "Z"]
    sets = [frozenset(), frozenset("X"), frozenset("Z"), frozenset("XZ")]
    examples = []
    for _ in range(n_examples):
        data = np.zeros((n_samples, 3, 3), np.float32)
        data[..., VALUE] = random.normal(size=(n_samples, 3))
        data[:, 1, VALUE] += data[:, 0, VALUE]
        data[:, 1, TARGET] = 1.0
        chances = random.dirichlet([1.0, 6.0, 1.0, 2.0])
        examples.append(
            TrainingExample(
                observational_data=data,
                target_variable="Y",
                variable_order=names,
                expert_posterior=create_parent_set_posterior("Y", sets, chances),
                expert_accuracy=float(chances[1]),
                scm_info={"n_nodes": 3, "true_parents": ("X",)},
                problem_difficulty="easy",
            )
        )
    return TrainingBatch(examples)
