"""Train PPO on one small task of one's own, then play its demonstrations and its test.

The rule of the task is "black becomes blue". The agent sees the grid, not the answer.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import numpy as np

from jaxarc.learning import (
    AgentConfig,
    RandomPolicy,
    evaluate,
    make_agent,
    train_agent,
)
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxrig import make_meter
from jaxrig.learn import PPOConfig


def write_task(folder: Path) -> None:
    """A task file: six demonstrations and a test of 3x3 cells, four of them black."""
    rng = np.random.default_rng(0)

    def pair() -> dict[str, list]:
        given = rng.integers(2, 6, 9)
        given[rng.choice(9, 4, replace=False)] = 0
        wanted = np.where(given == 0, 1, given)
        grids = {"input": given, "output": wanted}
        return {name: grid.reshape(3, 3).tolist() for name, grid in grids.items()}

    task = {"train": [pair() for _ in range(6)], "test": [pair()]}
    (folder / "black_to_blue.json").write_text(json.dumps(task))


with TemporaryDirectory() as folder:
    write_task(Path(folder))
    agent = make_agent(
        AgentConfig(
            environment="Mini-all",  # any folder of tasks up to 5x5
            dataset_path=folder,
            max_episode_steps=5,
            operations=(Op.FILL_0, Op.FILL_1, Op.FILL_2),
            features=16,
            depth=0,  # the rule looks at one cell at a time
            ppo=PPOConfig(
                environments=64, steps=10, epochs=2, minibatches=2, learning_rate=1e-2
            ),
        )
    )

state, history = train_agent(agent, updates=80, meter=make_meter())
returns = [record["mean_return"] for record in history]
print(f"mean return {returns[0]:.2f} at first, {np.mean(returns[-10:]):.2f} at the end")

for mode, kind in enumerate(("demonstrations", "test")):
    result = evaluate(state.policy, agent.environment(mode), jax.random.key(1))
    print(f"{kind}: {result.pair_rate:.0%} of {len(result.pairs)} solved")
chance = RandomPolicy(agent.config.operations)
result = evaluate(chance, agent.environment(0), jax.random.key(1))
print(f"by chance: {result.pair_rate:.0%} of the demonstrations")
