"""The trained surrogate: posteriors over causes from data in the user's units."""

import functools
import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from acbo.graphs import bucket_parent_sets, enumerate_possible_parent_sets
from acbo.posterior.distribution import ParentSetPosterior, create_parent_set_posterior
from acbo.posterior.inputs import CheckedData, check_data
from acbo.posterior.order_chains import GraphPosterior, sample_graphs
from acbo.surrogate.encode import (
    READING_BUCKETS,
    centered,
    pad_rows,
    row_bucket,
    standardize,
    variable_bucket,
)
from acbo.surrogate.model import (
    Prediction,
    SurrogateConfig,
    SurrogateNetwork,
    set_logits,
)
from jaxrig.checkpoint import load_tree, read_header, save_tree
from jaxrig.compile_guard import compile_once

SHIPPED = Path(__file__).parent / "surrogate.ckpt"
# Beyond the largest graphs of its training the network gives absent edges high
# probabilities: 0.96 on average at 50 variables, of which one had a cause.
TRAINED_VARIABLES = 16


class Surrogate(eqx.Module):
    """One network for data sets of any size; compiled once for each bucket."""

    network: SurrogateNetwork

    def predict(
        self,
        values: Float[Array, "n d"],
        intervened: Bool[Array, "n d"],
        row_mask: Bool[Array, " n"],
        var_mask: Bool[Array, " d"],
        target: Int[Array, ""],
    ) -> tuple[Float[Array, " d"], None]:
        """Return P(i causes the target) for one data set in its own units."""
        found = self.read(values, intervened, row_mask, var_mask, target)
        return found.parent_probs, None

    def read(
        self,
        values: Float[Array, "n d"],
        intervened: Bool[Array, "n d"],
        row_mask: Bool[Array, " n"],
        var_mask: Bool[Array, " d"],
        target: Int[Array, ""],
    ) -> Prediction:
        """Return all that the network says about one data set in its own units."""
        z = standardize(values, intervened, row_mask, var_mask)
        return self.network(z, intervened, row_mask, var_mask, target)

    def posterior(
        self,
        values: Any,
        intervened: Any,
        target: Any,
        names: Sequence[str] | None = None,
        max_parents: int = 3,
    ) -> ParentSetPosterior:
        """Return the posterior over sets of causes of the target.

        `values` is [rows, variables] or a frame, `intervened` marks the cells that were
        set (None: nothing was), `target` is a name or a column.
        """
        data = check_data(values, intervened, target, names)
        _warn_beyond_training(len(data.names))
        padded = _padded(data.values, data.intervened)
        chance, there = _compiled_sets(
            self, padded, jnp.asarray(data.target), max_parents
        )
        name = data.names[data.target]
        sets = enumerate_possible_parent_sets(list(data.names), name, max_parents)
        # Both lists are by size and position; the bucket's has padded sets between.
        return create_parent_set_posterior(
            name, sets, np.asarray(chance)[np.asarray(there)]
        )

    def edge_probs(
        self, values: Any, intervened: Any = None, names: Sequence[str] | None = None
    ) -> np.ndarray:
        """Return P(i causes j) for every pair [i, j]."""
        data = check_data(values, intervened, None, names)
        d = len(data.names)
        _warn_beyond_training(d)
        edges = _compiled_edges(self, _padded(data.values, data.intervened))
        return np.asarray(edges)[:d, :d]


def infer_graphs(
    values: Any,
    intervened: Any = None,
    *,
    surrogate: Surrogate | None = None,
    **options: Any,
) -> GraphPosterior:
    """Return one posterior over graphs, from the rows and from the network.

    The network's edges are pooled with the local posterior of `sample_graphs`, whose
    options (`names`, `required`, `forbidden`, `tiers`, `soft`, `seed`) are taken here
    too, and count less where it contradicts them more surely than they it: see
    `GraphPosterior.unlike_training`. With more variables than it was trained on, the
    network is not asked (`unlike_training` is true), nor about rows with soft changes,
    which it has not met. Without `surrogate`, the network is the included one.
    """

    def ask_network(data: CheckedData) -> np.ndarray | None:
        d, known = len(data.names), ~data.soft.any(axis=1)
        if d > TRAINED_VARIABLES or known.sum() < 2:
            return None
        network = load_surrogate() if surrogate is None else surrogate
        # It was trained on either sign of everything, but is not exactly even: let the
        # longer tail be above, so that a column and its negative get one answer.
        z = np.where(_is_turned(data.values[known]), -1, 1) * data.values[known]
        padded = _padded(z, data.intervened[known])
        return np.asarray(_compiled_edges(network, padded))[:d, :d]

    found = sample_graphs(values, intervened, opinion=ask_network, **options)
    known = len(found.names) <= TRAINED_VARIABLES
    return found if known else replace(found, discrepancy=math.inf)


def _is_turned(values: Float[np.ndarray, "n d"]) -> Bool[np.ndarray, " d"]:
    """Return which columns have their longer tail below, whatever their unit."""
    away = values - values.mean(axis=0)
    away = away / np.maximum(np.abs(away).max(axis=0), np.finfo(float).tiny)
    tail = (away**3).sum(axis=0)
    # Of two levels that are alike, by the rows in which other columns are far off.
    beside = (away * (away**2).sum(axis=1, keepdims=True)).sum(axis=0)
    return np.where(np.abs(tail) > 1e-9 * len(away), tail, beside) < 0


def _warn_beyond_training(d: int) -> None:
    if d > TRAINED_VARIABLES:
        warnings.warn(
            f"{d} variables are more than the {TRAINED_VARIABLES} that the network was "
            "trained on, and it will be wrong with confidence: use acbo.infer_graphs",
            stacklevel=3,
        )


class Padded(NamedTuple):
    """A data set in its bucket, and which rows and columns exist."""

    values: Float[Array, "n d"]
    intervened: Bool[Array, "n d"]
    row_mask: Bool[Array, " n"]
    var_mask: Bool[Array, " d"]


def _padded(values: np.ndarray, intervened: np.ndarray) -> Padded:
    n, d = values.shape
    rows, columns = row_bucket(n), variable_bucket(d, READING_BUCKETS)
    return Padded(
        jnp.asarray(pad_rows(centered(values), rows, columns)),
        jnp.asarray(pad_rows(intervened, rows, columns)),
        jnp.asarray(np.arange(rows) < n),
        jnp.asarray(np.arange(columns) < d),
    )


def _sets(
    surrogate: Surrogate, data: Padded, target: Array, max_parents: int
) -> tuple[Array, Array]:
    set_mask, held = bucket_parent_sets(data.var_mask, target, max_parents)
    logits = set_logits(surrogate.read(*data, target), held, set_mask)
    return jax.nn.softmax(logits), set_mask


def _edges(surrogate: Surrogate, data: Padded) -> Array:
    return jax.nn.sigmoid(surrogate.read(*data, jnp.asarray(0)).edge_logits)


# One trace per bucket of variables and rows; beyond 512 rows, one per 512 more.
_compiled_sets = compile_once(_sets, max_traces=64)
_compiled_edges = compile_once(_edges, max_traces=64)


def save_surrogate(path: Path | str, network: SurrogateNetwork) -> Path:
    """Write a network with its sizes, in half precision: it is read back as single."""
    half = jax.tree.map(lambda x: x.astype(jnp.float16), network)
    return save_tree(path, half, metadata={"config": asdict(network.config)})


@functools.lru_cache(maxsize=4)
def load_surrogate(path: Path | str | None = None) -> Surrogate:
    """Return the surrogate of a file, or the one that comes with the package."""
    found = Path(path) if path is not None else SHIPPED
    config = SurrogateConfig(**read_header(found)["metadata"]["config"])
    make = lambda: SurrogateNetwork(config, jax.random.key(0))
    like = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, jnp.float16),
        eqx.filter_eval_shape(make),
    )
    # Cast by NumPy: on the device every shape would be a program to compile.
    widen = lambda x: jax.device_put(np.asarray(x).astype(np.float32))
    return Surrogate(jax.tree.map(widen, load_tree(found, like)))
