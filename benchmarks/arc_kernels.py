"""Print what each GPU kernel of an ARC step costs, in microseconds per step.

python benchmarks/arc_kernels.py --batch 65536
"""

import argparse
import collections
import functools
import gzip
import json
import tempfile
from pathlib import Path

import jax

from jaxarc.benchmarks import large_environment, scan_steps
from jaxarc.wrappers import AutoReset, PointActionWrapper, Vectorize

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--batch", type=int, default=65_536)
parser.add_argument("--steps", type=int, default=100)
chosen = parser.parse_args()

env = Vectorize(AutoReset(PointActionWrapper(large_environment())))
starts = jax.random.split(jax.random.key(0), chosen.batch)
state, first = jax.jit(lambda env, keys: env.reset(keys))(env, starts)
keys = jax.random.split(jax.random.key(1), chosen.steps)
run = jax.jit(functools.partial(scan_steps, chosen.batch))
jax.block_until_ready(run(env, state, first.observation, keys))
with tempfile.TemporaryDirectory() as folder:
    with jax.profiler.trace(folder, create_perfetto_trace=True):
        jax.block_until_ready(run(env, state, first.observation, keys))
    (path,) = Path(folder).rglob("*.trace.json.gz")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
devices = {
    event["pid"]
    for event in events
    if event.get("name") == "process_name" and "GPU" in event["args"]["name"]
}
total = collections.Counter()
for event in events:
    if event.get("ph") == "X" and event["pid"] in devices:
        total[event["name"]] += event["dur"] / chosen.steps
for name, microseconds in total.most_common():
    print(f"{microseconds:9.2f} {name}")
print(f"{total.total():9.2f} together")
