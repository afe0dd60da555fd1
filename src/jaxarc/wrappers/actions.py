"""Give actions another form: a point, two corners, one number."""

import math
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxarc.actions import BboxAction, PointAction
from jaxarc.envs.environment import TimeStep
from jaxarc.envs.spaces import DictSpace, Discrete
from jaxarc.envs.starts import EnvParams
from jaxarc.wrappers.episodes import Wrapper


class ComponentActionWrapper(Wrapper):
    """Actions are dictionaries of single numbers; subclasses say which."""

    kind: ClassVar[type[PointAction | BboxAction]]

    def action_space(self, env_params: EnvParams | None = None) -> DictSpace:
        """Return a space with a number for each component."""
        shape = self.params.buffer.get_grid_shape()
        operations = Discrete(self.params.config.action.max_operations)
        cells = [(name, Discrete(shape[axis])) for name, axis in self.kind.axes.items()]
        return DictSpace((("operation", operations), *cells))

    def step(
        self, state: Any, action: Any, env_params: EnvParams | None = None
    ) -> tuple[Any, TimeStep]:
        """Advance by one action, a dictionary or a structured one."""
        if isinstance(action, dict):
            names = ("operation", *self.kind.axes)
            if set(action) != set(names):
                raise ValueError(
                    f"an action has {', '.join(sorted(action))}: it needs "
                    f"{', '.join(names)}"
                )
            action = self.kind(*(jnp.asarray(action[name]) for name in names))
        return self.env.step(state, action, env_params)


class PointActionWrapper(ComponentActionWrapper):
    """Actions are `operation`, `row` and `col`."""

    kind = PointAction


class BboxActionWrapper(ComponentActionWrapper):
    """Actions are `operation` and the corners `r1`, `c1`, `r2`, `c2`."""

    kind = BboxAction


class FlattenActionWrapper(Wrapper):
    """One number for a whole action: its components, the first most significant."""

    def __check_init__(self):
        spaces = [space for _, space in self._components]
        if not spaces or not all(isinstance(space, Discrete) for space in spaces):
            raise ValueError(
                "only actions made of single numbers can be flattened: a mask of cells "
                "would need 2^(height x width) values; use PointActionWrapper or "
                "BboxActionWrapper below it"
            )
        count = math.prod(space.num_values for space in spaces)
        if count > jnp.iinfo(jnp.int32).max:
            raise ValueError(
                f"{count} actions do not fit in an int32: use "
                "PointActionWrapper, or smaller grids"
            )

    def action_space(self, env_params: EnvParams | None = None) -> Discrete:
        """Return as many numbers as there are actions."""
        return Discrete(math.prod(space.num_values for _, space in self._components))

    def step(
        self, state: Any, action: Any, env_params: EnvParams | None = None
    ) -> tuple[Any, TimeStep]:
        """Step with the action of this number."""
        return self.env.step(state, self.unflatten(action), env_params)

    def unflatten(self, action: Any) -> dict[str, Int[Array, "*batch"]]:
        """Return the components of a number.

        One that is out of range gives a first component out of range, which is refused
        or clipped as the configuration says.
        """
        number = jnp.asarray(action)
        if not jnp.issubdtype(number.dtype, jnp.integer):
            raise TypeError(f"the action is {number.dtype}: give a whole number")
        rest, components = number.astype(jnp.int32), {}
        for name, space in reversed(self._components[1:]):
            components[name] = rest % space.num_values
            rest = rest // space.num_values
        return {self._components[0][0]: rest} | components

    @property
    def _components(self) -> tuple[tuple[str, Any], ...]:
        space = self.env.action_space()
        return space.spaces if isinstance(space, DictSpace) else ()
