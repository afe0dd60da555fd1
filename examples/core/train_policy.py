"""Train PPO on a problem with a known optimum; stop it and it resumes where it was."""

import argparse
from pathlib import Path

import jax
import numpy as np

from jaxrig import CheckpointManager, compile_once, make_meter
from jaxrig.learn import JsonLines, PPOConfig, ppo_init, ppo_update, train
from jaxrig.learn.tabular import corridor, optimal_values, policy_values, uniform_policy

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("out/train_policy"))
parser.add_argument("--updates", type=int, default=100)
options = parser.parse_args()

config = PPOConfig(environments=32, steps=32, minibatches=2, learning_rate=0.03)
problem = corridor(8, lure=0.3, slip=0.1)
update = compile_once(ppo_update)
state, history = train(
    lambda state: update(state, problem, config),
    ppo_init(jax.random.key(0), problem, uniform_policy(problem), config),
    options.updates,
    meter=make_meter(),
    sinks=(JsonLines(options.out / "metrics.jsonl"),),
    manager=CheckpointManager(options.out / "checkpoints"),
    save_every=20,
)
start = np.asarray(problem.start, np.float64)
best = start @ optimal_values(problem, config.discount)
found = start @ policy_values(problem, state.policy.probabilities(), config.discount)
print(f"{len(history)} updates run; {found / best:.1%} of the optimum")
