"""Give actions another form, and observations more channels.

An action may be a point, two corners or one number; channels show the input, the
clipboard, the answer or the demonstrations.
"""

import dataclasses
import math
from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxarc import bits
from jaxarc.actions import BboxAction, PointAction, as_int32
from jaxarc.envs.environment import Params
from jaxarc.envs.spaces import Bounded, DictSpace, Discrete
from jaxarc.episode import Episode, current_pair, load_pair, pair_counts
from jaxarc.types import JaxArcTask
from jaxarc.wrappers.episodes import (
    AutoReset,
    Result,
    Vectorize,
    Wrapper,
    refuse_around,
)

Channels = Int[Array, "h w channels"]


class ComponentActionWrapper(Wrapper):
    """Actions are dictionaries of single numbers; subclasses say which."""

    kind: ClassVar[type[PointAction | BboxAction]]

    def action_space(self, env_params: Params = None) -> DictSpace:
        """Return a space with a number for each component."""
        params = env_params or self.params
        shape = params.buffer.get_grid_shape()
        operations = Discrete(params.config.action.max_operations)
        cells = [(name, Discrete(shape[axis])) for name, axis in self.kind.axes.items()]
        return DictSpace((("operation", operations), *cells))

    def step(self, state: Any, action: Any, env_params: Params = None) -> Result:
        """Advance by one action, a dictionary or a structured one."""
        if isinstance(action, dict):
            names = ("operation", *self.kind.axes)
            if set(action) != set(names):
                raise ValueError(
                    f"an action has {', '.join(sorted(action))}: it needs "
                    f"{', '.join(names)}"
                )
            action = self.kind(*(as_int32(action[name], name) for name in names))
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
        spaces = [space for _, space in self._components()]
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

    def action_space(self, env_params: Params = None) -> Discrete:
        """Return as many numbers as there are actions."""
        components = self._components(env_params)
        return Discrete(math.prod(space.num_values for _, space in components))

    def step(self, state: Any, action: Any, env_params: Params = None) -> Result:
        """Step with the action of this number."""
        return self.env.step(state, self.unflatten(action, env_params), env_params)

    def unflatten(
        self, action: Any, env_params: Params = None
    ) -> dict[str, Int[Array, "*batch"]]:
        """Return the components of a number.

        One that is out of range gives a first component out of range, which is refused
        or clipped as the configuration says.
        """
        rest, found = as_int32(action, "the action"), {}
        (first, _), *others = self._components(env_params)
        for name, space in reversed(others):
            found[name] = rest % space.num_values
            rest = rest // space.num_values
        return {first: rest} | found

    def _components(self, env_params: Params = None) -> tuple[tuple[str, Any], ...]:
        space = self.env.action_space(env_params)
        return space.spaces if isinstance(space, DictSpace) else ()


class SeeingWrapper(Wrapper):
    """Shows something else than the environment inside; subclasses say what."""

    def __check_init__(self):
        refuse_around(self, AutoReset, Vectorize)

    @abstractmethod
    def seen(self, inner: Array, state: Any, env_params: Params) -> Array:
        """Return what to show of a state, of which `inner` was shown."""

    def observe(self, state: Any, env_params: Params = None) -> Array:
        """Return what an agent sees."""
        return self.seen(self.env.observe(state, env_params), state, env_params)

    def reset(self, key: Any, env_params: Params = None, **start: Any) -> Result:
        """Start an episode."""
        return self._shown(self.env.reset(key, env_params, **start), env_params)

    def step(self, state: Any, action: Any, env_params: Params = None) -> Result:
        """Advance by one action."""
        return self._shown(self.env.step(state, action, env_params), env_params)

    def _shown(self, result: Result, env_params: Params) -> Result:
        state, step = result
        observation = self.seen(step.observation, state, env_params)
        return state, dataclasses.replace(step, observation=observation)


class ObservationWrapper(SeeingWrapper):
    """Adds channels behind those there are; a plain grid becomes the first one."""

    @property
    def added(self) -> int:
        """Return how many channels are added."""
        return 1

    @abstractmethod
    def channels(self, tasks: JaxArcTask, episode: Episode) -> Channels:
        """Return the channels to add."""

    def seen(self, inner: Array, state: Any, env_params: Params) -> Array:
        """Return all channels."""
        inner = inner[..., None] if inner.ndim == 2 else inner
        params = env_params or self.params
        more = self.channels(params.buffer, self.env.arc_state(state).episode)
        return jnp.concatenate([inner, more], axis=-1)

    def observation_space(self, env_params: Params = None) -> Bounded:
        """Return the space of grids with channels."""
        inner = self.env.observation_space(env_params)
        channels = inner.shape[2] if len(inner.shape) == 3 else 1
        shape = (*inner.shape[:2], channels + self.added)
        return Bounded(shape, inner.low, inner.high, inner.dtype)


class ClipboardObservationWrapper(ObservationWrapper):
    """The clipboard, -1 where it holds nothing."""

    def channels(self, tasks: JaxArcTask, episode: Episode) -> Channels:
        """Return the clipboard."""
        planes, content = episode.clipboard[: bits.PLANES], episode.clipboard[-1]
        return bits.unpack_grid(planes, content, episode.width)[..., None]


class InputGridObservationWrapper(ObservationWrapper):
    """The input of the current pair, as it was before any editing."""

    def channels(self, tasks: JaxArcTask, episode: Episode) -> Channels:
        """Return the input."""
        return current_pair(tasks, episode).given.cells()[..., None]


class AnswerObservationWrapper(ObservationWrapper):
    """The output of the current pair, in test mode too: for debugging and baselines.

    `hidden` keeps the channel and leaves it all padding: an agent that was trained with
    answers can be evaluated without them.
    """

    hidden: bool = eqx.field(default=False, static=True)

    def channels(self, tasks: JaxArcTask, episode: Episode) -> Channels:
        """Return the answer."""
        answer = current_pair(tasks, episode).wanted.cells()[..., None]
        return jnp.full_like(answer, bits.PADDING) if self.hidden else answer


class ContextualObservationWrapper(ObservationWrapper):
    """Inputs and outputs of demonstrations: in0, out0, in1, out1 and so on.

    In train mode the current pair is left out; missing pairs are all padding.
    """

    num_context_pairs: int = eqx.field(default=5, static=True)

    def __check_init__(self):
        if self.num_context_pairs < 1:
            raise ValueError(
                f"num_context_pairs is {self.num_context_pairs}: show at least one pair"
            )

    @property
    def added(self) -> int:
        """Return two channels per pair."""
        return 2 * self.num_context_pairs

    def channels(self, tasks: JaxArcTask, episode: Episode) -> Channels:
        """Return the demonstrations."""
        count, _ = pair_counts(tasks, episode.task_row)
        place = jnp.arange(self.num_context_pairs, dtype=jnp.int32)
        training = episode.episode_mode == 0
        skips = training & (place >= episode.current_example_idx)
        index = place + skips.astype(jnp.int32)

        def one(index: Int[Array, ""]) -> Int[Array, "two h w"]:
            pair = load_pair(tasks, episode.task_row, index, episode.augmentation)
            cells = jnp.stack([pair.given.cells(), pair.wanted.cells()])
            return jnp.where(index < count, cells, bits.PADDING)

        grids = jax.vmap(one)(index)
        return jnp.moveaxis(grids.reshape(-1, *grids.shape[2:]), 0, -1)
