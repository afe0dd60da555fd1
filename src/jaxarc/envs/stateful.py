"""An environment that remembers its state, for scripts and notebooks."""

from typing import Any

from jaxarc.envs.arguments import checked_config
from jaxarc.envs.stepping import Info, Observation, arc_reset, arc_step
from jaxarc.state import ArcEnvState
from jaxarc.types import JaxArcTask


class ArcEnvironment:
    """`arc_reset` and `arc_step` with the state kept between the calls.

    A configuration that is not valid is refused, or with
    `environment.strict_validation` off only logged.

        with ArcEnvironment(config) as environment:
            state, observation = environment.reset(key, task)
            state, observation, reward, info = environment.step(action)
    """

    def __init__(self, config: Any):
        self.config = checked_config(config)
        self._state: ArcEnvState | None = None

    @property
    def state(self) -> ArcEnvState:
        """The state after the last call."""
        if self._state is None:
            raise RuntimeError("there is no state yet: call reset first")
        return self._state

    @property
    def is_done(self) -> bool:
        """Whether the episode has ended."""
        return bool(self.state.episode_done)

    def reset(
        self, key: Any, task_data: JaxArcTask | None = None, **choices: Any
    ) -> tuple[ArcEnvState, Observation]:
        """Begin an episode; `choices` are those of `arc_reset`."""
        self._state, observation = arc_reset(key, self.config, task_data, **choices)
        return self._state, observation

    def step(self, action: Any) -> tuple[ArcEnvState, Observation, Any, Info]:
        """State, observation, reward and info after one action; see `is_done`."""
        self._state, observation, reward, _, info = arc_step(
            self.state, action, self.config
        )
        return self._state, observation, reward, info

    def close(self) -> None:
        """Let go of the state."""
        self._state = None

    def __enter__(self) -> "ArcEnvironment":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
