"""Measure ARC environments and print JSON: scans, calls from Python, compiling.

python benchmarks/arc.py > arc.json
python benchmarks/arc.py arc.scan arc.small --large 65536 --small 262144

`--large` and `--small` are the batches of the 30x30 and 5x5 scans. MiniARC is read
from the folder `JAXRIG_DATA` if it is set; otherwise its tasks are made up.
"""

import argparse
import json

from jaxarc.benchmarks import make_benchmarks
from jaxrig.bench import choose, document, run_benchmark

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("names", nargs="*", help="benchmarks, by default all")
parser.add_argument("--large", type=int, help="batch of the 30x30 scan")
parser.add_argument("--small", type=int, help="batch of the 5x5 scan")
chosen = parser.parse_args()
benchmarks = choose(make_benchmarks(chosen.large, chosen.small), chosen.names)
records = [record for benchmark in benchmarks for record in run_benchmark(benchmark)]
print(json.dumps(document(records), indent=1))
