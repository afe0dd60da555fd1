"""The environment object: reset and step over a buffer of tasks, with spaces."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, UInt

from jaxarc.actions import MaskAction
from jaxarc.envs.arguments import as_index, check_choice, checked_action
from jaxarc.envs.episode import advance
from jaxarc.envs.params import EnvParams
from jaxarc.envs.renewal import renew, start_episode
from jaxarc.envs.spaces import Bounded, DictSpace, action_space, grid_space
from jaxarc.envs.stepping import observe
from jaxarc.envs.timestep import StepType, TimeStep, ended_type
from jaxarc.episode import Episode
from jaxarc.pairs import Augmentation
from jaxarc.state import ArcEnvState
from jaxarc.validation import ACTION_RULE, action_in_range
from jaxrig.checks import check
from jaxrig.keys import mix

NO_OPERATION = -1


class State(eqx.Module):
    """An episode, and the seed of the ones to follow."""

    episode: Episode
    seed: UInt[Array, "*batch"]


class Environment(eqx.Module):
    """ARC tasks as an environment for reinforcement learning.

    A pytree: pass it to compiled functions as an argument, and the tasks are held once
    however many environments are mapped over it (`jax.jit(env.step)` works too, with
    the tasks as constants of the program). Actions are structured actions or a
    dictionary of `operation` and `selection`. A step's `extras["canonical_action"]` is
    the action in that general form, as it was asked for; `operation_id` is the
    operation that was carried out. Both are -1 after a reset.
    """

    params: EnvParams

    def __init__(
        self,
        config: Any = None,
        buffer: Any = None,
        episode_mode: Any = None,
        subset_indices: Any = None,
        *,
        augment: bool = False,
        params: EnvParams | None = None,
    ):
        if params is None:
            if config is None or buffer is None:
                raise TypeError("an Environment needs a configuration and a buffer")
            params = EnvParams.from_config(
                config, buffer, episode_mode, subset_indices, augment
            )
        self.params = params

    # Arrays have no hash, and JAX asks for one where a method is handed to it, as in
    # jax.lax.scan(env.step, ...).
    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    @property
    def unwrapped(self) -> "Environment":
        """The environment itself; wrappers give the one they wrap."""
        return self

    def reset(
        self,
        key: Any,
        env_params: EnvParams | None = None,
        *,
        task: Any = None,
        pair: Any = None,
        augmentation: Augmentation | None = None,
    ) -> tuple[State, TimeStep]:
        """A fresh episode; task row, pair and augmentation are drawn unless given.

        Rows and pairs that do not exist are refused; where they are traced, row 0 and
        pair 0 are taken instead.
        """
        params = self.params if env_params is None else env_params
        check_choice(params.buffer, params.episode_mode, pair, task)
        seed = jax.random.bits(key, (), jnp.uint32)
        episode = start_episode(
            params, seed, None, as_index(task), as_index(pair), augmentation
        )
        nothing = jnp.full((), NO_OPERATION, jnp.int32)
        cells = jnp.zeros(params.buffer.get_grid_shape(), bool)
        extras = {
            "operation_id": nothing,
            "canonical_action": {"operation": nothing, "selection": cells},
            "similarity": episode.similarity_score,
            "solved": jnp.zeros((), bool),
        }
        first = jnp.asarray(StepType.FIRST, jnp.int32)
        zero, one = jnp.zeros(()), jnp.ones(())
        state = State(episode, mix(seed))
        return state, TimeStep(first, zero, one, self.observe(state), extras)

    def step(
        self, state: State, action: Any, env_params: EnvParams | None = None
    ) -> tuple[State, TimeStep]:
        """What follows an action; after the end of an episode no reward is paid."""
        params = self.params if env_params is None else env_params
        action = as_action(action, params.config.action.selection_threshold)
        action, checked = checked_action(action, params.config)
        episode, transition = advance(
            params.buffer, state.episode, action, params.config
        )
        reward = jnp.where(state.episode.episode_done, 0.0, transition.reward)
        if checked:
            reward = check(reward, action_in_range(action, params.config), ACTION_RULE)
        after = State(episode, state.seed)
        terminated = episode.episode_done & ~transition.limited
        extras = {
            "operation_id": transition.operation,
            "canonical_action": _canonical(action, params),
            "similarity": episode.similarity_score,
            "solved": transition.solved,
        }
        return after, TimeStep(
            ended_type(terminated, transition.limited),
            reward,
            1.0 - terminated.astype(jnp.float32),
            self.observe(after),
            extras,
        )

    def renew(
        self, state: State, done: Any, env_params: EnvParams | None = None
    ) -> State:
        """The state, or where its episode is done the start of another one."""
        params = self.params if env_params is None else env_params
        episode = renew(params, state.episode, state.seed, done)
        return State(episode, jnp.where(done, mix(state.seed), state.seed))

    def observe(
        self, state: State, env_params: EnvParams | None = None
    ) -> Int[Array, "*batch h w"]:
        """What an agent sees: the working grid."""
        return observe(state.episode)

    def arc_state(self, state: State) -> ArcEnvState:
        """The state with all its documented views."""
        return ArcEnvState(self.params.buffer, state.episode)

    def observation_space(self, env_params: EnvParams | None = None) -> Bounded:
        """Grids of the buffer's padded shape."""
        return grid_space(*self.params.buffer.get_grid_shape())

    def action_space(self, env_params: EnvParams | None = None) -> DictSpace:
        """An operation and a set of cells."""
        operations = self.params.config.action.max_operations
        return action_space(operations, *self.params.buffer.get_grid_shape())

    def reward_space(self, env_params: EnvParams | None = None) -> Bounded:
        """Any reward."""
        return Bounded((), float("-inf"), float("inf"), jnp.float32)

    def discount_space(self, env_params: EnvParams | None = None) -> Bounded:
        """From 0 to 1."""
        return Bounded((), 0.0, 1.0, jnp.float32)

    def state_space(self, env_params: EnvParams | None = None) -> DictSpace:
        """What of a state is a grid."""
        shape = self.params.buffer.get_grid_shape()
        grids = ("working_grid", "target_grid", "clipboard")
        return DictSpace(tuple((name, grid_space(*shape)) for name in grids))

    def render(self, state: State, mode: str | None = None) -> Any:
        """The working grid as an RGB array, text for a terminal, or SVG."""
        from jaxarc.draw import draw_grid, render_ansi, render_rgb

        drawers = {
            "rgb_array": render_rgb,
            "ansi": render_ansi,
            "svg": lambda grid: draw_grid(grid).as_svg(),
        }
        mode = self.params.config.environment.render_mode if mode is None else mode
        if mode not in drawers:
            raise ValueError(
                f"render mode {mode!r} is not one of: {', '.join(drawers)}"
            )
        return drawers[mode](self.observe(state))

    def close(self) -> None:
        """Nothing is open."""


def reset(params: EnvParams, key: Any) -> tuple[State, TimeStep]:
    """A fresh episode: `Environment.reset` as a function."""
    return Environment(params=params).reset(key)


def step(params: EnvParams, state: State, action: Any) -> tuple[State, TimeStep]:
    """What follows an action: `Environment.step` as a function."""
    return Environment(params=params).step(state, action)


def as_action(action: Any, threshold: float = 0.5) -> Any:
    """A structured action as it is; `operation` and `selection` as a mask action.

    Of a selection of fractions the cells at the threshold and above are selected.
    """
    if isinstance(action, Mapping) and set(action) == {"operation", "selection"}:
        selection = jnp.asarray(action["selection"])
        if jnp.issubdtype(selection.dtype, jnp.floating):
            selection = selection >= threshold
        return MaskAction(jnp.asarray(action["operation"]), selection.astype(bool))
    return action


def _canonical(action: Any, params: EnvParams) -> dict[str, Array]:
    """Operation and cells of an action, clipped into range."""
    shape = params.buffer.get_grid_shape()
    action = action.validate(shape, params.config.action.max_operations)
    return {
        "operation": action.operation.astype(jnp.int32),
        "selection": action.to_selection_mask(shape),
    }
