"""Smoothing kernels as profiles of q = r / h with their constants and supports."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

# Beyond it exp(-q^2) holds less than 1e-17 of the kernel, under float64 rounding.
GAUSSIAN_SUPPORT = 6.5


def cubic_spline(q: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """1 - 1.5 q^2 + 0.75 q^3 for q < 1, 0.25 (2 - q)^3 for q < 2, else 0."""
    outer = jnp.maximum(2.0 - q, 0.0)
    inner = jnp.maximum(1.0 - q, 0.0)
    return 0.25 * outer * outer * outer - inner * inner * inner


def wendland(q: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Wendland C2 over two smoothing lengths: (1 - q/2)^4 (1 + 2 q) for q < 2."""
    q = jnp.minimum(q, 2.0)  # infinitely far is 0, not 0 times infinity
    square = jnp.square(1.0 - 0.5 * q)
    return square * square * (1.0 + 2.0 * q)


def gaussian(q: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """exp(-q^2), cut where what is left of it is lost in rounding."""
    return jnp.where(q < GAUSSIAN_SUPPORT, jnp.exp(-q * q), 0.0)


def normal(q: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """exp(-q^2 / 2), the profile of the KDE; never cut."""
    return jnp.exp(-0.5 * q * q)


@dataclass(frozen=True)
class Kernel:
    """W(r, h) = constant / h^d * profile(r / h), zero from `support` * h on."""

    name: str
    profile: Callable[..., Float[Array, "*shape"]]
    constants: tuple[float, float]  # in two and in three dimensions
    support: float

    def constant(self, dimensions: int) -> float:
        """The factor that makes the kernel integrate to 1 in 2 or 3 dimensions."""
        if dimensions not in (2, 3):
            raise ValueError(f"dimensions is {dimensions!r}: kernels are 2-D or 3-D")
        return self.constants[dimensions - 2]

    def inside(self, q: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """1 within the support and 0 beyond: summed, it counts neighbors."""
        return (q < self.support).astype(q.dtype)

    def __call__(
        self, r: Float[Array, "*shape"], h: float, dimensions: int
    ) -> Float[Array, "*shape"]:
        """The kernel of smoothing length `h` at distances `r`."""
        return self.constant(dimensions) / h**dimensions * self.profile(r / h)


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("cubic_spline", cubic_spline, (10 / (7 * math.pi), 1 / math.pi), 2.0),
        Kernel("wendland", wendland, (7 / (4 * math.pi), 21 / (16 * math.pi)), 2.0),
        Kernel("gaussian", gaussian, (1 / math.pi, math.pi**-1.5), GAUSSIAN_SUPPORT),
    )
}
NORMAL = Kernel("normal", normal, (1 / (2 * math.pi), (2 * math.pi) ** -1.5), math.inf)


def get_kernel(name: str) -> Kernel:
    """The registered kernel of this name."""
    if name not in KERNELS:
        raise ValueError(f"kernel {name!r} is unknown: choose one of {list(KERNELS)}")
    return KERNELS[name]
