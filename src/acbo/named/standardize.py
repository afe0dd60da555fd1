"""Samples as the network's tensor, and standardized values with an exact way back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from acbo.named.codec import Codec, samples_to_table
from acbo.named.samples import Sample
from acbo.types import CHANNELS, INTERVENED, TARGET, VALUE

KINDS = ("default", "count", "none")
COUNT_OFFSET = 1e-8  # added before the logarithm, so that a count of 0 has one


@dataclass(frozen=True, eq=False)
class StandardizationParams:
    """Mean and spread of each column, after the logarithm where `kind` is "count"."""

    mean: Float[np.ndarray, " d"]
    std: Float[np.ndarray, " d"]
    kind: str = "default"


def compute_standardization_params(
    values: Any, standardization_type: str = "default"
) -> StandardizationParams:
    """Per-column mean and population standard deviation over all rows (0 becomes 1).

    "default": of the values; "count": of their logarithms; "none": 0 and 1.
    """
    if standardization_type not in KINDS:
        raise ValueError(
            f"standardization_type={standardization_type!r} is not one of: "
            f"{', '.join(KINDS)}"
        )
    table = _unfold(values, standardization_type)
    if standardization_type == "none":
        mean, std = np.zeros(table.shape[1]), np.ones(table.shape[1])
    else:
        mean, std = table.mean(0), table.std(0)
    return StandardizationParams(
        mean, np.where(std == 0, 1.0, std), standardization_type
    )


def apply_standardization(
    values: Any, params: StandardizationParams
) -> Float[np.ndarray, "n d"]:
    """Values with the mean taken off, in units of the spread."""
    return (_unfold(values, params.kind) - params.mean) / params.std


def reverse_standardization(
    values: Any, params: StandardizationParams
) -> Float[np.ndarray, "n d"]:
    """The values that `apply_standardization` was given."""
    table = np.asarray(values, dtype=np.float64) * params.std + params.mean
    return np.exp(table) - COUNT_OFFSET if params.kind == "count" else table


def samples_to_avici_format(
    samples: Sequence[Sample],
    variable_order: Sequence[str] | None,
    target_variable: str | None,
    standardize: bool = True,
    standardization_type: str = "default",
) -> Float[Array, "n d 3"]:
    """Value, intervened flag and target flag of each cell (default: sorted names)."""
    names, values, flags = samples_to_table(samples, variable_order)
    kind = standardization_type if standardize else "none"
    params = compute_standardization_params(values, kind)
    tensor = np.zeros((*values.shape, CHANNELS))
    tensor[..., VALUE] = apply_standardization(values, params)
    tensor[..., INTERVENED] = flags
    if target_variable is not None:
        tensor[:, Codec(names).index(target_variable), TARGET] = 1.0
    return jnp.asarray(tensor, dtype=float)


def samples_to_avici_data(
    samples: Sequence[Sample],
    variable_order: Sequence[str] | None,
    target_variable: str | None = None,
) -> Float[Array, "n d 3"]:
    """`samples_to_avici_format`, standardized; without a target, none is flagged."""
    return samples_to_avici_format(samples, variable_order, target_variable)


def _unfold(values: Any, kind: str) -> Float[np.ndarray, "n d"]:
    table = np.asarray(values, dtype=np.float64)
    if kind != "count":
        return table
    if (table < 0).any():
        raise ValueError(f"a count of {table.min():g}: counts are 0 or more")
    return np.log(table + COUNT_OFFSET)
