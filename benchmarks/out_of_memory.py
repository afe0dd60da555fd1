"""Ask an accelerator for more than it may give, and print how the map completed.

    python benchmarks/out_of_memory.py

JAX is allowed 2 % of the card. On a CPU the host's memory is the limit, and nothing
runs out.
"""

import json
import os

os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = "0.02"

import jax.numpy as jnp
import numpy as np

from jaxrig import map_chunked
from jaxrig.machine import describe_machine, package_versions
from jaxrig.memory import device_memory

ITEMS, NUMBERS = 64, 16 * 2**20

fill = map_chunked(lambda x: jnp.full(NUMBERS, x), chunk_size=ITEMS, to_host=True)
found = fill(jnp.arange(float(ITEMS)))
expected = np.arange(ITEMS)[:, None]
print(
    json.dumps(
        {
            "machine": describe_machine(),
            "versions": package_versions(),
            "limit_bytes": device_memory().limit,
            "asked_bytes": ITEMS * NUMBERS * 4,
            "chunk_before": ITEMS,
            "chunk_after": fill.chunk_size,
            "traces": fill.trace_count,
            "right": bool((found[:, [0, -1]] == expected).all()),
        },
        indent=1,
    )
)
