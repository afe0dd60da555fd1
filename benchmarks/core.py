"""Measure the core and print JSON: dispatch, chunks, progress, checkpoints, learners.

python benchmarks/core.py > core.json
python benchmarks/core.py core.dispatch
"""

import json
import sys

from jaxrig.bench import choose, document, run_benchmark
from jaxrig.benchmarks import BENCHMARKS

chosen = choose(BENCHMARKS, sys.argv[1:])
records = [record for benchmark in chosen for record in run_benchmark(benchmark)]
print(json.dumps(document(records), indent=1))
