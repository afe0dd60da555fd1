"""What happened in an episode, counted as it goes."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxarc.envs.timestep import TimeStep
from jaxarc.wrappers.base import KeepingWrapper, replace_step


class EpisodeMetrics(eqx.Module):
    """Figures of the episode so far; `steps_to_solve` is -1 until it is solved."""

    episode_return: Float[Array, "*batch"]
    episode_length: Int[Array, "*batch"]
    best_similarity: Float[Array, "*batch"]
    final_similarity: Float[Array, "*batch"]
    solved: Bool[Array, "*batch"]
    steps_to_solve: Int[Array, "*batch"]
    was_truncated: Bool[Array, "*batch"]


class Measured(eqx.Module):
    """A state and the figures of its episode."""

    inner: Any
    metrics: EpisodeMetrics


class MetricsWrapper(KeepingWrapper):
    """Puts the figures of the episode in `extras["episode_metrics"]`.

    On the last step of an episode they are those of the whole episode.
    """

    def reset(self, key: Any, env_params: Any = None, **start: Any) -> Any:
        """A fresh episode."""
        state, step = self.env.reset(key, env_params, **start)
        measured = Measured(state, _blank(step.extras["similarity"]))
        return measured, _with_metrics(step, measured.metrics)

    def step(self, state: Measured, action: Any, env_params: Any = None) -> Any:
        """What follows an action."""
        inner, step = self.env.step(state.inner, action, env_params)
        before = state.metrics
        length = before.episode_length + 1
        similarity, now = step.extras["similarity"], step.extras["solved"]
        first = now & ~before.solved
        metrics = EpisodeMetrics(
            episode_return=before.episode_return + step.reward,
            episode_length=length,
            best_similarity=jnp.maximum(before.best_similarity, similarity),
            final_similarity=similarity,
            solved=before.solved | now,
            steps_to_solve=jnp.where(first, length, before.steps_to_solve),
            was_truncated=step.truncated(),
        )
        return Measured(inner, metrics), _with_metrics(step, metrics)

    def renew(self, state: Measured, done: Any, env_params: Any = None) -> Measured:
        """The state, or where its episode is done the start of another one."""
        inner = self.env.renew(state.inner, done, env_params)
        begun = _blank(self.env.arc_state(inner).episode.similarity_score)
        merged = jax.tree.map(lambda a, b: jnp.where(done, a, b), begun, state.metrics)
        return Measured(inner, merged)


ExtendedMetrics = MetricsWrapper


def _blank(similarity: Float[Array, ""]) -> EpisodeMetrics:
    zero = jnp.zeros((), jnp.int32)
    return EpisodeMetrics(
        episode_return=jnp.zeros(()),
        episode_length=zero,
        best_similarity=similarity,
        final_similarity=similarity,
        solved=jnp.zeros((), bool),
        steps_to_solve=zero - 1,
        was_truncated=jnp.zeros((), bool),
    )


def _with_metrics(step: TimeStep, metrics: EpisodeMetrics) -> TimeStep:
    return replace_step(step, extras=step.extras | {"episode_metrics": metrics})
