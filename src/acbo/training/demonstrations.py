"""Examples from samples: data as the surrogate takes it, labeled by the exact expert.

The expert averages over all graphs of a linear-Gaussian model, so its posterior is
what a surrogate would best learn to give in one pass.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from acbo.experts.exact import LARGEST, exact_parent_posterior
from acbo.named import FrozenMap, NamedSCM, Sample, samples_to_avici_format
from acbo.named.relations import get_parents
from acbo.posterior import ParentSetPosterior
from acbo.training.codec import FLAG
from acbo.training.curriculum import classify_difficulty
from acbo.training.examples import TrainingBatch, TrainingExample
from acbo.types import INTERVENED, VALUE


def expert_posterior(
    x: Float[Array, "N d 3"] | np.ndarray,
    variable_order: Sequence[str],
    target_variable: str,
    max_parents: int = 3,
) -> ParentSetPosterior:
    """The exact posterior over parent sets of a linear-Gaussian model, by name.

    Each graph counts once where so many variables allow it, else once for each order.
    """
    names, data = list(variable_order), np.asarray(x)
    return exact_parent_posterior(
        *(data[..., VALUE], data[..., INTERVENED] > FLAG, target_variable),
        max_parents=max_parents,
        prior="dag" if len(names) <= LARGEST["dag"] else "order",
        names=names,
    )


def example_from_samples(
    samples: Sequence[Sample],
    target_variable: str | None = None,
    *,
    true_parents: Sequence[str] | frozenset[str] | None = None,
    max_parents: int = 3,
) -> TrainingExample:
    """One example: the samples' data tensor and the exact expert's posterior.

    Target and true parents default to the `target` and `true_parents` in the metadata
    of the samples. The accuracy of the expert is its probability of the true set, or
    of its likeliest where the truth is unknown.
    """
    notes = samples[0].metadata if samples else {}
    target = target_variable or notes.get("target")
    if target is None:
        raise ValueError(
            "nothing says which variable is the target: pass target_variable, or make "
            "the samples with collect_observational_data"
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


def create_training_batch(
    samples: Sequence[Sample], target_variable: str | None = None
) -> TrainingBatch:
    """Return a batch of one example: the samples, labeled by the exact expert."""
    return TrainingBatch([example_from_samples(samples, target_variable)])


def with_notes(samples: Sequence[Sample], scm: NamedSCM) -> list[Sample]:
    """The samples with target and true parents of their model in the metadata."""
    target = scm.target_name
    if target is None:
        raise ValueError("the model has no target: create_scm(..., target=name)")
    parents = tuple(sorted(get_parents(scm, target)))
    notes = {"target": target, "true_parents": parents}
    return [replace(s, metadata=FrozenMap({**s.metadata, **notes})) for s in samples]
