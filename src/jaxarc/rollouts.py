"""Run a random agent in many environments at once."""

import time
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.actions import BboxAction, MaskAction, PointAction
from jaxarc.envs.environment import Environment
from jaxarc.recording import Recording, action_numbers, is_repeatable
from jaxarc.tasks.identity import extract_task_id_from_index
from jaxarc.wrappers import (
    AutoReset,
    BboxActionWrapper,
    MetricsWrapper,
    PointActionWrapper,
    Vectorize,
    Wrapper,
)
from jaxrig.compile_guard import compile_once
from jaxrig.progress import Meter, scan_with_progress

KINDS: dict[str, tuple[Any, Any]] = {
    "point": (PointAction, PointActionWrapper),
    "bbox": (BboxAction, BboxActionWrapper),
    "mask": (MaskAction, Wrapper),
}
FORMS = tuple(KINDS)


@dataclass(frozen=True)
class RolloutResult:
    """What a rollout did; means are over finished episodes, nan where there are none.

    `best_similarity` is the best any environment reached; `recording` holds the first
    episode of the first environment, unless its task has no id or no replay could
    repeat it.
    """

    environments: int
    steps: int
    tasks: int
    form: str
    seconds: float
    compile_seconds: float
    episodes: int
    solved: int
    mean_return: float
    mean_length: float
    best_similarity: float
    recording: Recording | None

    @property
    def steps_per_second(self) -> float:
        """Return environment steps per second, without compiling."""
        return self.environments * self.steps / self.seconds


def random_rollout(
    env: Environment,
    form: str = "point",
    environments: int = 256,
    steps: int = 200,
    seed: int = 0,
    meter: Meter | None = None,
) -> RolloutResult:
    """Step many environments with random actions; finished ones begin again.

    With `environment.auto_reset` off each plays one episode and counts no further.
    """
    if environments < 1 or steps < 1:
        raise ValueError(
            f"{environments} environments and {steps} steps: both are at least 1"
        )
    if form not in FORMS:
        raise ValueError(f"actions {form!r} are not one of: {', '.join(FORMS)}")
    # AutoReset goes around the metrics, so that they start again with each episode.
    many = Vectorize(AutoReset(MetricsWrapper(KINDS[form][1](env))))
    start_key, run_key = jax.random.split(jax.random.key(seed))
    keys = jax.random.split(start_key, environments)
    reset = compile_once(lambda env, keys: env.reset(keys)[0])
    meter = meter or Meter()
    try:
        begin = time.perf_counter()
        state = reset(many, keys)
        # The first of the environments, without its metrics.
        first = env.arc_state(jax.tree.map(lambda x: x[0], state.inner))
        step_keys = jax.random.split(run_key, steps)
        # Compiled ahead of time, so that `seconds` holds no compilation.
        run = jax.jit(_runner(environments, form, meter)).lower(many, state, step_keys)
        compiled = run.compile()
        compile_seconds = time.perf_counter() - begin
        begin = time.perf_counter()
        sums, trail = jax.block_until_ready(compiled(many, state, step_keys))
        seconds = time.perf_counter() - begin
        jax.effects_barrier()
    finally:
        meter.stop()
    totals = {name: np.asarray(x) for name, x in sums.items()}
    episodes = int(totals["episodes"].sum())
    mean = lambda name: float(totals[name].sum()) / episodes if episodes else np.nan
    return RolloutResult(
        environments=environments,
        steps=steps,
        tasks=env.params.choices,
        form=form,
        seconds=seconds,
        compile_seconds=compile_seconds,
        episodes=episodes,
        solved=int(totals["solved"].sum()),
        mean_return=mean("returns"),
        mean_length=mean("lengths"),
        best_similarity=float(totals["best_similarity"].max()),
        recording=_first_episode(env, first, form, trail),
    )


def _runner(environments: int, form: str, meter: Meter) -> Any:
    kind, _ = KINDS[form]

    def run(env: Any, state: Any, keys: Any) -> Any:
        space = env.action_space()
        resets = env.params.config.environment.auto_reset

        def step(carry: Any, key: Any) -> Any:
            state, playing = carry
            action = kind(**space.sample(key, (environments,)))
            state, after = env.step(state, action)
            row = jax.tree.map(lambda x: x[0], (action, after.reward, after.last()))
            found, ended = after.extras["episode_metrics"], after.last() & playing
            sums = {
                "episodes": jnp.sum(ended),
                "solved": jnp.sum(ended & found.solved),
                "lengths": jnp.sum(jnp.where(ended, found.episode_length, 0)),
                "returns": jnp.sum(jnp.where(ended, found.episode_return, 0.0)),
                "best_similarity": jnp.max(
                    jnp.where(playing, found.best_similarity, 0.0)
                ),
            }
            return (state, playing & (resets | ~ended)), (sums, row)

        # An environment plays until an episode ends that no other follows.
        start = state, jnp.ones(environments, bool)
        _, found = scan_with_progress(
            step, start, keys, meter=meter, label=f"random {form} actions"
        )
        return found

    return run


def _first_episode(env: Any, first: Any, form: str, trail: Any) -> Recording | None:
    """Return the first episode of the first environment, as far as it got."""
    task_id = extract_task_id_from_index(first.task_index)
    if task_id is None or not is_repeatable(env.params):
        return None
    actions, rewards, last = jax.device_get(trail)
    ends = np.flatnonzero(last)
    length = int(ends[0]) + 1 if ends.size else len(last)
    taken = [jax.tree.map(lambda x, i=i: x[i], actions) for i in range(length)]
    return Recording(
        task=task_id,
        config=env.params.config,
        mode=env.params.episode_mode,
        pair=int(first.current_example_idx),
        form=form,
        actions=tuple(map(action_numbers, taken)),
        rewards=tuple(float(reward) for reward in rewards[:length]),
    )
