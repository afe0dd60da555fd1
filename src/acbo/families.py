"""Distributions over structural causal models, drawn on the device."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.graphs.generate import Drawn, family_named
from acbo.mechanisms.kinds import MECHANISMS, draw_features
from acbo.mechanisms.noise import NOISE_KINDS
from acbo.scm import SCM


@dataclass(frozen=True)
class SCMConfig:
    """What is drawn: graphs, mechanisms, noise and the sizes of each.

    Weights have magnitudes within `weights` and either sign. Noise scales lie within
    `noise`, the same for all variables of a model in `equal_noise` of the models. In
    `any_target` of the models the target is any variable, a root included.
    """

    families: tuple[str, ...] = ("chain", "fork", "scale_free", "er1", "er2")
    mechanisms: tuple[str, ...] = ("linear",)
    noises: tuple[str, ...] = ("gaussian",)
    weights: tuple[float, float] = (0.5, 2.0)
    noise: tuple[float, float] = (1.0, 1.0)
    equal_noise: float = 1.0
    any_target: float = 0.0

    def __post_init__(self) -> None:
        for name, allowed in (("mechanisms", MECHANISMS), ("noises", NOISE_KINDS)):
            for each in getattr(self, name):
                if each not in allowed:
                    raise ValueError(
                        f"{name}: {each!r} is not one of: {', '.join(allowed)}"
                    )
        for each in self.families:
            family_named(each)
        if not (self.families and self.mechanisms and self.noises):
            raise ValueError("families, mechanisms and noises need one name at least")
        for name in ("weights", "noise"):
            low, high = getattr(self, name)
            if not 0 <= low <= high:
                raise ValueError(f"{name}={(low, high)} must be 0 <= low <= high")
        for name in ("equal_noise", "any_target"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}={getattr(self, name)} must be within 0 and 1")


def draw_ranges(
    key: PRNGKeyArray, size: Int[Array, ""], d: int
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """Ranges of the public benchmark: high from U(1, 5), low at up to twice as far or
    at least half a unit down, both growing with the square root of the size.
    """
    top, far, near, coin = jax.random.split(key, 4)
    high = jax.random.uniform(top, (d,), minval=1.0, maxval=5.0)
    farther = high * (1 + jax.random.uniform(far, (d,)))
    nearer = 0.5 + (high - 0.5) * jax.random.uniform(near, (d,))
    low = -jnp.where(jax.random.bernoulli(coin, 0.5, (d,)), farther, nearer)
    scale = jnp.sqrt(size.astype(jnp.float32) / 5.0)
    return low * scale, high * scale


def draw_graph(
    key: PRNGKeyArray, families: tuple[str, ...], size: Int[Array, ""], d: int
) -> Drawn:
    """A graph of one of the families, its places in causal order."""
    pick, draw = jax.random.split(key)
    kinds = tuple(dict.fromkeys(families))  # a name given twice is drawn twice as often
    drawn = [family_named(name)(draw, size, d) for name in kinds]
    share = jnp.array([kinds.index(name) for name in families])
    which = share[jax.random.randint(pick, (), 0, len(families))]
    return jax.tree.map(lambda *each: jnp.stack(each)[which], *drawn)


def _draw_target(
    key: PRNGKeyArray,
    targets: Bool[Array, " d"],
    there: Bool[Array, " d"],
    any_target: float,
) -> Int[Array, ""]:
    coin, pick = jax.random.split(key)
    free = jax.random.bernoulli(coin, any_target)
    allowed = jnp.where(free, there, targets)
    return jax.random.categorical(pick, jnp.where(allowed, 0.0, -jnp.inf))


def _draw_noise_scale(
    key: PRNGKeyArray, config: SCMConfig, d: int
) -> Float[Array, " d"]:
    coin, own, one = jax.random.split(key, 3)
    low, high = config.noise
    each = jax.random.uniform(own, (d,), minval=low, maxval=high)
    same = jax.random.uniform(one, (), minval=low, maxval=high)
    equal = jax.random.bernoulli(coin, config.equal_noise)
    return jnp.where(equal, same, each)


def _shuffled(key: PRNGKeyArray, there: Bool[Array, " d"]) -> Int[Array, " d"]:
    """For each column its place in causal order; the padding stays where it is."""
    score = jax.random.uniform(key, there.shape)
    return jnp.argsort(jnp.where(there, score, 2.0))


def random_scm(
    key: PRNGKeyArray,
    config: SCMConfig,
    size: Int[Array, ""] | int,
    d: int,
    graph: Drawn | None = None,
) -> SCM:
    """A model of `size` variables in a bucket of `d`, its columns in random order.

    A graph drawn before is used instead of one of the configured families.
    """
    size = jnp.asarray(size)
    draw, sign, weigh, mechanism, noise, kind, target, order, reach = jax.random.split(
        key, 9
    )
    there = jnp.arange(d) < size
    drawn = draw_graph(draw, config.families, size, d) if graph is None else graph
    place = _shuffled(order, there)
    adjacency = drawn.adjacency[place][:, place]
    low, high = config.weights
    weight = jax.random.uniform(weigh, (d, d), minval=low, maxval=high)
    weight = weight * jax.random.rademacher(sign, (d, d), weight.dtype)
    kinds = jnp.array([NOISE_KINDS[name] for name in config.noises])
    least, most = draw_ranges(reach, size, d)
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
        target=_draw_target(target, drawn.targets[place], there, config.any_target),
        mask=there,
    )


def random_scms(
    key: PRNGKeyArray, config: SCMConfig, sizes: Int[Array, " n"], d: int
) -> Any:
    """A stack of models, one for each size."""
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(sizes.shape[0]))
    return jax.vmap(lambda k, size: random_scm(k, config, size, d))(keys, sizes)
