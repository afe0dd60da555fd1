"""Wrap environments: automatic resets, metrics, many at once."""

import dataclasses
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxarc.envs.checks import check_count, checked_start
from jaxarc.envs.environment import Environment, Identified, Params, TimeStep
from jaxarc.state import ArcEnvState

Result: TypeAlias = tuple[Any, TimeStep]


class Wrapper(Identified):
    """An environment around another one, which does all that a subclass does not."""

    env: Any  # AnyEnvironment, which is defined by this class

    def reset(self, key: Any, env_params: Params = None, **start: Any) -> Result:
        """Start an episode."""
        return self.env.reset(key, env_params, **start)

    def step(self, state: Any, action: Any, env_params: Params = None) -> Result:
        """Advance by one action."""
        return self.env.step(state, action, env_params)

    def __getattr__(self, name: str) -> Any:
        # While a module is made, `env` itself is missing; special names that JAX or
        # Python look for must not be found further in.
        if name == "env" or name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.env, name)


AnyEnvironment: TypeAlias = Environment | Wrapper


def has_wrapper(env: AnyEnvironment, *kinds: type[Wrapper]) -> bool:
    """Return whether one of these wrappers is somewhere around an environment."""
    while isinstance(env, Wrapper):
        if isinstance(env, kinds):
            return True
        env = env.env
    return False


def refuse_around(wrapper: Wrapper, *kinds: type[Wrapper]) -> None:
    """Refuse a wrapper around some it would not understand, as after their resets."""
    if has_wrapper(wrapper.env, *kinds):
        raise ValueError(
            f"a {type(wrapper).__name__} does not go around "
            f"{' or '.join(kind.__name__ for kind in kinds)}: put actions, channels "
            "and metrics inside, Vectorize(AutoReset(MetricsWrapper(env)))"
        )


def refuse_resets(env: Any, reason: str) -> None:
    """Refuse an environment that resets or maps by itself where something else does."""
    if has_wrapper(env, AutoReset, Vectorize):
        raise ValueError(
            "the environment has AutoReset or Vectorize around it: pass the inner one, "
            f"since {reason}"
        )


class AutoReset(Wrapper):
    """Starts another episode in the step that ends one.

    That step keeps its kind, reward and discount; its observation is already the first
    of the next episode, and `extras["final_observation"]` the last of the one that
    ended. Starts come from a hash, so that no key is split at every step. With
    `environment.auto_reset` off it begins nothing: a finished episode stays finished.
    """

    def __check_init__(self):
        refuse_around(self, AutoReset)

    def reset(self, key: Any, env_params: Params = None, **start: Any) -> Result:
        """Start an episode."""
        state, step = self.env.reset(key, env_params, **start)
        extras = step.extras | {"final_observation": step.observation}
        return state, dataclasses.replace(step, extras=extras)

    def step(self, state: Any, action: Any, env_params: Params = None) -> Result:
        """Advance by one action."""
        after, step = self.env.step(state, action, env_params)
        extras = step.extras | {"final_observation": step.observation}
        params = env_params or self.params
        if not params.config.environment.auto_reset:
            return after, dataclasses.replace(step, extras=extras)
        fresh = self.env.auto_reset(after, step.last(), env_params)
        seen = self.env.observe(fresh, env_params)
        return fresh, dataclasses.replace(step, observation=seen, extras=extras)


class EpisodeMetrics(eqx.Module):
    """Figures of the episode so far; `steps_to_solve` is -1 until it is solved."""

    episode_return: Float[Array, "*batch"]
    episode_length: Int[Array, "*batch"]
    best_similarity: Float[Array, "*batch"]
    final_similarity: Float[Array, "*batch"]
    solved: Bool[Array, "*batch"]
    steps_to_solve: Int[Array, "*batch"]
    was_truncated: Bool[Array, "*batch"]


class MetricsState(eqx.Module):
    """A state and the figures of its episode."""

    inner: Any
    metrics: EpisodeMetrics


class MetricsWrapper(Wrapper):
    """Puts the figures of the episode in `extras["episode_metrics"]`.

    On the last step of an episode they are those of the whole episode, and stay so
    where no other one follows.
    """

    def __check_init__(self):
        # It would count on over the episodes that an AutoReset begins inside it.
        refuse_around(self, AutoReset, Vectorize)

    def reset(self, key: Any, env_params: Params = None, **start: Any) -> Result:
        """Start an episode."""
        state, step = self.env.reset(key, env_params, **start)
        fresh = MetricsState(state, _initial_metrics(step.extras["similarity"]))
        return fresh, _with_metrics(step, fresh.metrics)

    def step(
        self, state: MetricsState, action: Any, env_params: Params = None
    ) -> Result:
        """Advance by one action."""
        over = self.env.arc_state(state.inner).episode.episode_done
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
        metrics = _choose(over, before, metrics)
        return MetricsState(inner, metrics), _with_metrics(step, metrics)

    def observe(self, state: Any, env_params: Params = None) -> Array:
        """Return the observation of a state."""
        return self.env.observe(state.inner, env_params)

    def render(self, state: Any, mode: str | None = None) -> Any:
        """Render a state."""
        return self.env.render(state.inner, mode)

    def arc_state(self, state: Any) -> ArcEnvState:
        """Return the state with all its documented views."""
        return self.env.arc_state(state.inner)

    def auto_reset(
        self, state: MetricsState, done: Any, env_params: Params = None
    ) -> MetricsState:
        """Return the state, or a start of another episode where it is done."""
        inner = self.env.auto_reset(state.inner, done, env_params)
        begun = _initial_metrics(self.env.arc_state(inner).episode.similarity_score)
        return MetricsState(inner, _choose(done, begun, state.metrics))


def _choose(first: Any, one: EpisodeMetrics, other: EpisodeMetrics) -> EpisodeMetrics:
    return jax.tree.map(lambda a, b: jnp.where(first, a, b), one, other)


def _initial_metrics(similarity: Float[Array, ""]) -> EpisodeMetrics:
    zero = jnp.zeros((), jnp.int32)
    return EpisodeMetrics(
        episode_return=jnp.zeros((), jnp.float32),
        episode_length=zero,
        best_similarity=similarity,
        final_similarity=similarity,
        solved=jnp.zeros((), bool),
        steps_to_solve=zero - 1,
        was_truncated=jnp.zeros((), bool),
    )


def _with_metrics(step: TimeStep, metrics: EpisodeMetrics) -> TimeStep:
    return dataclasses.replace(step, extras=step.extras | {"episode_metrics": metrics})


class Vectorize(Wrapper):
    """Maps an environment over leading axes of keys, states and actions.

    The tasks are not mapped: however many environments, they are held once. Equal keys
    make equal starts, which is how a group of environments begins alike.
    """

    def reset(self, key: Any, env_params: Params = None, **start: Any) -> Result:
        """Start an episode for every key; `start` has a value for each.

        Tasks are a list of ids, or an array of rows.
        """
        params = env_params or self.params
        chosen = start.get("task"), start.get("pair")
        task, pair = checked_start(params.buffer, params.episode_mode, *chosen)
        start |= {"task": task, "pair": pair}
        check_count("keys", key, start)
        return _reset_many(self.env, key, env_params, start)

    def step(self, state: Any, action: Any, env_params: Params = None) -> Result:
        """Advance by one action each."""
        check_count("states", state, {"action": action})
        return jax.vmap(lambda s, a: self.env.step(s, a, env_params))(state, action)

    def auto_reset(self, state: Any, done: Any, env_params: Params = None) -> Any:
        """Return the states, with another start for those that are done."""
        return jax.vmap(lambda s, d: self.env.auto_reset(s, d, env_params))(state, done)

    def observe(self, state: Any, env_params: Params = None) -> Array:
        """Return the observations of the states."""
        return jax.vmap(lambda s: self.env.observe(s, env_params))(state)

    def render(self, state: Any, mode: str | None = None) -> tuple[Any, ...]:
        """Render every state."""
        count = self.arc_state(state).step_count.shape[0]
        rows = [jax.tree.map(lambda x, i=i: x[i], state) for i in range(count)]
        return tuple(self.env.render(row, mode) for row in rows)


# Compiled whole: mapped outside of any program, each part of a start that no key
# changes would be broadcast by a program of its own.
@jax.jit
def _reset_many(
    env: AnyEnvironment, keys: Any, params: Params, start: dict[str, Any]
) -> Result:
    return jax.vmap(lambda key, start: env.reset(key, params, **start))(keys, start)
