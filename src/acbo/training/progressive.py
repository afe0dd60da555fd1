"""Progressive learning by name: problems of each difficulty, trained one by one."""

import logging
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import jax
import numpy as np
import optax
from jaxtyping import PyTree

from acbo.named import (
    NamedSCM,
    Sample,
    create_linear_scm,
    sample_from_scm,
)
from acbo.surrogate.losses import kl_divergence_loss
from acbo.training.batches import convert_to_jax_batch
from acbo.training.config import SurrogateTrainingConfig
from acbo.training.curriculum import DIFFICULTIES, LEVELS, classify_difficulty
from acbo.training.demonstrations import (
    example_from_samples,
    with_notes,
)
from acbo.training.examples import TrainingBatch
from acbo.training.parent_set_model import (
    ParentSetModel,
    create_parent_set_model,
)
from acbo.training.steps import TrainStep, create_jax_surrogate_train_step
from jaxrig.keys import named_key

logger = logging.getLogger(__name__)

MAX_PARENTS = 3
COEFFICIENTS = (0.5, 2.0)  # magnitudes; either sign
RANGE = (-3.0, 3.0)


def generate_scm_for_difficulty(difficulty: str, seed: int = 0) -> NamedSCM:
    """A random linear model: easy 3-5 variables, medium 5-8, hard 8-12.

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
    """Observational samples whose metadata name target and true parents."""
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
