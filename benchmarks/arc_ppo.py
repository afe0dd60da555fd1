"""Measure PPO of the ARC baseline and print JSON: whole updates and their parts.

python benchmarks/arc_ppo.py MiniARC_FOLDER > ppo.json
python benchmarks/arc_ppo.py MiniARC_FOLDER --environments 16384 --minibatches 4

`update` is everything, `rollout` the environment and the network's choices, and
`environment` the same rollout with random actions.
"""

import argparse
import functools
import json

import equinox as eqx

from jaxarc.learning.policy import RandomPolicy
from jaxarc.learning.training import AgentConfig, LearnEnvironment, make_agent
from jaxrig.bench import Benchmark, Measurement, document, run_benchmark
from jaxrig.learn import PPOConfig, ppo_update
from jaxrig.learn.rollout import rollout
from jaxrig.timing import compare

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("path", help="folder of MiniARC")
parser.add_argument("--environments", type=int, default=4096)
parser.add_argument("--steps", type=int, default=32)
parser.add_argument("--minibatches", type=int, default=8)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--repeats", type=int, default=10)
chosen = parser.parse_args()
ppo = PPOConfig(
    environments=chosen.environments,
    steps=chosen.steps,
    epochs=chosen.epochs,
    minibatches=chosen.minibatches,
    learning_rate=1e-3,
)


@eqx.filter_jit
def collect(state, environment, policy):
    return rollout(state.key, environment, policy, state.runner, ppo.steps)


runs = {}
for dtype in ("float32", "bfloat16"):
    agent = make_agent(AgentConfig(dataset_path=chosen.path, dtype=dtype, ppo=ppo))
    environment, state = LearnEnvironment(agent.env), agent.state
    update = eqx.filter_jit(functools.partial(ppo_update, config=ppo))
    random = RandomPolicy(state.policy.operations)
    runs[f"update, {dtype}"] = functools.partial(update, state, environment)
    runs[f"rollout, {dtype}"] = functools.partial(
        collect, state, environment, state.policy
    )
    runs["environment"] = functools.partial(collect, state, environment, random)


def measure():
    timings = compare(runs, repeats=chosen.repeats)
    return [
        Measurement(name, timing, ppo.steps_per_update, "steps", vars(chosen))
        for name, timing in timings.items()
    ]


benchmark = Benchmark("arc.ppo", "PPO of the baseline", measure)
print(json.dumps(document(run_benchmark(benchmark)), indent=1))
