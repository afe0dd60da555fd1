"""Imitate the planner on MiniARC, tune the result with PPO, and print JSON.

    python benchmarks/arc_imitation.py MiniARC_FOLDER > shown.json
    python benchmarks/arc_imitation.py MiniARC_FOLDER --context 3 > hidden.json

The planner draws every demonstration cell by cell and submits it (as `jaxrig arc
demonstrate --actions point` does); behavior cloning maximizes the likelihood of its
actions under random permutations of the colors; PPO goes on from there, paid on Submit.
Each stage is evaluated on the demonstrations (one greedy attempt) and on the tests,
which are in no training data (a greedy attempt, then a drawn one). Without --context
the output of the pair is an input channel; with it the agent sees the input and so many
demonstrations instead.
"""

import argparse
import dataclasses
import json
import sys
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.actions import PointAction
from jaxarc.config import ActionConfig, ArcEpisodeConfig, HistoryConfig, JaxArcConfig
from jaxarc.learning import AgentConfig, demonstrate, evaluate, make_agent, train_agent
from jaxarc.learning.training import PAINTING, LearnEnvironment
from jaxarc.ops.operations import COLORS
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.registration import make
from jaxrig.learn import PPOConfig, ppo_init
from jaxrig.learn.optimizer import descend, make_optimizer, start_optimizer
from jaxrig.machine import describe_machine, package_versions

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("path", help="folder of MiniARC")
parser.add_argument("--context", type=int, default=0)
parser.add_argument("--depth", type=int, default=0, help="residual blocks")
parser.add_argument("--steps", type=int, default=3000, help="of behavior cloning")
parser.add_argument("--updates", type=int, default=60, help="of PPO")
parser.add_argument("--seed", type=int, default=0)
chosen = parser.parse_args()

BATCH, RATE, BLOCK = 128, 2e-3, 250
PPO = PPOConfig(environments=64, steps=16, epochs=2, minibatches=4, learning_rate=3e-4)
# Paid and ended by Submit alone, so that an agent learns to hand its grid in.
RULES = JaxArcConfig(
    action=ActionConfig(validate_actions=False),
    history=HistoryConfig(enabled=False),
    episode=ArcEpisodeConfig(training_reward_frequency="submit"),
)


def watch(env, recordings):
    """Return what the agent sees before every recorded action, and the actions."""
    rows = env.params.rows_of([recording.task for recording in recordings])
    pairs = np.array([recording.pair for recording in recordings], np.int32)
    lengths = np.array([len(recording.actions) for recording in recordings])
    table = np.full((len(recordings), lengths.max(), 3), int(Op.SUBMIT), np.int32)
    for place, recording in zip(table, recordings, strict=True):
        place[: len(recording.actions)] = recording.actions

    def play(row, pair, actions):
        state, begun = env.reset(jax.random.key(0), task=row, pair=pair)

        def turn(carry, numbers):
            state, seen = carry
            state, step = env.step(state, PointAction(*numbers))
            return (state, step.observation), seen

        return jax.lax.scan(turn, (state, begun.observation), actions)[1]

    seen = jax.jit(jax.vmap(play))(jnp.asarray(rows), jnp.asarray(pairs), table)
    taken = np.arange(lengths.max()) < lengths[:, None]
    return jnp.asarray(np.asarray(seen)[taken]), jnp.asarray(table[taken])


def recolor(key, grids, numbers):
    """Return one example with its colors permuted, in the grids and in the action."""
    table = jax.random.permutation(key, COLORS).astype(jnp.int32)
    fills = numbers[0] < COLORS
    operation = jnp.where(fills, table[numbers[0] % COLORS], numbers[0])
    grids = jnp.where(grids >= 0, table[grids % COLORS], grids)
    return grids, PointAction(operation, numbers[1], numbers[2])


def clone(policy, observations, actions):
    """Return the policy after behavior cloning, and its last losses."""
    optimizer = make_optimizer(RATE, 1.0)

    def loss(policy, key):
        rows_key, color_key = jax.random.split(key)
        rows = jax.random.randint(rows_key, (BATCH,), 0, len(observations))
        keys = jax.random.split(color_key, BATCH)
        seen, taken = jax.vmap(recolor)(keys, observations[rows], actions[rows])
        likelihood = jax.vmap(policy.evaluate)(seen, taken).log_prob.mean()
        return -likelihood, -likelihood

    @eqx.filter_jit
    def block(policy, memory, keys):
        return descend(optimizer, loss, policy, memory, keys, len(keys))

    memory, losses = start_optimizer(optimizer, policy), np.nan
    for number in range(chosen.steps // BLOCK):
        key = jax.random.fold_in(jax.random.key(chosen.seed + 1), number)
        keys = jax.random.split(key, BLOCK)
        policy, memory, losses, _ = block(policy, memory, keys)
    return policy, float(np.mean(losses))


def figures(agent, policy):
    """Return how many pairs a policy solves, and in how many steps it does."""
    found = {}
    for mode, name, attempts in ((0, "demonstrations", 1), (1, "tests", 2)):
        env, key = agent.environment(mode), jax.random.key(0)
        result = evaluate(policy, env, key, attempts, greedy=True)
        found[name] = {
            "pairs": len(result.pairs),
            "one attempt": int(result.solved[0].sum()),
            "two attempts": int(result.solved.any(axis=0).sum()),
            "mean steps": round(float(result.steps[0].mean()), 1),
        }
    return found


def main():
    begin = time.process_time()
    bare, _ = make(
        "Mini-all", config=RULES, dataset_path=chosen.path, max_episode_steps=30
    )
    config = AgentConfig(
        operations=(*PAINTING, int(Op.SUBMIT)),
        answer=chosen.context == 0,
        context_pairs=chosen.context,
        features=64,
        depth=chosen.depth,
        seed=chosen.seed,
        ppo=PPO,
    )
    agent = make_agent(config, bare)
    recordings, lengths = demonstrate(bare, kinds=())
    seen, taken = watch(agent.env, recordings)
    stages = {}

    def finish(name, policy, **more):
        seconds = round(time.process_time() - begin, 1)
        stages[name] = {"cpu_seconds": seconds} | more | figures(agent, policy)
        print(name, stages[name], file=sys.stderr, flush=True)

    cloned, loss = clone(agent.state.policy, seen, taken)
    finish("behavior cloning", cloned, loss=round(loss, 4))
    key = jax.random.key(chosen.seed + 2)
    state = ppo_init(key, LearnEnvironment(agent.env), cloned, PPO)
    tuned, _ = train_agent(dataclasses.replace(agent, state=state), chosen.updates)
    finish("cloning, then PPO", tuned.policy)
    record = {
        "episodes": len(recordings),
        "actions": int(lengths.sum()),
        "cloning steps": chosen.steps,
        "ppo steps": chosen.updates * PPO.steps_per_update,
        "context": chosen.context,
        "depth": chosen.depth,
        "seed": chosen.seed,
        "stages": stages,
    }
    machine = {"machine": describe_machine(), "packages": package_versions()}
    print(json.dumps(record | machine, indent=1, default=str))


if __name__ == "__main__":
    main()
