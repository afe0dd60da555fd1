"""Random data sets with known graphs, made on the device for the surrogate to learn.

Each is drawn from a random model: observational rows, then rows in which one variable
was set, never the target.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.families import SCMConfig, draw_graph, random_scm
from acbo.history import History
from acbo.interventions import no_intervention, set_variables
from acbo.scm import SCM, sample_each, sample_rows

FAR = 1e17  # a range that few values leave, and whose squares stay finite


@dataclass(frozen=True)
class DataConfig:
    """Sizes of the data sets of one bucket, and the models they come from.

    `observational` and `interventional` bound the numbers of rows; `clipped` is the
    share of data sets whose variables stay within their ranges. With `exact` the
    surrogate is told the exact posterior of the target's causes, not the truth.
    """

    scms: tuple[SCMConfig, ...] = (SCMConfig(),)
    variables: int = 8
    rows: int = 128
    sizes: tuple[int, int] = (3, 8)
    observational: tuple[int, int] = (20, 100)
    interventional: tuple[int, int] = (0, 28)
    clipped: float = 0.3
    exact: bool = False

    def __post_init__(self) -> None:
        if not self.scms:
            raise ValueError("scms is empty: give one SCMConfig at least")
        low, high = self.sizes
        if not 2 <= low <= high <= self.variables:
            raise ValueError(f"sizes={self.sizes} must lie in 2 to {self.variables}")
        for name in ("observational", "interventional"):
            low, high = getattr(self, name)
            if not 0 <= low <= high:
                raise ValueError(f"{name}={(low, high)} must be 0 <= low <= high")
        most = self.observational[1] + self.interventional[1]
        if most > self.rows:
            raise ValueError(f"{most} rows do not fit into a bucket of {self.rows}")
        if not 0 <= self.clipped <= 1:
            raise ValueError(f"clipped={self.clipped} must be within 0 and 1")


class Dataset(eqx.Module):
    """Rows of one model in their own units, and what is true of it."""

    values: Float[Array, "*batch n d"]
    intervened: Bool[Array, "*batch n d"]
    row_mask: Bool[Array, "*batch n"]
    var_mask: Bool[Array, "*batch d"]
    target: Int[Array, "*batch"]
    adjacency: Bool[Array, "*batch d d"]


def _number(key: PRNGKeyArray, bounds: tuple[int, int]) -> Int[Array, ""]:
    return jax.random.randint(key, (), bounds[0], bounds[1] + 1)


def draw_model(
    key: PRNGKeyArray,
    scms: tuple[SCMConfig, ...],
    sizes: tuple[int, int],
    d: int,
) -> SCM:
    """A model of one of the kinds; a kind given twice is drawn twice as often."""
    size, kind, draw = jax.random.split(key, 3)
    count = _number(size, sizes)
    kinds = tuple(dict.fromkeys(scms))
    graphs = {}
    for each in kinds:  # kinds of one list of families share the graph
        if each.families not in graphs:
            graphs[each.families] = draw_graph(kind, each.families, count, d)
    made = [random_scm(draw, each, count, d, graphs[each.families]) for each in kinds]
    units = max(scm.features.bias.shape[-1] for scm in made)
    made = [_widen_units(scm, units) for scm in made]
    share = jnp.array([kinds.index(each) for each in scms])
    which = share[jax.random.randint(kind, (), 0, len(scms))]
    return jax.tree.map(lambda *each: jnp.stack(each)[which], *made)


def _widen_units(scm: SCM, units: int) -> SCM:
    """Room for as many units as the richest kind of mechanism has."""

    def pad(leaf: Array) -> Array:
        extra = [(0, 0)] * leaf.ndim
        extra[1] = (0, units - leaf.shape[1])
        return jnp.pad(leaf, extra)

    f = scm.features
    wide = type(f)(
        pad(f.inner), pad(f.bias), pad(f.outer), pad(f.activation), f.intercept
    )
    return eqx.tree_at(lambda model: model.features, scm, wide)


def _choose_values(
    key: PRNGKeyArray,
    scm: SCM,
    chosen: Int[Array, " n"],
    spread: Float[Array, " d"],
) -> Float[Array, " n"]:
    """Values by one of four habits: in the range, its ends, two deviations, any."""
    habit, place, sign = jax.random.split(key, 3)
    n = chosen.shape[0]
    share = jax.random.uniform(place, (n,))
    end = jax.random.bernoulli(sign, 0.5, (n,))
    low, high = scm.low[chosen], scm.high[chosen]
    which = jax.random.randint(habit, (), 0, 4)
    return jnp.select(
        [which == 0, which == 1, which == 2],
        [
            low + share * (high - low),
            jnp.where(end, low, high),
            jnp.where(end, 2.0, -2.0) * spread[chosen],
        ],
        2.0 * jax.random.normal(place, (n,)),
    )


def draw_rows(
    key: PRNGKeyArray,
    scm: SCM,
    capacity: int,
    observational: tuple[int, int],
    interventional: tuple[int, int],
    bounded: Bool[Array, ""],
) -> History:
    """Observational rows, then rows with one variable set; both numbers are drawn.

    Where `bounded` holds, every variable but the target stays within its range.
    """
    watch, act, which, taste, value, many, more = jax.random.split(key, 7)
    wide = lambda bound, limit: jnp.where(bounded, bound, limit)
    sampled = eqx.tree_at(
        lambda m: (m.low, m.high), scm, (wide(scm.low, -FAR), wide(scm.high, FAR))
    )
    nothing = no_intervention(scm.size)
    seen = sample_rows(watch, sampled, capacity, nothing, clip_to_range=True)
    # Experimenters favor some variables: from all alike to mostly one.
    favor = 3.0 * jax.random.uniform(taste) * jax.random.normal(which, (scm.size,))
    logits = jnp.where(scm.allowed, favor, -jnp.inf)
    chosen = jax.random.categorical(act, logits, shape=(capacity,))
    values = _choose_values(value, scm, chosen, seen.std(axis=0))
    mask = chosen[:, None] == jnp.arange(scm.size)[None, :]
    done = set_variables(mask, jnp.where(mask, values[:, None], 0.0))
    acted = sample_each(act, sampled, done, clip_to_range=True)
    first = _number(many, observational)
    total = first + _number(more, interventional)
    row = jnp.arange(capacity)
    passive = (row < first)[:, None]
    return History(
        jnp.where(passive, seen, acted),
        mask & ~passive & (row < total)[:, None],
        total,
    )


def draw_dataset(key: PRNGKeyArray, config: DataConfig) -> Dataset:
    """One data set; map it over keys."""
    model, rows, clip = jax.random.split(key, 3)
    scm = draw_model(model, config.scms, config.sizes, config.variables)
    seen = draw_rows(
        rows,
        scm,
        config.rows,
        config.observational,
        config.interventional,
        jax.random.bernoulli(clip, config.clipped),
    )
    return Dataset(
        seen.values,
        seen.intervened,
        seen.row_mask,
        scm.mask,
        scm.target,
        scm.adjacency,
    )
