"""Episodes of experiments as the environment of a reinforcement learner.

A state is a model with its history; an observation is what surrogate and history give
the policy; the reward is that of `acbo.acquisition`.
"""

from dataclasses import dataclass, field

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from acbo.acquisition import AcquisitionState, RewardWeights, compute_rewards
from acbo.environment import ProblemSpec, perform, problem_spec
from acbo.history import History
from acbo.policy.features import PolicyObservation, edges_of, policy_features
from acbo.policy.model import PolicyAction
from acbo.posterior.scores import column_scale
from acbo.random_models import SCMConfig, draw_model, draw_rows
from acbo.scm import SCM, Intervention, no_intervention, set_variable
from acbo.surrogate.predictor import Surrogate
from jaxrig.keys import batch_keys
from jaxrig.learn import Step


@dataclass(frozen=True)
class EpisodeConfig:
    """Models, rows at the start, and what a step is worth.

    A reward looks at the expected outcome of an intervention over `draws` rows of
    noise; with 0, at the one noisy outcome seen.
    """

    scms: tuple[SCMConfig, ...] = (SCMConfig(),)
    variables: int = 8
    sizes: tuple[int, int] = (4, 8)
    observational: tuple[int, int] = (10, 40)
    interventional: tuple[int, int] = (0, 8)
    steps: int = 5
    draws: int = 32
    weights: RewardWeights = field(
        default_factory=lambda: RewardWeights(1.0, 0.0, 0.0, 0.0)
    )
    clip_to_range: bool = True

    @property
    def capacity(self) -> int:
        """Return the number of rows that an episode can hold."""
        return self.observational[1] + self.interventional[1] + self.steps


class Episode(eqx.Module):
    """Where an episode stands; the best is of expected outcomes, lower is better."""

    scm: SCM
    history: History
    noise: Float[Array, "*batch draws d"]
    summary: AcquisitionState
    scale: Float[Array, "*batch"]
    step: Int[Array, "*batch"]


class ExperimentEnvironment(eqx.Module):
    """See `jaxrig.learn.Environment`; the surrogate reads each history once."""

    surrogate: Surrogate
    config: EpisodeConfig = eqx.field(static=True)

    def reset(self, key: PRNGKeyArray) -> tuple[Episode, PolicyObservation]:
        """Return a fresh model with rows already seen."""
        model, rows, noise = jax.random.split(key, 3)
        config = self.config
        scm = draw_model(model, config.scms, config.sizes, config.variables)
        history = draw_rows(
            rows,
            scm,
            config.capacity,
            config.observational,
            config.interventional,
            jnp.asarray(config.clip_to_range),
        )
        _, spread = column_scale(*history.rows)
        draws = jax.vmap(scm.draw)(batch_keys(noise, max(config.draws, 1)))
        spec = problem_spec(scm)
        edges = edges_of(self.surrogate, history, spec)
        start = self._expected(scm, draws, no_intervention(scm.size))
        counts = (history.intervened & history.row_mask[:, None]).sum(axis=0)
        summary = _summary(start, edges, spec, counts)
        episode = Episode(
            scm, history, draws, summary, spread[scm.target], jnp.asarray(0)
        )
        return episode, policy_features(history, spec, edges)

    def step(self, key: PRNGKeyArray, state: Episode, action: PolicyAction) -> Step:
        """Do the experiment, see one row, read the history again."""
        scm, config = state.scm, self.config
        history, row = perform(
            key, scm, state.history, action.action, config.clip_to_range
        )
        done = set_variable(action.variable, action.value, scm.size)
        truth = self._expected(scm, state.noise, done)
        outcome = truth if config.draws else row[scm.target]
        spec = problem_spec(scm)
        edges = edges_of(self.surrogate, history, spec)
        counts = state.summary.counts + done.mask.astype(jnp.float32)
        best = jnp.minimum(state.summary.best_value, outcome)
        after = _summary(best, edges, spec, counts)
        # Where nothing is paid for structure, a reward needs no second reading: single
        # steps then cost the experiment alone.
        judged = after if config.weights.structure else state.summary
        parts = compute_rewards(
            state.summary, action.action, best, judged, weights=config.weights
        )
        # The gain itself, in deviations of the target, instead of its tanh: summed
        # over steps, a tanh pays for many small gains more than for one large one.
        gain = (state.summary.best_value - best) / state.scale
        reward = parts.total + config.weights.optimization * (gain - parts.optimization)
        following = Episode(
            scm, history, state.noise, after, state.scale, state.step + 1
        )
        return Step(
            following,
            policy_features(history, spec, edges),
            reward,
            jnp.asarray(False),
            following.step >= config.steps,
        )

    def _expected(
        self, scm: SCM, noise: Array, intervention: Intervention
    ) -> Float[Array, ""]:
        respond = lambda e: scm.respond(e, intervention, self.config.clip_to_range)
        return jax.vmap(respond)(noise)[:, scm.target].mean()


def _summary(
    best: Float[Array, ""],
    edges: Float[Array, "d d"],
    spec: ProblemSpec,
    counts: Array,
) -> AcquisitionState:
    """Return what rewards look at; the entropy takes edges as independent."""
    chance = edges[:, spec.target]
    inside = jnp.clip(chance, 1e-6, 1 - 1e-6)
    entropy = -(inside * jnp.log(inside) + (1 - inside) * jnp.log1p(-inside))
    others = spec.mask & (jnp.arange(chance.shape[0]) != spec.target)
    return AcquisitionState(
        best,
        jnp.where(others, entropy, 0.0).sum(),
        chance,
        counts.astype(jnp.float32),
    )
