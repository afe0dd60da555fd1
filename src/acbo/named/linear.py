"""Linear models in closed form: their numbers, and moments under interventions."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from acbo.named.digraph import parents_of
from acbo.named.mechanisms import (
    LinearMechanism,
    create_linear_mechanism,
    plain_number,
)
from acbo.named.model import NamedSCM, Ranges, create_scm


@dataclass(frozen=True, eq=False)
class LinearForm:
    """x = intercept + weight' x + noise_scale * N(0, 1), in double precision."""

    names: tuple[str, ...]
    weight: Float[np.ndarray, "d d"]  # [cause, effect]
    intercept: Float[np.ndarray, " d"]
    noise_scale: Float[np.ndarray, " d"]

    def moments(
        self, do: Mapping[str, float] | None = None
    ) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]:
        """Mean and covariance of all variables when some are set."""
        numbers = (self.weight, self.intercept, self.noise_scale)
        weight, base, scale = (array.copy() for array in numbers)
        for name, value in (do or {}).items():
            place = self.names.index(name)
            weight[:, place], scale[place], base[place] = 0.0, 0.0, value
        total = np.linalg.inv(np.eye(len(base)) - weight.T)
        spread = total * scale
        return total @ base, spread @ spread.T

    def mean(self, name: str, do: Mapping[str, float] | None = None) -> float:
        """Expected value of one variable when some are set."""
        return float(self.moments(do)[0][self.names.index(name)])


def is_linear(scm: NamedSCM) -> bool:
    """Whether every mechanism is linear and none is clipped."""
    return all(
        isinstance(m, LinearMechanism) and m.output_bounds is None
        for m in scm.mechanisms.values()
    )


def linear_form(scm: NamedSCM) -> LinearForm:
    """The numbers of a linear model, hidden variables after the others."""
    if not is_linear(scm):
        odd = next(
            name
            for name, m in scm.mechanisms.items()
            if not isinstance(m, LinearMechanism) or m.output_bounds is not None
        )
        raise ValueError(f"the mechanism of {odd!r} is not linear, or is clipped")
    names = (*scm.names, *scm.hidden)
    weight = np.zeros((len(names), len(names)))
    for effect, name in enumerate(names):
        mechanism = scm.mechanisms[name]
        for place, cause in enumerate(mechanism.parents):
            weight[names.index(cause), effect] = plain_number(
                mechanism.coefficients[place]
            )
    mechanisms = [scm.mechanisms[name] for name in names]
    intercept = np.array([plain_number(m.intercept) for m in mechanisms])
    scale = np.array([plain_number(m.noise_scale) for m in mechanisms])
    return LinearForm(names, weight, intercept, scale)


def create_linear_scm(
    variables: tuple[str, ...],
    coefficients: Mapping[tuple[str, str], float],
    target: str | None = None,
    ranges: Ranges | None = None,
    intercepts: Mapping[str, float] | None = None,
    noise_scales: Mapping[str, float] | float = 1.0,
    hidden: tuple[str, ...] = (),
) -> NamedSCM:
    """A linear Gaussian model from its coefficients {(cause, effect): number}."""
    mechanisms = {}
    for name in variables:
        scale = (
            noise_scales.get(name, 1.0)
            if isinstance(noise_scales, Mapping)
            else noise_scales
        )
        causes = parents_of(name, coefficients)
        weights = {cause: coefficients[cause, name] for cause in causes}
        base = (intercepts or {}).get(name, 0.0)
        mechanisms[name] = create_linear_mechanism(causes, weights, base, scale)
    return create_scm(
        variables, coefficients, mechanisms, target, ranges=ranges, hidden=hidden
    )
