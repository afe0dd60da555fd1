"""The environment object: reset and step over a buffer of tasks, with spaces."""

import enum
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt

from jaxarc import bits
from jaxarc.actions import BaseAction, MaskAction, as_int32
from jaxarc.envs import checks
from jaxarc.envs.rules import NO_OPERATION, allowed_words
from jaxarc.envs.spaces import Bounded, DictSpace, action_space, grid_space
from jaxarc.envs.starts import EnvParams, auto_reset, draw_seed, start_episode
from jaxarc.envs.transition import advance
from jaxarc.episode import Augmentation, Episode, unpack_flags
from jaxarc.ops.operations import NUM_OPERATIONS
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.state import ArcEnvState, share
from jaxrig.checks import check
from jaxrig.keys import mix

Params: TypeAlias = EnvParams | None  # None: those of the environment


class StepType(enum.IntEnum):
    """Where in an episode a time step lies, and how the episode ended."""

    FIRST = 0
    MID = 1
    TERMINATED = 2
    TRUNCATED = 3


class TimeStep(eqx.Module):
    """Observation, reward and discount, with the kind of the step.

    The discount is 0 only where the episode terminated: a truncated one could have gone
    on, so the value of its last state still counts (Pardo et al., Time Limits in
    Reinforcement Learning, 2018).
    """

    step_type: Int[Array, "*batch"]
    reward: Float[Array, "*batch"]
    discount: Float[Array, "*batch"]
    observation: Any
    extras: dict[str, Any]

    def first(self) -> Bool[Array, "*batch"]:
        """Return whether an episode begins here."""
        return self.step_type == StepType.FIRST

    def terminated(self) -> Bool[Array, "*batch"]:
        """Return whether the rules ended the episode."""
        return self.step_type == StepType.TERMINATED

    def truncated(self) -> Bool[Array, "*batch"]:
        """Return whether a step limit ended the episode."""
        return self.step_type == StepType.TRUNCATED

    def last(self) -> Bool[Array, "*batch"]:
        """Return whether the episode ended, either way."""
        return self.step_type >= StepType.TERMINATED

    def done(self) -> Bool[Array, "*batch"]:
        """Return the same as `last`."""
        return self.last()


def ended_type(
    terminated: Bool[Array, "*batch"], truncated: Bool[Array, "*batch"]
) -> Int[Array, "*batch"]:
    """Return the kind of a step that is not a first one."""
    running = jnp.where(truncated, StepType.TRUNCATED, StepType.MID)
    return jnp.where(terminated, StepType.TERMINATED, running).astype(jnp.int32)


class State(eqx.Module):
    """An episode, and the seed of the ones to follow."""

    episode: Episode
    seed: UInt[Array, "*batch"]

    @property
    def working_grid(self) -> Int[Array, "*batch h w"]:
        """The grid being edited; -1 outside of it."""
        return self.episode.cells()


class Identified(eqx.Module):
    """A module that equals nothing but itself.

    Arrays have no hash, and JAX asks for one where a method is handed to it, as in
    `jax.lax.scan(env.step, ...)`.
    """

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


class Environment(Identified):
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

    @property
    def unwrapped(self) -> "Environment":
        """The environment itself; wrappers give the one they wrap."""
        return self

    def reset(
        self,
        key: Any,
        env_params: Params = None,
        *,
        task: Any = None,
        pair: Any = None,
        augmentation: Augmentation | None = None,
    ) -> tuple[State, TimeStep]:
        """Start an episode; task, pair and augmentation are drawn unless given.

        A task is given by its row, or by its id where nothing is traced. Rows and pairs
        that do not exist are refused; where they are traced, row 0 and pair 0 are taken
        instead.
        """
        params = env_params or self.params
        tasks = params.buffer
        row, pair = checks.checked_start(tasks, params.episode_mode, task, pair)
        shown = checks.checked_augmentation(tasks, augmentation)
        return _reset(params, key, row, pair, shown)

    def step(
        self, state: State, action: Any, env_params: Params = None
    ) -> tuple[State, TimeStep]:
        """Advance by one action; after the end of an episode no reward is paid."""
        params = env_params or self.params
        action, checked = checks.checked_action(as_action(action), params.config)
        after, step = _step(params, state, action)
        if checked:
            fine = checks.action_in_range(action, params.config)
            reward = check(step.reward, fine, checks.ACTION_RULE)
            step = eqx.tree_at(lambda s: s.reward, step, reward)
        return after, step

    def auto_reset(self, state: State, done: Any, env_params: Params = None) -> State:
        """Return the state, or where its episode is done the start of another one."""
        params = env_params or self.params
        episode = auto_reset(params, state.episode, state.seed, done)
        return State(episode, jnp.where(done, mix(state.seed), state.seed))

    def observe(
        self, state: State, env_params: Params = None
    ) -> Int[Array, "*batch h w"]:
        """Return what an agent sees: the working grid."""
        return state.episode.cells()

    def arc_state(self, state: State) -> ArcEnvState:
        """Return the state, or a batch, with all its documented views."""
        tasks, row = self.params.buffer, state.episode.task_row
        return ArcEnvState(share(tasks, row) if row.ndim else tasks, state.episode)

    def observation_space(self, env_params: Params = None) -> Bounded:
        """Return the space of grids of the buffer's padded shape."""
        return grid_space(*(env_params or self.params).buffer.get_grid_shape())

    def action_space(self, env_params: Params = None) -> DictSpace:
        """Return an operation and a set of cells."""
        params = env_params or self.params
        operations = params.config.action.max_operations
        return action_space(operations, *params.buffer.get_grid_shape())

    def reward_space(self, env_params: Params = None) -> Bounded:
        """Return any reward."""
        return Bounded((), float("-inf"), float("inf"), jnp.float32)

    def discount_space(self, env_params: Params = None) -> Bounded:
        """Return the numbers from 0 to 1."""
        return Bounded((), 0.0, 1.0, jnp.float32)

    def state_space(self, env_params: Params = None) -> DictSpace:
        """Return what of a state is a grid."""
        shape = (env_params or self.params).buffer.get_grid_shape()
        grids = ("working_grid", "target_grid", "clipboard")
        return DictSpace(tuple((name, grid_space(*shape)) for name in grids))

    def render(self, state: State, mode: str | None = None) -> Any:
        """Return the working grid as an RGB array, text for a terminal, or SVG."""
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
        """Do nothing: nothing is open."""


# No number of traces bounds these two: every environment brings its own shapes and
# rules. They are compiled so that a call outside of any other program is one program
# instead of a hundred.
@jax.jit
def _reset(
    params: EnvParams,
    key: Any,
    row: Any,
    pair: Any,
    augmentation: Augmentation | None,
) -> tuple[State, TimeStep]:
    seed = draw_seed(key)
    episode = start_episode(params, seed, None, row, pair, augmentation)
    nothing = jnp.full((), NO_OPERATION, jnp.int32)
    cells = jnp.zeros(params.buffer.get_grid_shape(), bool)
    extras = _extras(episode, nothing, nothing, cells, jnp.zeros((), bool))
    first = jnp.asarray(StepType.FIRST, jnp.int32)
    zero, one = jnp.zeros((), jnp.float32), jnp.ones((), jnp.float32)
    state = State(episode, mix(seed))
    return state, TimeStep(first, zero, one, episode.cells(), extras)


@jax.jit
def _step(
    params: EnvParams, state: State, action: BaseAction
) -> tuple[State, TimeStep]:
    shape = params.buffer.get_grid_shape()
    if state.episode.step_count.ndim:
        raise ValueError(
            "the state is a batch, and an environment steps one: put Vectorize around "
            "it, or map its step with jax.vmap"
        )
    checks.check_action_rows(action, ())
    clipped = action.validate(shape)
    episode, transition = advance(params.buffer, state.episode, clipped, params.config)
    terminated = episode.episode_done & ~transition.limited
    asked = clipped.operation.astype(jnp.int32)
    cells = bits.unpack_rows(clipped.pack(shape).rows, shape[1])
    extras = _extras(episode, transition.operation, asked, cells, transition.solved)
    return State(episode, state.seed), TimeStep(
        ended_type(terminated, transition.limited),
        jnp.where(state.episode.episode_done, 0.0, transition.reward),
        1.0 - terminated.astype(jnp.float32),
        episode.cells(),
        extras,
    )


def _extras(
    episode: Episode, done: Array, asked: Array, cells: Array, solved: Array
) -> dict[str, Any]:
    return {
        "operation_id": done,
        "canonical_action": {"operation": asked, "selection": cells},
        "similarity": episode.similarity_score,
        "solved": solved,
    }


def as_action(action: Any) -> Any:
    """Return a structured action, made of `operation` and `selection` if need be."""
    if not isinstance(action, Mapping):
        return action
    wrong = set(action) ^ {"operation", "selection"}
    if wrong:
        raise TypeError(
            "a dictionary action has the keys 'operation' and 'selection'; missing "
            f"or not known: {', '.join(sorted(map(repr, wrong)))}"
        )
    operation = as_int32(action["operation"], "operation")
    return MaskAction(operation, jnp.asarray(action["selection"]))


def possible_operations(env_or_params: Any, state: Any) -> Bool[Array, " operations"]:
    """Return the mask of legal operations: what the rules allow in a state."""
    params, episode = _parts(env_or_params, state)
    words = allowed_words(params.buffer, episode, params.config)
    return unpack_flags(words, NUM_OPERATIONS)


def useful_operations(
    env_or_params: Any, state: Any, action: Any
) -> Bool[Array, " operations"]:
    """Return the legal operations that would change something with this selection.

    Exact, by trying all of them: the grid, its size, the clipboard or the pair becomes
    another one. Submit is always useful. The operation of the action itself does not
    matter. To mask a policy: `jnp.where(useful, logits, -jnp.inf)`.
    """
    params, episode = _parts(env_or_params, state)
    action = as_action(action)
    checks.check_action_kind(action)
    action = checks.as_arrays(action, params.config.action.selection_threshold)
    action = action.validate(params.buffer.get_grid_shape())
    rules = replace(params.config.action, invalid_operation_policy="passthrough")
    config = replace(params.config, action=rules)

    def changes(operation: Int[Array, ""]) -> Bool[Array, ""]:
        tried = replace(action, operation=operation)
        after, _ = advance(params.buffer, episode, tried, config)
        return _differs(episode, after)

    operations = jnp.arange(NUM_OPERATIONS, dtype=jnp.int32)
    useful = jax.vmap(changes)(operations) | (operations == Op.SUBMIT)
    return useful & possible_operations(env_or_params, state)


def _parts(env_or_params: Any, state: Any) -> tuple[EnvParams, Episode]:
    params = getattr(env_or_params, "params", env_or_params)
    if hasattr(state, "episode"):
        return params, state.episode
    return params, env_or_params.arc_state(state).episode


def _differs(before: Episode, after: Episode) -> Bool[Array, ""]:
    shown = [(e.canvas, e.current_example_idx) for e in (before, after)]
    differs = jax.tree.map(lambda a, b: jnp.any(a != b), *shown)
    return jnp.any(jnp.stack(jax.tree.leaves(differs)))
