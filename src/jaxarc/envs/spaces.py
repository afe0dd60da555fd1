"""Spaces of actions and observations, which sample and check."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Shape = tuple[int, ...]


class Space:
    """A set of arrays, or of dictionaries of them; hashable, so static under jit."""

    @abstractmethod
    def sample(self, key: Any, batch: Shape = ()) -> Any:
        """Draw members uniformly, with these leading axes."""

    @abstractmethod
    def contains(self, value: Any) -> bool:
        """Return whether a concrete value is one of its members."""


@dataclass(frozen=True)
class Discrete(Space):
    """Whole numbers from 0 to `num_values - 1`."""

    num_values: int
    shape: Shape = ()
    dtype: Any = jnp.int32

    def sample(self, key: Any, batch: Shape = ()) -> jax.Array:
        """Draw whole numbers, each as likely."""
        return jax.random.randint(key, batch, 0, self.num_values, jnp.int32)

    def contains(self, value: Any) -> bool:
        """Return whether this is a whole number in range."""
        array = np.asarray(value)
        whole = array.shape == () and np.issubdtype(array.dtype, np.integer)
        return bool(whole and 0 <= array < self.num_values)


@dataclass(frozen=True)
class Bounded(Space):
    """Arrays of one shape and type between two bounds, both included."""

    shape: Shape
    low: float
    high: float
    dtype: Any = jnp.int32

    def sample(self, key: Any, batch: Shape = ()) -> jax.Array:
        """Draw every element uniformly, or without bounds from a normal."""
        shape = (*batch, *self.shape)
        if jnp.issubdtype(self.dtype, jnp.integer):
            low, high = int(self.low), int(self.high) + 1
            return jax.random.randint(key, shape, low, high, self.dtype)
        if math.isinf(self.high - self.low):
            return jax.random.normal(key, shape, self.dtype)
        return jax.random.uniform(key, shape, self.dtype, self.low, self.high)

    def contains(self, value: Any) -> bool:
        """Return whether shape, type and every element fit."""
        array = np.asarray(value)
        fits = array.shape == self.shape and array.dtype == np.dtype(self.dtype)
        return bool(fits and np.all((array >= self.low) & (array <= self.high)))


@dataclass(frozen=True)
class MultiBinary(Space):
    """Arrays of booleans."""

    shape: Shape
    dtype: Any = jnp.bool_

    def sample(self, key: Any, batch: Shape = ()) -> jax.Array:
        """Draw arrays whose elements are True half of the time."""
        return jax.random.bernoulli(key, 0.5, (*batch, *self.shape))

    def contains(self, value: Any) -> bool:
        """Return whether this is an array of booleans, or of zeros and ones."""
        array = np.asarray(value)
        return array.shape == self.shape and bool(np.isin(array, (0, 1)).all())


@dataclass(frozen=True)
class DictSpace(Space):
    """Dictionaries with a space for every name, in order."""

    spaces: tuple[tuple[str, Space], ...]

    def sample(self, key: Any, batch: Shape = ()) -> dict[str, Any]:
        """Return a dictionary with a sample of every space."""
        keys = jax.random.split(key, len(self.spaces))
        drawn = zip(self.spaces, keys, strict=True)
        counts = [s.num_values for _, s in self.spaces if isinstance(s, Discrete)]
        if len(counts) == len(self.spaces):
            # Together: XLA compiles the generator's kernels anew for each call, which
            # would be a quarter of an environment's step.
            draw = lambda one, most: jax.random.randint(one, batch, 0, most, jnp.int32)
            numbers = jax.vmap(draw)(keys, jnp.array(counts))
            return {name: numbers[i] for i, (name, _) in enumerate(self.spaces)}
        return {name: space.sample(one, batch) for (name, space), one in drawn}

    def contains(self, value: Any) -> bool:
        """Return whether the names are these and every value lies in its space."""
        if not isinstance(value, Mapping) or set(value) != set(dict(self.spaces)):
            return False
        return all(space.contains(value[name]) for name, space in self.spaces)


def grid_space(height: int, width: int) -> Bounded:
    """Return the space of grids: colors 0 to 9, and -1 for padding."""
    return Bounded((height, width), -1, 9, jnp.int32)


def action_space(operations: int, height: int, width: int) -> DictSpace:
    """Return an operation and the cells it acts on."""
    cells = MultiBinary((height, width))
    return DictSpace((("operation", Discrete(operations)), ("selection", cells)))
