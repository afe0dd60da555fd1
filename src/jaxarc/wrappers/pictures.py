"""Pictures of steps: the last transition is kept, to be drawn when asked for."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxarc.ops.names import FIRST_CONTROL
from jaxarc.wrappers.base import KeepingWrapper, has_wrapper
from jaxarc.wrappers.endings import AutoReset
from jaxarc.wrappers.vectorize import Vectorize


class Transition(eqx.Module):
    """The last step: grids before and after it, what was done, what it brought.

    Right after a reset the operation is -1 and both grids are the first one.
    """

    before: Int[Array, "*batch h w"]
    after: Int[Array, "*batch h w"]
    selection: Bool[Array, "*batch h w"]
    operation: Int[Array, "*batch"]
    reward: Float[Array, "*batch"]
    similarity_before: Float[Array, "*batch"]
    similarity: Float[Array, "*batch"]
    step: Int[Array, "*batch"]


class Pictured(eqx.Module):
    """A state and the transition that led to it."""

    inner: Any
    transition: Transition


class StepVisualizationWrapper(KeepingWrapper):
    """Keeps the last transition; `render(state, "detailed")` draws it as SVG.

    It goes below `AutoReset`: after an automatic reset the transition is still the one
    that ended the episode.
    """

    def __check_init__(self):
        if has_wrapper(self.env, AutoReset, Vectorize):
            raise ValueError(
                "StepVisualizationWrapper is above AutoReset or Vectorize: put it "
                "below them, where it sees how episodes end"
            )

    def reset(self, key: Any, env_params: Any = None, **start: Any) -> Any:
        """A fresh episode."""
        state, step = self.env.reset(key, env_params, **start)
        arc = self.env.arc_state(state)
        similarity = arc.similarity_score
        transition = Transition(
            before=arc.working_grid,
            after=arc.working_grid,
            selection=jnp.zeros_like(arc.selected),
            operation=step.extras["operation_id"],
            reward=step.reward,
            similarity_before=similarity,
            similarity=similarity,
            step=jnp.zeros_like(arc.step_count),
        )
        return Pictured(state, transition), step

    def step(self, state: Pictured, action: Any, env_params: Any = None) -> Any:
        """What follows an action."""
        before = self.env.arc_state(state.inner)
        inner, step = self.env.step(state.inner, action, env_params)
        after = self.env.arc_state(inner)
        operation = step.extras["operation_id"]
        acts = (operation >= 0) & (operation < FIRST_CONTROL)
        transition = Transition(
            before=before.working_grid,
            after=after.working_grid,
            selection=after.selected & acts,
            operation=operation,
            reward=step.reward,
            similarity_before=before.similarity_score,
            similarity=step.extras["similarity"],
            step=before.step_count + 1,
        )
        return Pictured(inner, transition), step

    def renew(self, state: Pictured, done: Any, env_params: Any = None) -> Pictured:
        """The state, or where its episode is done the start of another one."""
        return Pictured(self.env.renew(state.inner, done, env_params), state.transition)

    def render(self, state: Pictured, mode: str | None = None) -> Any:
        """A picture of a state; "detailed" is SVG of the step that led to it."""
        if mode != "detailed":
            return super().render(state, mode)
        from jaxarc.utils.visualization import draw_rl_step_svg

        last: Transition = jax.device_get(state.transition)
        drawing = draw_rl_step_svg(
            last.before,
            last.after,
            reward=last.reward,
            similarity=last.similarity,
            step_num=last.step,
            selection=last.selection,
            operation=None if last.operation < 0 else last.operation,
            previous_similarity=last.similarity_before,
        )
        return drawing.as_svg()
