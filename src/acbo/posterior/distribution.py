"""Distributions over the parent sets of one target, and over graphs, with names; they
never change.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Bool, Float

from acbo.posterior.inputs import Fit
from acbo.types import find_column, import_extra
from jaxrig.notebook import Shown

ParentSet = frozenset[str]

SUM_TOLERANCE = 0.05
ENTROPY_TOLERANCE = 0.01  # nats
# Beyond it the rows alone were nearer to the truth than the network on nine of ten
# random tables (`benchmarks/causal_table.py --flags`).
USUAL_DISCREPANCY = 2.0
RARE_SET = 1e-9  # sets of causes less likely than this are not listed


@dataclass(frozen=True)
class ParentSetPosterior(Shown):
    """Which sets of variables may be the direct causes of a target, and how likely.

    `uncertainty` is the entropy in nats; `top_k_sets` lists sets with their
    probabilities, the likeliest first. Made by `create_parent_set_posterior`.
    """

    shown_by: ClassVar[str] = "acbo.pictures.charts:show_parent_sets"
    target_variable: str
    parent_set_probs: Mapping[ParentSet, float]
    uncertainty: float
    top_k_sets: Sequence[tuple[ParentSet, float]]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        freeze = lambda mapping: MappingProxyType(dict(mapping))
        object.__setattr__(self, "parent_set_probs", freeze(self.parent_set_probs))
        object.__setattr__(self, "top_k_sets", tuple(self.top_k_sets))
        object.__setattr__(self, "metadata", freeze(self.metadata))
        _check(self.target_variable, self.parent_sets, self.probabilities)
        most = np.log(len(self.parent_set_probs))
        if not 0 <= self.uncertainty <= most + ENTROPY_TOLERANCE:
            raise ValueError(
                f"uncertainty={self.uncertainty} is not an entropy of "
                f"{len(self.parent_set_probs)} sets: give 0 to {most:.6g} nats"
            )

    def __reduce__(self):
        # Read-only mappings cannot be pickled: rebuild from plain ones.
        plain = (dict(self.parent_set_probs), self.uncertainty, self.top_k_sets)
        return (type(self), (self.target_variable, *plain, dict(self.metadata)))

    @cached_property
    def parent_sets(self) -> tuple[ParentSet, ...]:
        """Return the candidate sets, in the order of `probabilities`."""
        return tuple(self.parent_set_probs)

    @cached_property
    def probabilities(self) -> np.ndarray:
        """Return the probability of every set, as a read-only array."""
        found = np.fromiter(self.parent_set_probs.values(), float)
        found.setflags(write=False)
        return found

    @property
    def entropy(self) -> float:
        """Return the entropy in nats; another name of `uncertainty`."""
        return self.uncertainty

    def parent_probs(
        self, all_variables: Collection[str] | None = None
    ) -> dict[str, float]:
        """Return P(variable is a direct cause of the target) for every other variable.

        Without `all_variables`: those the metadata names, or else those in the sets.
        """
        members = [name for chosen in self.parent_sets for name in chosen]
        listed = all_variables
        if listed is None:
            listed = self.metadata.get("all_variables") or sorted(set(members))
        names = [name for name in listed if name != self.target_variable]
        place = {name: i for i, name in enumerate(names)}
        sizes = [len(chosen) for chosen in self.parent_sets]
        codes = np.array([place.get(name, len(names)) for name in members], int)
        weights = np.repeat(self.probabilities, sizes)
        total = np.bincount(codes, weights, minlength=len(names) + 1)
        found = np.clip(total[: len(names)], 0.0, 1.0)  # rounding, not probability
        return dict(zip(names, found.tolist(), strict=True))

    def top_sets(self, k: int = 1) -> list[tuple[ParentSet, float]]:
        """Return the k likeliest sets with their probabilities, the likeliest first."""
        if k <= 0:
            raise ValueError(f"k={k} must be at least 1")
        return list(self.top_k_sets[:k])

    def log_prob(self, parents: Iterable[str]) -> float:
        """Return the log probability of a set; -inf for one that cannot be."""
        if isinstance(parents, str):
            raise TypeError(f"{parents!r} is a string: give a set of names")
        found = self.parent_set_probs.get(frozenset(parents), 0.0)
        return float(np.log(found)) if found > 0 else -np.inf

    def sample(self, key: jax.Array) -> ParentSet:
        """Draw a parent set from the posterior with a JAX random key."""
        # On the host, by inversion: the sets have names, and there are few draws.
        bounds = np.cumsum(self.probabilities)
        point = float(jax.random.uniform(key)) * bounds[-1]
        place = int(np.searchsorted(bounds, point, side="right"))
        return self.parent_sets[min(place, len(bounds) - 1)]

    def to_networkx(self, threshold: float = 0.5) -> Any:
        """Return a networkx digraph with an edge from every parent above `threshold`.

        Edges carry their probability as attribute `probability`.
        """
        graph = import_extra("networkx", "digraphs").DiGraph()
        chances = self.parent_probs()
        graph.add_nodes_from([*chances, self.target_variable])
        for name, chance in chances.items():
            if chance > threshold:
                graph.add_edge(name, self.target_variable, probability=chance)
        return graph


def create_parent_set_posterior(
    target_variable: str,
    parent_sets: Iterable[Iterable[str]],
    probabilities: Any,
    metadata: Mapping[str, Any] | None = None,
) -> ParentSetPosterior:
    """Return a posterior from sets and probabilities, which are scaled to sum to one.

    Metadata gains the number of sets, the sum as given, and the extremes.

    >>> post = create_parent_set_posterior("Y", [[], ["X"]], [0.2, 0.8])
    >>> post.top_sets(1), post.parent_probs()
    ([(frozenset({'X'}), 0.8)], {'X': 0.8})
    """
    sets = [frozenset(chosen) for chosen in parent_sets]
    given = np.asarray(probabilities, float)
    if given.shape != (len(sets),):
        raise ValueError(
            f"probabilities of shape {given.shape} do not go with {len(sets)} parent "
            "sets: give one number for each"
        )
    if len(set(sets)) != len(sets):
        twice = next(s for i, s in enumerate(sets) if s in sets[:i])
        raise ValueError(f"the parent set {sorted(twice)} is given twice: merge them")
    _check(target_variable, sets, given)
    total = float(given.sum())
    chances = given if abs(total - 1) < 1e-12 else given / total
    order = np.argsort(-chances, kind="stable").tolist()
    listed = chances.tolist()
    positive = chances[chances > 0]  # the entropy's limit at 0 is 0
    return ParentSetPosterior(
        target_variable,
        dict(zip(sets, listed, strict=True)),
        max(0.0, float(-np.sum(positive * np.log(positive)))),
        [(sets[i], listed[i]) for i in order],
        {
            **(metadata or {}),
            "n_parent_sets": len(sets),
            "probability_sum": total,
            "max_probability": max(listed),
            "min_probability": min(listed),
        },
    )


def _check(target: str, sets: Collection[ParentSet], given: np.ndarray) -> None:
    if not target:
        raise ValueError("target_variable is empty: name the target")
    if not sets:
        raise ValueError("there is no parent set: give at least the empty one")
    for chosen, chance in zip(sets, given, strict=True):
        if target in chosen:
            raise ValueError(
                f"the target {target!r} is in the parent set {sorted(chosen)}: nothing "
                "causes itself, leave it out"
            )
        if chance < 0:
            raise ValueError(
                f"the parent set {sorted(chosen)} has negative probability "
                f"{chance}: give 0 or more"
            )
    if not abs(given.sum() - 1) <= SUM_TOLERANCE:
        raise ValueError(
            f"probabilities sum to {given.sum():.6g}: give a distribution, which sums "
            "to 1"
        )


def _descendants(graphs: Bool[np.ndarray, "s d d"]) -> Bool[np.ndarray, "s d d"]:
    """Return which variables a path leads to, from each variable of each graph."""
    count, d, _ = graphs.shape
    # 64 flags to a word: Warshall's algorithm then reads a row in a few words, where
    # powers of matrices take minutes for hundreds of variables.
    flags = np.zeros((count, d, 8 * math.ceil(d / 64)), np.uint8)
    packed = np.packbits(graphs, axis=2, bitorder="little")
    flags[:, :, : packed.shape[2]] = packed
    words = flags.view(np.uint64)
    for k in range(d):
        through = (flags[:, :, k // 8] >> (k % 8)) & 1
        words |= words[:, k, None] * through[:, :, None]
    reached = np.unpackbits(flags, axis=2, count=d, bitorder="little")
    return reached.astype(bool)


def name_edges(edge_probs: Float[np.ndarray, "d d"]) -> Bool[np.ndarray, "d d"]:
    """Return the edges of the highest expected F1.

    Where a direction is open, both may be among them: the threshold of highest F1 is
    half of that F1 (Lipton, Elkan & Naryanaswamy, 2014), not one half.
    """
    ranked = np.sort(edge_probs, axis=None)[::-1]
    named = np.arange(1, ranked.size + 1)
    expected = 2 * np.cumsum(ranked) / (named + ranked.sum())
    return edge_probs >= max(ranked[expected.argmax()], 1e-9)


@dataclass(frozen=True)
class GraphPosterior(Shown):
    """Graphs sampled from the posterior, [samples, cause, effect].

    `edge_probs[i, j]` is P(i causes j directly), averaged exactly over the graphs of
    each order; it is the sum of the probabilities of the sets of causes that hold i.
    Bit k of a set's number stands for `candidates[j, k]`, of which `len(names)` marks
    an unused place. `confounded_probs[i, j]` is P(a hidden cause of both makes i and j
    go together, and neither causes the other directly), which only experiments on one
    of them can tell. `discrepancy` says how many times as surely the rows
    contradict a second opinion as it contradicts them; 0 without one, infinite where
    there are more variables than its network knows.
    """

    shown_by: ClassVar[str] = "acbo.pictures.charts:show_graphs"
    names: tuple[str, ...]
    graphs: np.ndarray
    edge_probs: np.ndarray
    confounded_probs: np.ndarray
    candidates: np.ndarray  # causes of each variable that were considered
    set_probs: np.ndarray  # P(causes of j = S), [variable, number of the set]
    discrepancy: float = 0.0
    fits: tuple[Fit, ...] = ()  # how well each variable fits a linear model

    @property
    def unlike_training(self) -> bool:
        """Return whether the rows are probably nearer to the truth than the network."""
        return self.discrepancy > USUAL_DISCREPANCY

    @property
    def note(self) -> str:
        """Return what the probabilities rest on, in a sentence."""
        if math.isinf(self.discrepancy):
            return (
                f"{len(self.names)} variables are more than the network was trained "
                "on: the answer rests on the local posterior"
            )
        if self.unlike_training:
            return (
                "the table is unlike what the network was trained on (the rows "
                f"contradict it {self.discrepancy:.1f} times as surely as it "
                f"contradicts them; above {USUAL_DISCREPANCY:g} they were nearer to "
                "the truth on 9 of 10 random tables): the network counts less"
            )
        if self.discrepancy:
            return "probabilities pool the network with the local posterior"
        return "probabilities are of graphs sampled from the local posterior"

    @property
    def misfits(self) -> dict[str, tuple[str, ...]]:
        """Return what does not fit linear models with Gaussian noise, by variable."""
        checked = zip(self.names, self.fits, strict=False)  # there may be no checks
        return {name: fit.misfits for name, fit in checked if fit.misfits}

    @cached_property
    def likely_edges(self) -> Bool[np.ndarray, "d d"]:
        """Return the edges to name: those of the highest expected F1."""
        return name_edges(self.edge_probs)

    @cached_property
    def ancestor_probs(self) -> np.ndarray:
        """Return P(i causes j, directly or not) for every pair [i, j]."""
        # Direct causes count by their exact probability, and only the others by the
        # share of samples, which may not add up to more than is left of both ways.
        further = (_descendants(self.graphs) & ~self.graphs).mean(axis=0)
        left = np.maximum(1 - self.edge_probs - self.edge_probs.T, 0)
        share = np.minimum(left / np.maximum(further + further.T, 1e-9), 1)
        return self.edge_probs + share * further

    def parent_sets(self, target: Any) -> ParentSetPosterior:
        """Return the posterior over the sets of direct causes of one variable."""
        column = find_column(target, self.names)
        own = [self.names[i] for i in self.candidates[column] if i < len(self.names)]
        found = np.flatnonzero(self.set_probs[column] > RARE_SET)
        named = [[name for k, name in enumerate(own) if n >> k & 1] for n in found]
        others = [name for name in self.names if name != self.names[column]]
        return create_parent_set_posterior(
            self.names[column],
            named,
            self.set_probs[column, found],
            metadata={"all_variables": others, "method": "order-chains"},
        )
