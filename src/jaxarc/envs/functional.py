"""Reset and step, for one environment and for a batch.

Each function compiles itself once per configuration, shape and kind of action. In the
default error mode a direct call checks its action on the host, so that the compiled
step holds no callback; inside another compiled function the check is traced with it.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt

from jaxarc.config import JaxArcConfig
from jaxarc.envs import checks
from jaxarc.envs.direct_calls import DirectCall, fields_of, make_module, with_fields
from jaxarc.envs.starts import EnvParams, draw_seed, start_episode
from jaxarc.envs.transition import advance
from jaxarc.episode import Augmentation, Episode, is_stack, pair_counts
from jaxarc.ops.operations import FIRST_CONTROL
from jaxarc.state import ArcEnvState, SharedTasks, share
from jaxarc.types import JaxArcTask
from jaxrig.checks import check

# What a step may change of an episode; where no history is kept, not the last.
_STEPPED = (
    *("planes", "clipboard", "selection", "counters", "current_example_idx"),
    *("step_count", "episode_done", "similarity_score", "action_history"),
)

Observation = Int[Array, "*batch h w"]
Info = dict[str, Array]
StepResult = tuple[
    ArcEnvState, Observation, Float[Array, "*batch"], Bool[Array, "*batch"], Info
]


def arc_reset(
    key: PRNGKeyArray | UInt[Array, " two"],
    config: Any,
    task_data: JaxArcTask | None = None,
    episode_mode: int | None = None,
    initial_pair_idx: Any = None,
    *,
    task_row: Any = None,
    augmentation: Augmentation | None = None,
) -> tuple[ArcEnvState, Observation]:
    """Return a fresh state and its first observation.

    `episode_mode` is 0 for demonstrations, 1 for tests (default: the configuration's);
    `initial_pair_idx` picks the pair, otherwise the configured strategy does. Of a
    stack of tasks `task_row` picks one, by its row or its id, otherwise the key does.
    Without a task there is a made-up one.
    """
    chosen = {"task_row": task_row, "initial_pair_idx": initial_pair_idx}
    return _reset(key, config, task_data, episode_mode, chosen, augmentation)


def arc_step(state: ArcEnvState, action: Any, config: Any) -> StepResult:
    """Return state, observation, reward, done and info after one action."""
    return _take_step(_step_one, state, action, config)


def batch_reset(
    keys: Any,
    config: Any,
    task_data: JaxArcTask | None = None,
    episode_mode: int | None = None,
    initial_pair_idx: Any = None,
    *,
    task_indices: Any = None,
    augmentation: Augmentation | None = None,
) -> tuple[ArcEnvState, Observation]:
    """Return fresh states, one for every key, on one task or on a stack of tasks.

    Of a stack each key draws a row, or `task_indices` gives one for each, as rows or
    ids; equal keys make equal starts. The task is shared, never copied.
    """
    chosen = {"task_indices": task_indices, "initial_pair_idx": initial_pair_idx}
    count = checks.count_keys(keys)
    return _reset(keys, config, task_data, episode_mode, chosen, augmentation, count)


def batch_step(states: ArcEnvState, actions: Any, config: Any) -> StepResult:
    """Step every row of a batch as `arc_step` does; any axes may lead."""
    return _take_step(_step_many, states, actions, config)


def _reset(
    key: Any,
    config: Any,
    tasks: JaxArcTask | None,
    mode: int | None,
    chosen: dict[str, Any],
    augmentation: Augmentation | None,
    count: int | None = None,
) -> tuple[ArcEnvState, Observation]:
    """Return one fresh state, or `count` of them; `chosen` are row and pair."""
    config = checks.as_config(config)
    tasks, mode = checks.tasks_or_demo(tasks, config), checks.checked_mode(mode, config)
    (row, pair), many = chosen.values(), count is not None
    row, pair = checks.checked_start(tasks, mode, row, pair, tuple(chosen), count)
    checks.check_pairs(tasks, mode, row)
    augmentation = checks.checked_augmentation(tasks, augmentation, count)
    episode, seen = _start(
        *(key, tasks, pair, row, augmentation), rules=(config, mode, many)
    )
    source = share(tasks, episode.task_row) if many else tasks
    return make_module(ArcEnvState, {"source": source, "episode": episode}), seen


@DirectCall
def _start(
    key: Any,
    tasks: JaxArcTask,
    pair: Any,
    row: Any,
    augmentation: Augmentation | None,
    rules: tuple[JaxArcConfig, int, bool],
) -> tuple[Episode, Observation]:
    """Start as `Environment.reset` does, so that equal keys make equal starts."""
    config, mode, many = rules
    params = EnvParams(tasks, None, config, mode, augment=False)

    def start(key: Any, pair: Any, row: Any, augmentation: Any) -> Episode:
        return start_episode(params, draw_seed(key), None, row, pair, augmentation)

    start = jax.vmap(start) if many else start
    episode = start(key, pair, row, augmentation)
    return episode, episode.cells()


def _take_step(
    step: DirectCall, state: ArcEnvState, action: Any, config: Any
) -> StepResult:
    """Return the documented five results.

    Done and half of `info` are parts of the new state, named again here because every
    array that a compiled call returns costs a microsecond or two.
    """
    config = checks.as_config(config)
    action, checked = checks.checked_action(action, config)
    source, episode = fields_of(state)["source"], fields_of(state)["episode"]
    shared = isinstance(source, SharedTasks)
    tasks = source.tasks if shared else source
    changed, observation, reward, info = step(
        tasks, episode, action, rules=(config, checked, shared)
    )
    episode = with_fields(episode, changed)
    parts = fields_of(episode)
    if "available_demo_pairs" not in info:
        info["available_demo_pairs"] = fields_of(tasks)["num_train_pairs"]
        info["available_test_pairs"] = fields_of(tasks)["num_test_pairs"]
    info["similarity"] = parts["similarity_score"]
    info["step_count"] = parts["step_count"]
    info["episode_mode"] = parts["episode_mode"]
    info["current_pair_index"] = parts["current_example_idx"]
    state = make_module(ArcEnvState, {"source": source, "episode": episode})
    return state, observation, reward, parts["episode_done"], info


def _step(
    tasks: JaxArcTask, episode: Episode, action: Any, rules: tuple[Any, ...]
) -> tuple[Info, Array, Array, Info]:
    """Return what a step changes by name, observation, reward, and of `info` what
    neither episode nor task holds: every array that a call takes or gives costs.
    """
    config, checked, shared = rules
    advance_one = functools.partial(_advance, config=config, checked=checked)
    rows = episode.step_count.shape
    checks.check_action_rows(action, rows)
    for _ in rows:  # one axis mostly; a batch that was reshaped has several
        advance_one = jax.vmap(advance_one, in_axes=(None if shared else 0, 0, 0))
    after, reward, info = advance_one(tasks, episode, action)
    names = _STEPPED if after.action_history.size else _STEPPED[:-1]
    changed = {name: getattr(after, name) for name in names}
    if not rows and not is_stack(tasks):
        del info["available_demo_pairs"], info["available_test_pairs"]
    return changed, after.cells(), reward, info


_step_one, _step_many = DirectCall(_step, one_by_one=True), DirectCall(_step)


def _advance(
    tasks: JaxArcTask,
    episode: Episode,
    action: Any,
    config: JaxArcConfig,
    checked: bool,
) -> tuple[Episode, Array, Info]:
    """Return episode, reward, and what `info` holds that the episode does not."""
    clipped = action.validate(tasks.get_grid_shape())
    after, transition = advance(tasks, episode, clipped, config)
    reward = transition.reward
    if checked:
        fine = checks.action_in_range(action, config)
        reward = check(reward, fine, checks.ACTION_RULE)
    demos, tests = pair_counts(tasks, episode.task_row)
    control = transition.operation >= FIRST_CONTROL
    return (
        after,
        reward,
        {
            "success": transition.solved,
            "similarity_improvement": transition.improvement,
            "is_control_operation": control,
            "operation_type": control.astype(jnp.int32),
            "available_demo_pairs": demos,
            "available_test_pairs": tests,
            "action_history_length": after.action_history_length,
        },
    )
