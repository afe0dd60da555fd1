"""What an experiment may gain over all those made, by curves drawn from what is known.

The best experiment made is itself unknown while outcomes are noisy. In every draw it is
the lowest of the curves where something was tried, so that trying the same again gains
nothing, and trying beside it little.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from acbo.policy.curves import Fit, Sight, parts_at, parts_at_candidates

DRAWS = 256


def _kinds(share: Float[Array, "t d w h"], draws: int) -> Float[Array, "k d t w h"]:
    """One kind of curve for each draw and variable, as often as it is likely: even
    steps through the sum of their probabilities. 1 for the kind, 0 for the rest.
    """
    t, d, w, h = share.shape
    total = jnp.cumsum(share.swapaxes(0, 1).reshape(d, -1), axis=1)
    level = (jnp.arange(draws).astype(share.dtype) + 0.5) / draws
    passed = (level[:, None, None] > total[None]).sum(axis=-1)
    kind = jnp.minimum(passed, t * w * h - 1)  # rounding may keep the sum below 1
    return jax.nn.one_hot(kind, t * w * h).reshape(draws, d, t, w, h)


def expected_gains(
    fit: Fit, sight: Sight, line: Float[Array, "d m"], draws: int = DRAWS
) -> Float[Array, "d m"]:
    """E[max(best made - E[Y | do(X_i = v)], 0)] at every candidate, where the best made
    is that of all variables, or doing nothing, at 0.
    """
    m = line.shape[1]
    pick = _kinds(fit.share, draws)
    straight, wide = pick.sum(axis=(3, 4))[:, :, 1], pick.sum(axis=(2, 4))
    noise = jnp.sqrt(jnp.einsum("kitwh,tiwh->ki", pick, fit.noise))
    # The same numbers for every variable and each time: neither the order of the
    # variables nor a second look may change what is chosen.
    unit = jax.random.normal(jax.random.key(0), (draws, fit.weights.shape[-1]))
    root = jnp.linalg.cholesky(fit.inverse)
    away = jnp.einsum("iwhab,kiwh,kb->kia", root, pick.sum(axis=2), unit)
    mean = jnp.einsum("tiwha,kitwh->kia", fit.weights, pick)
    weights = mean + noise[..., None] * away

    bent = jnp.einsum("miwa,kia,kiw->kim", parts_at_candidates(line), weights, wide)
    curve = straight[..., None] * line[None] + bent
    parts = parts_at(sight.place, sight.line, m)
    bent = jnp.einsum("niwa,kia,kiw->kin", parts, weights, wide)
    at_rows = straight[..., None] * sight.line.T[None] + bent
    own = jnp.where(sight.made.T[None], at_rows, jnp.inf).min(axis=2)
    best = jnp.minimum(jnp.minimum(own, _of_others(own)), 0.0)
    return jnp.maximum(best[..., None] - curve, 0.0).mean(axis=0)


def _of_others(own: Float[Array, "k d"]) -> Float[Array, "k d"]:
    """The lowest of the other variables, of another draw: what is not known of two
    variables has nothing in common.
    """
    far = jnp.roll(own, len(own) // 2, axis=0)
    same = jnp.eye(own.shape[1], dtype=bool)[None]
    return jnp.where(same, jnp.inf, far[:, None, :]).min(axis=2)
