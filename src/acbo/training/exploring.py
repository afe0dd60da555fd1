"""What a policy does while it learns: a temperature on its choice, and a bonus."""

from dataclasses import replace

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from acbo.acquisition.exploration import ExplorationTrainingConfig, exploration_bonus
from acbo.policy.encode import Outlook
from acbo.policy.environment import Episode, ExperimentEnvironment
from acbo.policy.model import Move, PolicyNetwork, Scores, draw, judge
from jaxrig.learn import Choice, Evaluation, Step


class Explorer(eqx.Module):
    """A policy whose logits are divided by a temperature that is not learned."""

    network: PolicyNetwork
    temperature: Float[Array, ""]

    def __call__(self, outlook: Outlook) -> Scores:
        """Scores of every cell, flatter where it is hot."""
        scores = self.network(outlook)
        heat = jax.lax.stop_gradient(self.temperature)
        return eqx.tree_at(lambda each: each.logits, scores, scores.logits / heat)

    def sample(self, key: PRNGKeyArray, observation: Outlook) -> Choice:
        """Draw an experiment, and how likely it was."""
        return draw(key, self(observation), observation)

    def evaluate(self, observation: Outlook, action: Move) -> Evaluation:
        """How likely an experiment is now, and how open the choice."""
        return judge(self(observation), action)


class ExploringEnvironment(eqx.Module):
    """Episodes in which the variable that is set earns its exploration bonus, weighed
    by the `exploration` of the reward's weights.
    """

    inner: ExperimentEnvironment
    exploration: ExplorationTrainingConfig = eqx.field(static=True)

    def reset(self, key: PRNGKeyArray) -> tuple[Episode, Outlook]:
        """A fresh model with rows already seen."""
        return self.inner.reset(key)

    def step(self, key: PRNGKeyArray, state: Episode, action: Move) -> Step:
        """Do the experiment; the bonus is by what was known before it."""
        after = self.inner.step(key, state, action)
        bonus = exploration_bonus(state.summary, self.exploration)[action.variable]
        weight = self.inner.config.weights.exploration
        return replace(after, reward=after.reward + weight * bonus)
