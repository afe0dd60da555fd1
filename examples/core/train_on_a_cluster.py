"""PPO over all devices of all processes: the same program on a laptop and under Slurm.

Environments are shared out over the devices, the network is copied to each of them; XLA
adds the exchange of gradients. `docs/howto/cluster.md` has the batch script.
"""

import argparse
import os
from pathlib import Path

import jax

from jaxrig import (
    CheckpointManager,
    compile_once,
    is_main,
    make_mesh,
    make_meter,
    start_hosts,
    stop_hosts,
    wait_for_all,
)
from jaxrig.learn import JsonLines, PPOConfig, ppo_init, ppo_update, train
from jaxrig.learn.tabular import corridor, uniform_policy
from jaxrig.sharding import spread

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("out/cluster"))
parser.add_argument("--updates", type=int, default=50)
options = parser.parse_args()

# First of all, before anything opens a device. Slurm tells JAX who the others are.
several = int(os.environ.get("SLURM_NTASKS", "1")) > 1
if several:
    start_hosts()

mesh = make_mesh()  # every device of every process
config = PPOConfig(environments=16 * mesh.size, steps=32, learning_rate=0.03)
problem = corridor(8, lure=0.3, slip=0.1)
start = ppo_init(jax.random.key(0), problem, uniform_policy(problem), config)
start = spread(start, mesh, lambda state: state.runner)
problem = spread(problem, mesh)

update = compile_once(ppo_update)
state, history = train(
    lambda state: update(state, problem, config, mesh),
    start,
    options.updates,
    # Every process takes part in a checkpoint; one writes it, metrics and progress.
    manager=CheckpointManager(options.out / "checkpoints"),
    save_every=20,
    config=config,
    sinks=(JsonLines(options.out / "metrics.jsonl"),) if is_main() else (),
    meter=make_meter() if is_main() else None,
)
if is_main():
    processes, devices = jax.process_count(), mesh.size
    print(
        f"{processes} processes, {devices} devices, {config.environments} environments"
    )
    print(f"{len(history)} updates, mean return {history[-1]['mean_return']:.3f}")
if several:
    wait_for_all("trained")
    stop_hosts()
