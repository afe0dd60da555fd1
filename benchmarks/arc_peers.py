"""Our scans beside other ARC environments, run in turn on the same machine.

python benchmarks/arc_peers.py PEERS --python-jaxarc VENV/bin/python > peers.jsonl

PEERS is a program that measures a peer: `PEERS one --system jaxarc --grid 30 --actions
point --batch 256` prints one line of JSON. Every case runs ours, theirs, ours, each in
a process of its own; compare within a round.
"""

import argparse
import json
import subprocess
import sys

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("peers", help="the program that measures peers")
parser.add_argument("--python-jaxarc", required=True, help="interpreter with jaxarc")
parser.add_argument("--rounds", type=int, default=2)
parser.add_argument("--large", type=int, default=256, help="batch at 30x30")
parser.add_argument("--small", type=int, default=4096, help="batch at 5x5")
chosen = parser.parse_args()


def run(command: list[str]) -> dict:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout[done.stdout.index("{") :])


def ours() -> dict:
    names = ["arc.scan", "arc.small"]
    sizes = ["--large", str(chosen.large), "--small", str(chosen.small)]
    return run([sys.executable, "benchmarks/arc.py", *names, *sizes])


def theirs(grid: int, batch: int, reset: str) -> dict:
    case = ["--grid", str(grid), "--batch", str(batch), "--reset", reset]
    system = ["one", "--system", "jaxarc", "--actions", "point", "--seconds", "2"]
    return run([chosen.python_jaxarc, chosen.peers, *system, *case])


for _ in range(chosen.rounds):
    print(json.dumps({"ours": ours()}), flush=True)
    for grid, batch in ((30, chosen.large), (5, chosen.small)):
        for reset in ("cond", "none"):
            print(json.dumps({"theirs": theirs(grid, batch, reset)}), flush=True)
print(json.dumps({"ours": ours()}), flush=True)
