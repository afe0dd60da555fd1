"""Linear models between their two forms: by name, and as arrays on the device."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from acbo.mechanisms.features import IDENTITY, linear_features
from acbo.mechanisms.noise import GAUSSIAN
from acbo.named.codec import Codec
from acbo.named.linear import create_linear_scm, linear_form
from acbo.named.mechanisms import plain_number
from acbo.named.model import NamedSCM
from acbo.scm import SCM


def to_device_scm(scm: NamedSCM) -> SCM:
    """The arrays of a linear named model; columns in the order of its names.

    The arrays know no variable that cannot be set: where ranges leave some out, they
    are unlimited in the result.
    """
    form = linear_form(scm)
    if scm.hidden:
        raise ValueError(
            f"{scm.hidden[0]!r} is hidden, and arrays have a column for each variable"
        )
    order = [scm.names.index(name) for name in scm.order]
    return SCM(
        adjacency=Codec(scm.names).adjacency(scm.edges),
        order=jnp.asarray(order),
        features=linear_features(
            jnp.asarray(form.weight, dtype=float),
            jnp.asarray(form.intercept, dtype=float),
        ),
        noise_scale=jnp.asarray(form.noise_scale, dtype=float),
        noise_kind=jnp.full(len(order), GAUSSIAN),
        low=scm.low,
        high=scm.high,
        target=scm.target,
        mask=scm.mask,
    )


def from_device_scm(scm: SCM, names: Sequence[str] | None = None) -> NamedSCM:
    """A linear Gaussian array model by name (default X0, X1, ...); padding is dropped.

    Variables with a finite range may be set; where there is none, all but the target.
    """
    there = np.flatnonzero(np.asarray(scm.mask))
    codec = Codec(tuple(f"X{i}" for i in there) if names is None else tuple(names))
    if len(codec.names) != len(there):
        raise ValueError(f"{len(codec.names)} names for {len(there)} variables")
    _check_linear(scm, there)
    features = scm.features
    outer = np.asarray(features.outer)
    weight = np.einsum("jh,jhi->ij", outer, np.asarray(features.inner))
    base = np.asarray(features.intercept) + (outer * np.asarray(features.bias)).sum(1)
    place = dict(zip(codec.names, there.tolist(), strict=True))
    pick = lambda row: {n: plain_number(np.asarray(row)[i]) for n, i in place.items()}
    low, high = pick(scm.low), pick(scm.high)
    ranges = {
        name: (low[name], high[name])
        for name in codec.names
        if np.isfinite([low[name], high[name]]).all()
    }
    edges = codec.edges(scm.adjacency[np.ix_(there, there)])
    return create_linear_scm(
        codec.names,
        {(a, b): plain_number(weight[place[a], place[b]]) for a, b in edges},
        codec.names[there.tolist().index(int(scm.target))],
        ranges or None,
        pick(base),
        pick(scm.noise_scale),
    )


def _check_linear(scm: SCM, there: np.ndarray) -> None:
    used = np.asarray(scm.features.outer)[there] != 0
    if (used & (np.asarray(scm.features.activation)[there] != IDENTITY)).any():
        raise ValueError("a mechanism of the model is not linear")
    if (np.asarray(scm.noise_kind)[there] != GAUSSIAN).any():
        raise ValueError("the noise of the model is not Gaussian")
