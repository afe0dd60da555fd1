"""An environment and a policy of one's own, trained by PPO and by GRPO, then used.

A walker on a 5x5 grid looks for a goal. The observation is a dictionary, the policy a
network, and an episode is cut after twenty steps.
"""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxrig import CheckpointManager, compile_once, make_meter
from jaxrig.learn import (
    Choice,
    Evaluation,
    GRPOConfig,
    PPOConfig,
    Step,
    grpo_init,
    grpo_update,
    ppo_init,
    ppo_update,
    rollout,
    start_runner,
    train,
)

SIZE, LIMIT = 5, 20
MOVES = jnp.asarray([[-1, 0], [1, 0], [0, -1], [0, 1]])


class GridWorld(eqx.Module):
    """State: walker, goal and steps taken. Shapes and dtypes never change."""

    def reset(self, key):
        """Return a first state and its observation."""
        walker, goal = jax.random.randint(key, (2, 2), 0, SIZE)
        return (walker, goal, jnp.asarray(0)), self.observe(walker, goal)

    def step(self, key, state, action):
        """Move. `truncated` keeps the value of what lay ahead, `terminated` none."""
        walker, goal, steps = state
        walker = jnp.clip(walker + MOVES[action], 0, SIZE - 1)
        found = (walker == goal).all()
        return Step(
            state=(walker, goal, steps + 1),
            observation=self.observe(walker, goal),
            reward=jnp.where(found, 1.0, -0.02),
            terminated=found,
            truncated=steps + 1 >= LIMIT,
        )

    def observe(self, walker, goal):
        """Draw a grid of small integers, and the way to the goal."""
        grid = jnp.zeros((SIZE, SIZE), jnp.int8).at[*walker].set(1).at[*goal].set(2)
        return {"grid": grid, "way": (goal - walker) / SIZE}


class Network(eqx.Module):
    """One hidden layer; four logits for the moves and one value, all scalars."""

    layers: eqx.nn.MLP

    def _logits_and_value(self, observation):
        cells = (observation["grid"].reshape(-1) / 2.0).astype(jnp.float32)
        out = self.layers(jnp.concatenate([cells, observation["way"]]))
        return jax.nn.log_softmax(out[:4]), out[4]

    def sample(self, key, observation):
        """Draw an action."""
        log_probs, value = self._logits_and_value(observation)
        action = jax.random.categorical(key, log_probs)
        return Choice(action, log_probs[action], value)

    def evaluate(self, observation, action):
        """Say what the policy now thinks of an action drawn earlier."""
        log_probs, value = self._logits_and_value(observation)
        entropy = -(jnp.exp(log_probs) * log_probs).sum()
        return Evaluation(log_probs[action], entropy, value)


def mean_return(policy):
    """Play 50 steps in 256 fresh environments and average the episodes' returns."""
    runner = start_runner(jax.random.key(9), GridWorld(), 256)
    _, _, episodes = rollout(jax.random.key(10), GridWorld(), policy, runner, 50)
    return float(episodes.mean_return)


world = GridWorld()
network = Network(eqx.nn.MLP(SIZE * SIZE + 2, 5, 64, 1, key=jax.random.key(0)))
print(f"untrained: {mean_return(network):.2f}")

learners: dict[str, tuple[Any, Any, Any]] = {
    "ppo": (ppo_init, ppo_update, PPOConfig(steps=32, learning_rate=3e-3)),
    "grpo": (
        grpo_init,
        grpo_update,
        GRPOConfig(states=32, group_size=16, horizon=LIMIT, learning_rate=3e-3),
    ),
}
for name, (init, update, config) in learners.items():
    compiled: Any = compile_once(update)
    manager = CheckpointManager(Path("out/own_environment") / name)
    start = init(jax.random.key(1), world, network, config)
    train(
        lambda state, run=compiled, config=config: run(state, world, config),
        start,
        updates=60,
        manager=manager,
        config=config,
        meter=make_meter(),
        label=name,
    )
    state = manager.restore(like=start).tree  # as another program would
    print(f"{name}: {mean_return(state.policy):.2f}")
