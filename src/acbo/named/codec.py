"""Names to columns and back: graphs, sets of variables and samples as arrays."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from acbo.named.digraph import Edge, check_edges, check_known, check_names
from acbo.named.mechanisms import plain_number
from acbo.named.samples import Sample, create_sample

Arrays = tuple[Float[Array, "n d"], Bool[Array, "n d"]]


@dataclass(frozen=True)
class Codec:
    """Which name is which column."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        check_names(self.names)

    def index(self, name: str) -> int:
        """Column of a name; ValueError listing the names for an unknown one."""
        check_known(name, self.names)
        return self.names.index(name)

    def mask(self, names: Iterable[str]) -> Bool[np.ndarray, " d"]:
        """True at the columns of these names."""
        found = np.zeros(len(self.names), bool)
        found[[self.index(name) for name in names]] = True
        return found

    def members(self, mask: Iterable[Any]) -> frozenset[str]:
        """Names of the columns where the mask is True."""
        return frozenset(n for n, m in zip(self.names, mask, strict=True) if m)

    def adjacency(self, edges: Iterable[Edge]) -> Bool[Array, "d d"]:
        """`[i, j]` is True where name i causes name j."""
        found = np.zeros((len(self.names), len(self.names)), bool)
        for cause, effect in check_edges(self.names, edges):
            found[self.index(cause), self.index(effect)] = True
        return jnp.asarray(found)

    def edges(self, adjacency: Bool[Array, "d d"]) -> frozenset[Edge]:
        """Pairs (cause, effect) of an adjacency matrix."""
        causes, effects = np.nonzero(np.asarray(adjacency))
        return frozenset(
            (self.names[i], self.names[j]) for i, j in zip(causes, effects, strict=True)
        )


def samples_to_table(
    samples: Sequence[Sample], variable_order: Sequence[str] | None = None
) -> tuple[tuple[str, ...], Float[np.ndarray, "n d"], Bool[np.ndarray, "n d"]]:
    """Column names, values in double precision, and which cells were intervened."""
    if not samples:
        raise ValueError("no samples: give at least one")
    order = sorted(samples[0].values) if variable_order is None else variable_order
    codec = Codec(tuple(order))
    for number, sample in enumerate(samples, 1):
        missing = [name for name in codec.names if name not in sample.values]
        if missing:
            raise ValueError(f"sample {number} has no value of {missing[0]!r}")
    values = [[sample.values[name] for name in codec.names] for sample in samples]
    flags = [codec.mask(sample.intervention_targets) for sample in samples]
    return codec.names, np.asarray(values, dtype=np.float64), np.stack(flags)


def samples_to_arrays(
    samples: Sequence[Sample], variable_order: Sequence[str] | None = None
) -> Arrays:
    """`values[n, d]` and `intervened[n, d]` of samples (default: sorted names)."""
    _, values, flags = samples_to_table(samples, variable_order)
    return jnp.asarray(values, dtype=float), jnp.asarray(flags)


def arrays_to_samples(
    values: Float[Array, "n d"],
    intervened: Bool[Array, "n d"],
    names: Sequence[str],
    intervention_type: str = "perfect",
) -> list[Sample]:
    """The rows as samples; rows with nothing intervened are observational."""
    codec = Codec(tuple(names))
    samples = []
    for row, flags in zip(np.asarray(values), np.asarray(intervened), strict=True):
        named = dict(zip(codec.names, map(plain_number, row), strict=True))
        targets = codec.members(flags)
        samples.append(
            create_sample(named, intervention_type if targets else None, targets)
        )
    return samples
