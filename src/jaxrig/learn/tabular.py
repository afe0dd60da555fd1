"""Small finite problems with exact solutions: where a learner's answer can be known."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray

from jaxrig.learn.rollout import Choice, Evaluation, Step


class TabularProblem(eqx.Module):
    """A finite Markov decision problem; the observation is the number of the state."""

    transition: Float[Array, "s a s"]
    reward: Float[Array, "s a"]
    terminal: Bool[Array, " s"]
    start: Float[Array, " s"]
    max_steps: int = eqx.field(static=True)

    def reset(self, key: PRNGKeyArray):
        """Return a start state, and zero steps taken."""
        place = jax.random.choice(key, self.start.shape[0], p=self.start)
        return (place, jnp.zeros((), jnp.int32)), place

    def step(
        self,
        key: PRNGKeyArray,
        state: tuple[Int[Array, ""], Int[Array, ""]],
        action: Int[Array, ""],
    ) -> Step:
        """Draw the next state."""
        place, steps = state
        chances = self.transition[place, action]
        following = jax.random.choice(key, chances.shape[0], p=chances)
        return Step(
            (following, steps + 1),
            following,
            self.reward[place, action],
            self.terminal[following],
            steps + 1 >= self.max_steps,
        )


class TabularPolicy(eqx.Module):
    """One logit per state and action, one value per state."""

    logits: Float[Array, "s a"]
    values: Float[Array, " s"]

    def sample(self, key: PRNGKeyArray, observation: Int[Array, ""]) -> Choice:
        """Draw an action from the softmax of the state's logits."""
        log_probs = jax.nn.log_softmax(self.logits[observation])
        action = jax.random.categorical(key, log_probs)
        return Choice(action, log_probs[action], self.values[observation])

    def evaluate(
        self, observation: Int[Array, ""], action: Int[Array, ""]
    ) -> Evaluation:
        """Return log probability of the action, entropy and value in this state."""
        log_probs = jax.nn.log_softmax(self.logits[observation])
        entropy = -(jnp.exp(log_probs) * log_probs).sum()
        return Evaluation(log_probs[action], entropy, self.values[observation])

    def probabilities(self) -> Float[Array, "s a"]:
        """Return the probability of every action in every state."""
        return jax.nn.softmax(self.logits)


def uniform_policy(problem: TabularProblem) -> TabularPolicy:
    """Return a policy that knows nothing."""
    logits = np.zeros(problem.reward.shape, np.float32)
    return TabularPolicy(jax.device_put(logits), jax.device_put(logits[:, 0]))


def corridor(length: int = 6, lure: float = 0.1, slip: float = 0.0) -> TabularProblem:
    """Make a line of cells: leaving it on the left earns `lure`, on the right 1.

    Action 0 goes left and 1 right; with chance `slip` the other way is taken. The two
    last states are the ends outside the corridor.
    """
    if length < 2 or not 0 <= slip < 0.5:
        raise ValueError(f"length={length} must be >= 2 and slip={slip} in [0, 0.5)")
    left_end, right_end = length, length + 1
    transition = np.zeros((length + 2, 2, length + 2), np.float32)
    reward = np.zeros((length + 2, 2), np.float32)
    for cell in range(length):
        ways = (
            cell - 1 if cell > 0 else left_end,
            cell + 1 if cell + 1 < length else right_end,
        )
        for action in (0, 1):
            for way, chance in ((action, 1 - slip), (1 - action, slip)):
                transition[cell, action, ways[way]] += chance
                earned = {left_end: lure, right_end: 1.0}.get(ways[way], 0.0)
                reward[cell, action] += chance * earned
    transition[left_end, :, left_end] = transition[right_end, :, right_end] = 1.0
    terminal = np.arange(length + 2) >= length
    start = np.where(terminal, 0.0, 1.0 / length).astype(np.float32)
    tables = map(jax.device_put, (transition, reward, terminal, start))
    return TabularProblem(*tables, max_steps=4 * length)


def optimal_values(problem: TabularProblem, discount: float) -> np.ndarray:
    """Return the value of each state under the best policy, by value iteration."""
    transition, reward = _live_tables(problem)
    values = np.zeros(reward.shape[0])
    # Bellman's optimality operator (Sutton & Barto 2018, eq. 4.10) contracts by the
    # discount in the maximum norm, so the loop ends.
    while True:
        improved = (reward + discount * transition @ values).max(axis=1)
        if np.abs(improved - values).max() < 1e-12:
            return improved
        values = improved


def policy_values(
    problem: TabularProblem, probabilities: ArrayLike, discount: float
) -> np.ndarray:
    """Return the value of each state under a policy, from linear equations."""
    transition, reward = _live_tables(problem)
    chances = np.asarray(probabilities, np.float64)
    step = np.einsum("sa,sat->st", chances, transition)
    earned = (chances * reward).sum(axis=1)
    # (I - discount P) v = r, the Bellman equations of a policy (ibid., eq. 4.4).
    return np.linalg.solve(np.eye(len(earned)) - discount * step, earned)


def _live_tables(problem: TabularProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return transition and reward tables in which nothing follows a terminal state."""
    ended = np.asarray(problem.terminal)
    transition = np.array(problem.transition, np.float64)
    reward = np.array(problem.reward, np.float64)
    transition[ended], reward[ended] = 0.0, 0.0
    return transition, reward
