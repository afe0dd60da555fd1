"""What is true of an episode: labels for the surrogate, and how well it went."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from acbo.environment import Action
from acbo.graphs.parent_sets import bucket_parent_sets
from acbo.policy.environment import Episode
from acbo.scm import SCM
from acbo.training.codec import UNKNOWN, BatchArrays, Example

CALLED = 0.5  # probability from which a variable counts as a cause


class Standing(eqx.Module):
    """How an episode went: share of the interventions on true causes, F1 and share of
    right calls of the causes at its end, and how much the best expected outcome
    improved, in deviations of the target.
    """

    parent_rate: Float[Array, "*batch"]
    f1: Float[Array, "*batch"]
    accuracy: Float[Array, "*batch"]
    improvement: Float[Array, "*batch"]


def label_history(episode: Episode, max_parents: int) -> BatchArrays:
    """The rows of an episode with the true causes of its target as the expert.

    A true set above `max_parents` is shared out among its largest subsets.
    """
    scm, history = episode.scm, episode.history
    set_mask, held = bucket_parent_sets(scm.mask, scm.target, max_parents)
    causes = scm.adjacency[:, scm.target]
    inside = set_mask & ~(held & ~causes[None]).any(axis=1)
    size = jnp.where(inside, held.sum(axis=1), -1)
    largest = (size == size.max()).astype(jnp.float32)
    same = set_mask & (held == causes[None]).all(axis=1)
    example = Example(
        *(history.values, history.intervened, history.row_mask),
        *(scm.mask, scm.target, held, set_mask),
    )
    return BatchArrays(
        example,
        largest / largest.sum(),
        jnp.asarray(1.0),
        jnp.where(same.any(), same.argmax(), UNKNOWN),
    )


def parent_scores(
    chance: Float[Array, " d"], scm: SCM
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """F1 of the causes called by their probabilities, and the share called right."""
    others = scm.mask & (jnp.arange(scm.size) != scm.target)
    truth, called = scm.adjacency[:, scm.target], (chance > CALLED) & others
    count = lambda flags: flags.sum().astype(jnp.float32)
    total = count(called) + count(truth)
    f1 = 2 * count(called & truth) / jnp.maximum(total, 1.0)
    return f1, count((called == truth) & others) / jnp.maximum(count(others), 1.0)


def standing_of(start: Episode, end: Episode, actions: Action) -> Standing:
    """How an episode went, from its start, its end and what was done."""
    rate = start.scm.adjacency[actions.variable, start.scm.target].mean()
    gain = start.summary.best_value - end.summary.best_value
    scores = parent_scores(end.summary.parent_probs, start.scm)
    return Standing(rate, *scores, gain / end.scale)
