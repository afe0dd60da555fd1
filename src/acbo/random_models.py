"""Random structural causal models and data sets of them, drawn on the device.

A data set has observational rows, then rows in which one variable was set, never the
target.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.graphs import RandomGraph, family_named
from acbo.history import History
from acbo.mechanisms import MECHANISMS, NOISE_KINDS, draw_features, with_equal_units
from acbo.scm import SCM, no_intervention, sample_each, sample_rows, set_variables
from acbo.types import check_known
from jaxrig.settings import Checked, Count, Fraction, Reader, flag, wrong


def _names(check: Callable[[str], Any]) -> Reader:
    """Return the reader of names; one given twice is drawn twice as often."""

    def read(value: Any, name: str) -> tuple[str, ...]:
        if not value:
            raise wrong(name, value, "one name or more")
        for each in value:
            check(each)
        return tuple(value)

    return read


def _span(value: Any, name: str) -> tuple[Any, Any]:
    low, high = value
    if not 0 <= low <= high:
        raise wrong(name, value, "0 <= low <= high")
    return low, high


_mechanism = partial(check_known, names=MECHANISMS, what="mechanism")
_noise = partial(check_known, names=NOISE_KINDS, what="noise")


@dataclass(frozen=True)
class SCMConfig(Checked):
    """A distribution over models: graphs, mechanisms, noise and the sizes of each.

    Weights have magnitudes within `weights` and either sign. Noise scales lie within
    `noise`, the same for all variables of a model in `equal_noise` of the models. In
    `any_target` of the models the target is any variable, a root included.
    """

    families: Annotated[tuple[str, ...], _names(family_named)] = (
        *("chain", "fork", "scale_free"),
        *("er1", "er2"),
    )
    mechanisms: Annotated[tuple[str, ...], _names(_mechanism)] = ("linear",)
    noises: Annotated[tuple[str, ...], _names(_noise)] = ("gaussian",)
    weights: Annotated[tuple[float, float], _span] = (0.5, 2.0)
    noise: Annotated[tuple[float, float], _span] = (1.0, 1.0)
    equal_noise: Fraction = 1.0
    any_target: Fraction = 0.0


def draw_ranges(
    key: PRNGKeyArray, size: Int[Array, ""], d: int
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """Draw ranges as in the public benchmark: high from U(1, 5), low up to twice as far
    or at least half a unit down, both growing with the square root of the size.
    """
    top, far, near, coin = jax.random.split(key, 4)
    high = jax.random.uniform(top, (d,), minval=1.0, maxval=5.0)
    farther = high * (1 + jax.random.uniform(far, (d,)))
    nearer = 0.5 + (high - 0.5) * jax.random.uniform(near, (d,))
    low = -jnp.where(jax.random.bernoulli(coin, 0.5, (d,)), farther, nearer)
    scale = jnp.sqrt(size.astype(jnp.float32) / 5.0)
    return low * scale, high * scale


def _choose_one(
    key: PRNGKeyArray, kinds: Sequence[Any], made: Mapping[Any, Any]
) -> Any:
    """Return what was made of one of the kinds; one given twice is twice as likely.

    All are drawn and one is kept: under vmap a switch computes all branches too.
    """
    places = jnp.array([list(made).index(kind) for kind in kinds])
    which = places[jax.random.randint(key, (), 0, len(kinds))]
    return jax.tree.map(lambda *each: jnp.stack(each)[which], *made.values())


def draw_graph(
    key: PRNGKeyArray, families: tuple[str, ...], size: Int[Array, ""], d: int
) -> RandomGraph:
    """Draw a graph of one of the families, its places in causal order."""
    pick, draw = jax.random.split(key)
    drawn = {n: family_named(n)(draw, size, d) for n in dict.fromkeys(families)}
    return _choose_one(pick, families, drawn)


def _draw_noise_scale(
    key: PRNGKeyArray, config: SCMConfig, d: int
) -> Float[Array, " d"]:
    coin, own, one = jax.random.split(key, 3)
    low, high = config.noise
    each = jax.random.uniform(own, (d,), minval=low, maxval=high)
    same = jax.random.uniform(one, (), minval=low, maxval=high)
    equal = jax.random.bernoulli(coin, config.equal_noise)
    return jnp.where(equal, same, each)


def random_scm(
    key: PRNGKeyArray,
    config: SCMConfig,
    size: Int[Array, ""] | int,
    d: int,
    graph: RandomGraph | None = None,
) -> SCM:
    """Draw a model of `size` variables in a bucket of `d`, its columns in random order.

    A graph drawn before is used instead of one of the configured families.
    """
    size = jnp.asarray(size)
    draw, sign, weigh, mechanism, noise, kind, target, order, reach = jax.random.split(
        key, 9
    )
    exists = jnp.arange(d) < size
    drawn = draw_graph(draw, config.families, size, d) if graph is None else graph
    # The place in causal order of each column; scores are below 1, so padding is last.
    score = jnp.where(exists, jax.random.uniform(order, (d,)), 2.0)
    place = jnp.argsort(score)
    adjacency = drawn.adjacency[place][:, place]
    low, high = config.weights
    weight = jax.random.uniform(weigh, (d, d), minval=low, maxval=high)
    weight = weight * jax.random.rademacher(sign, (d, d), weight.dtype)
    kinds = jnp.array([NOISE_KINDS[name] for name in config.noises])
    least, most = draw_ranges(reach, size, d)
    coin, pick = jax.random.split(target)
    free = jax.random.bernoulli(coin, config.any_target)
    allowed = jnp.where(free, exists, drawn.targets[place])
    return SCM(
        adjacency=adjacency,
        order=jnp.argsort(place),
        features=draw_features(mechanism, config.mechanisms, adjacency, weight),
        noise_scale=_draw_noise_scale(noise, config, d),
        noise_kind=jnp.broadcast_to(
            kinds[jax.random.randint(kind, (), 0, len(config.noises))], (d,)
        ),
        low=least,
        high=most,
        target=jax.random.categorical(pick, jnp.where(allowed, 0.0, -jnp.inf)),
        mask=exists,
    )


def random_scms(
    key: PRNGKeyArray, config: SCMConfig, sizes: Int[Array, " n"], d: int
) -> SCM:
    """Draw a stack of models, one for each size."""
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(sizes.shape[0]))
    return jax.vmap(lambda k, size: random_scm(k, config, size, d))(keys, sizes)


def _models(value: Any, name: str) -> tuple[SCMConfig, ...]:
    if not value:
        raise wrong(name, value, "one SCMConfig or more")
    return tuple(value)


FAR = 1e17  # a range that few values leave, and whose squares stay finite


@dataclass(frozen=True)
class DataConfig(Checked):
    """Sizes of the data sets of one bucket, and the models they come from.

    `observational` and `interventional` bound the numbers of rows; `clipped` is the
    share of data sets whose variables stay within their ranges. With `exact` the
    surrogate is told the exact posterior of the target's causes, not the truth.
    """

    scms: Annotated[tuple[SCMConfig, ...], _models] = (SCMConfig(),)
    variables: Count = 8
    rows: Count = 128
    sizes: Annotated[tuple[int, int], _span] = (3, 8)
    observational: Annotated[tuple[int, int], _span] = (20, 100)
    interventional: Annotated[tuple[int, int], _span] = (0, 28)
    clipped: Fraction = 0.3
    exact: Annotated[bool, flag] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.sizes
        if not 2 <= low <= high <= self.variables:
            raise ValueError(f"sizes={self.sizes} must lie in 2 to {self.variables}")
        most = self.observational[1] + self.interventional[1]
        if most > self.rows:
            raise ValueError(f"{most} rows do not fit into a bucket of {self.rows}")


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
    """Draw a model of one of the kinds; a kind given twice is drawn twice as often."""
    size, kind, draw = jax.random.split(key, 3)
    count = _number(size, sizes)
    kinds = tuple(dict.fromkeys(scms))
    graphs = {}
    for each in kinds:  # kinds of one list of families share the graph
        if each.families not in graphs:
            graphs[each.families] = draw_graph(kind, each.families, count, d)
    made = [random_scm(draw, each, count, d, graphs[each.families]) for each in kinds]
    wide = with_equal_units([scm.features for scm in made])
    made = [replace(scm, features=f) for scm, f in zip(made, wide, strict=True)]
    return _choose_one(kind, scms, dict(zip(kinds, made, strict=True)))


def _choose_values(
    key: PRNGKeyArray,
    scm: SCM,
    chosen: Int[Array, " n"],
    spread: Float[Array, " d"],
) -> Float[Array, " n"]:
    """Choose values by a random habit: in the range, its ends, two deviations, any."""
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
    """Draw observational rows, then rows with one variable set; both counts are random.

    Where `bounded` holds, every variable but the target stays within its range.
    """
    watch, act, which, taste, value, many, more = jax.random.split(key, 7)
    # Whether values are clipped is random, and the program always clips: far ranges
    # stand for none.
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
    """Draw one data set; map it over keys."""
    model, rows, clip = jax.random.split(key, 3)
    scm = draw_model(model, config.scms, config.sizes, config.variables)
    counts = config.rows, config.observational, config.interventional
    bounded = jax.random.bernoulli(clip, config.clipped)
    seen = draw_rows(rows, scm, *counts, bounded)
    return Dataset(*seen.rows, scm.mask, scm.target, scm.adjacency)
