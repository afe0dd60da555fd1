"""Environments for Gymnasium: one at a time, or many as a vector environment."""

import re
from functools import partial
from typing import Any, ClassVar, SupportsFloat

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.envs.checks import checked_start
from jaxarc.envs.spaces import Bounded, DictSpace, Discrete, MultiBinary, Space
from jaxarc.registration import make
from jaxarc.wrappers.episodes import AutoReset, Vectorize, refuse_resets
from jaxrig.compile_guard import compile_once
from jaxrig.machine import missing_extra

try:
    import gymnasium
    from gymnasium.envs.registration import EnvSpec
    from gymnasium.utils import seeding
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
except ModuleNotFoundError as error:
    raise missing_extra("jaxarc.adapters.gymnasium needs gymnasium", "arc") from error

IDS = (
    *("AGI1", "AGI1-train", "AGI1-eval"),
    *("AGI2", "AGI2-train", "AGI2-eval"),
    *("Mini", "Concept"),
)
# On import: Gymnasium has had no entry points for plugins since 1.0.
for _name in IDS:
    gymnasium.register(
        f"jaxarc/{_name}-v0",
        entry_point=f"{__name__}:make_gym",
        vector_entry_point=f"{__name__}:make_gym_vector",
        kwargs={"name": _name},
    )

RENDER_MODES = ("rgb_array", "ansi")
OPTIONS = ("task", "pair")


class GymEnv(gymnasium.Env):
    """A wrapped environment with the interface of `gymnasium.Env`.

    Options of a reset are `task`, an id or a row of the buffer, and `pair`. What an
    environment reports beside the observation is in `info`.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": list(RENDER_MODES),
        "render_fps": 4,
    }

    def __init__(self, env: Any, render_mode: str | None = None):
        _check(env, render_mode)
        self.env, self.render_mode = env, render_mode
        self.observation_space = as_gym_space(env.observation_space())
        self.action_space = as_gym_space(env.action_space())
        self._state: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; return its first observation and info."""
        super().reset(seed=seed)
        start = _start(options, self.env.params)
        self._state, seen = _reset(self.env, _key(self.np_random), start)
        observation, *_, extras = _on_host(seen)
        return observation, extras

    def step(
        self, action: Any
    ) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Return observation, reward, terminated, truncated and info."""
        if self._state is None:
            raise RuntimeError("step was called before reset: call reset first")
        self._state, seen = _step(self.env, self._state, action)
        observation, reward, terminated, truncated, extras = _on_host(seen)
        return observation, float(reward), bool(terminated), bool(truncated), extras

    def render(self) -> Any:
        """Render the working grid in the mode the environment was made with."""
        if self._state is None or self.render_mode is None:
            return None
        return self.env.render(self._state, self.render_mode)


class GymVectorEnv(gymnasium.vector.VectorEnv):
    """Many environments in one compiled step, with Gymnasium's vector interface.

    In the mode SAME_STEP, the default, an episode that ends is followed by another one
    in the same step, whose first observation is returned; `infos["final_obs"]` and
    `infos["final_info"]` hold the last of the one that ended. In the mode NEXT_STEP the
    step after that begins the other episode: its action is not used, its reward is 0,
    and it has no infos. Options of a reset have one value for every environment.
    """

    def __init__(
        self,
        env: Any,
        num_envs: int,
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
    ):
        _check(env, render_mode)
        mode = _autoreset_mode(autoreset_mode)
        if num_envs < 1:
            raise ValueError(f"num_envs is {num_envs}: make at least one environment")
        if not env.params.config.environment.auto_reset:
            raise ValueError(
                "environment.auto_reset is off, and a vector environment resets by "
                "itself: switch it on, or use GymEnv"
            )
        self.metadata = GymEnv.metadata | {"autoreset_mode": mode}
        self._same_step = mode is AutoresetMode.SAME_STEP
        inner = AutoReset(env) if self._same_step else env
        self.env, self.render_mode = Vectorize(inner), render_mode
        self._done = np.zeros(num_envs, bool)
        self.num_envs = num_envs
        self.single_observation_space = as_gym_space(env.observation_space())
        self.single_action_space = as_gym_space(env.action_space())
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._state: Any = None

    def reset(
        self,
        *,
        seed: int | list[int] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes; a single seed is counted up over environments."""
        start = _start(options, self.env.params)
        self._state, seen = _reset(self.env, self._keys(seed), start)
        observations, *_, extras = _on_host(seen)
        extras.pop("final_observation", None)
        self._done = np.zeros(self.num_envs, bool)
        return observations, _masked(extras, ~self._done)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Return observations, rewards, terminations, truncations and infos."""
        if self._state is None:
            raise RuntimeError("step was called before reset: call reset first")
        if not self._same_step:
            begins = self._done
            self._state, seen = _step_or_begin(
                self.env, self._state, actions, jnp.asarray(begins)
            )
            observations, rewards, *ends, info = _on_host(seen)
            self._done = ends[0] | ends[1]
            infos = _masked(info, ~begins)
            return observations, rewards.astype(np.float64), *ends, infos
        self._state, seen = _step(self.env, self._state, actions)
        observations, rewards, *ends, info = _on_host(seen)
        done = ends[0] | ends[1]
        last = info.pop("final_observation")
        infos = _masked(info, ~done)
        if done.any():
            final = np.full(self.num_envs, None, object)
            for index in np.nonzero(done)[0]:
                final[index] = last[index]
            infos |= {"final_obs": final, "_final_obs": done}
            infos |= {"final_info": _masked(info, done), "_final_info": done}
        return observations, rewards.astype(np.float64), *ends, infos

    def render(self) -> tuple[Any, ...] | None:
        """Render every working grid in the mode the environments were made with."""
        if self._state is None or self.render_mode is None:
            return None
        return self.env.render(self._state, self.render_mode)

    def _keys(self, seed: int | list[int] | None) -> Any:
        if seed is None:
            return _key(self.np_random, (self.num_envs, 2))
        if isinstance(seed, int):
            seed = [seed + index for index in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(
                f"{len(seed)} seeds for {self.num_envs} environments: give one for "
                "each, or a single number"
            )
        super().reset(seed=seed[0])
        return jnp.stack([_key(seeding.np_random(one)[0]) for one in seed])


# `name`, not `id`: Gymnasium hands `id` to its own functions beside these arguments.
def make_gym(name: str, *, render_mode: str | None = None, **kw: Any) -> GymEnv:
    """Make a `GymEnv` by name; other arguments are those of `jaxarc.make`."""
    env = GymEnv(make(name, **kw)[0], render_mode)
    plain = re.sub(r"[^\w.-]", "-", name)
    env.spec = EnvSpec(
        id=f"jaxarc/{plain}-v0", entry_point=partial(make_gym, name), kwargs=kw
    )
    return env


def make_gym_vector(
    name: str,
    num_envs: int,
    *,
    render_mode: str | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
    **kw: Any,
) -> GymVectorEnv:
    """Make a `GymVectorEnv` by name; other arguments are those of `jaxarc.make`."""
    return GymVectorEnv(make(name, **kw)[0], num_envs, render_mode, autoreset_mode)


def as_gym_space(space: Space) -> gymnasium.Space[Any]:
    """Convert a space to one of Gymnasium's."""
    if isinstance(space, Discrete):
        return gymnasium.spaces.Discrete(space.num_values)
    if isinstance(space, MultiBinary):
        return gymnasium.spaces.MultiBinary(space.shape)
    if isinstance(space, Bounded):
        dtype = np.dtype(space.dtype).type
        return gymnasium.spaces.Box(space.low, space.high, space.shape, dtype)
    if isinstance(space, DictSpace):
        members = {name: as_gym_space(one) for name, one in space.spaces}
        return gymnasium.spaces.Dict(members)
    raise TypeError(f"a {type(space).__name__} has no counterpart in Gymnasium")


# The environment is an argument: its tasks are not constants of the compiled program,
# and environments that differ only in their tasks share it. There is no bound on
# traces: every configuration a process makes has its own.
@compile_once(max_traces=None)
def _reset(env: Any, key: Any, start: Any) -> Any:
    state, step = env.reset(key, **start)
    return state, _seen(step)


@compile_once(max_traces=None)
def _step(env: Any, state: Any, action: Any) -> Any:
    after, step = env.step(state, action)
    return after, _seen(step)


@compile_once(max_traces=None)
def _step_or_begin(env: Any, state: Any, action: Any, begins: Any) -> Any:
    """Step, and where an episode ended with the step before begin another one."""
    after, step = env.step(state, action)
    fresh = env.auto_reset(state, begins)

    def choose(new: Any, old: Any) -> Any:
        return jnp.where(begins.reshape(-1, *[1] * (old.ndim - 1)), new, old)

    observation = choose(env.observe(fresh), step.observation)
    reward = jnp.where(begins, 0.0, step.reward)
    ends = step.terminated() & ~begins, step.truncated() & ~begins
    seen = observation, reward, *ends, step.extras
    return jax.tree.map(choose, fresh, after), seen


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    name = mode.name if isinstance(mode, AutoresetMode) else str(mode).upper()
    if name in ("SAME_STEP", "NEXT_STEP"):
        return AutoresetMode[name]
    raise ValueError(
        f"autoreset_mode is {mode!r}: it is SAME_STEP or NEXT_STEP; to reset by hand, "
        "use GymEnv"
    )


def _seen(step: Any) -> tuple[Any, ...]:
    ends = step.terminated(), step.truncated()
    return step.observation, step.reward, *ends, step.extras


def _key(random: np.random.Generator, shape: tuple[int, ...] = (2,)) -> Any:
    """Draw keys from a NumPy generator, all of their bits."""
    # A threefry key is two 32-bit words; a key made from one seed would have one.
    words = random.integers(2**32, size=shape).astype(np.uint32)
    return jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32")


def _start(options: dict[str, Any] | None, params: Any) -> dict[str, Any]:
    options = options or {}
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise ValueError(
            f"reset has no option {', '.join(unknown)}; it has {', '.join(OPTIONS)}"
        )
    chosen = options.get("task"), options.get("pair")
    task, pair = checked_start(params.buffer, params.episode_mode, *chosen)
    return {"task": task, "pair": pair}


def _on_host(seen: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what a step told as NumPy arrays, its extras as plain dictionaries."""
    *told, extras = jax.tree.map(np.array, seen)
    plain = lambda value: dict(vars(value)) if isinstance(value, eqx.Module) else value
    return *told, {name: plain(value) for name, value in extras.items()}


def _masked(info: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    """Batch infos as Gymnasium does: zeros and a False flag where there is none."""
    infos: dict[str, Any] = {}
    for name, value in info.items():
        if isinstance(value, dict):
            infos[name] = _masked(value, rows)
        else:
            there = rows.reshape(rows.shape + (1,) * (value.ndim - 1))
            infos[name] = np.where(there, value, np.zeros_like(value))
        infos[f"_{name}"] = rows.copy()
    return infos


def _check(env: Any, render_mode: str | None) -> None:
    refuse_resets(env, "Gymnasium resets and batches by its own rules")
    if render_mode is not None and render_mode not in RENDER_MODES:
        raise ValueError(
            f"render_mode is {render_mode!r}: it is None or one of "
            f"{', '.join(RENDER_MODES)}"
        )
