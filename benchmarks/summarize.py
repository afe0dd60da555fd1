"""Turn benchmark JSON into the tables of docs/performance.md.

python benchmarks/summarize.py cpu.json gpu.json
"""

import json
import sys
from pathlib import Path


def table(path: Path) -> str:
    content = json.loads(path.read_text())
    machine, versions = content["machine"], content["versions"]
    lines = [
        f"{content['date'][:10]}, {machine['processor']}, {machine['cores']} cores, "
        f"{', '.join(machine['devices'])}, jax {versions['jax']}, "
        f"python {versions['python']}.",
        "",
        "| benchmark | case | per second | per CPU-s | spread | compile |",
        "|---|---|---|---|---|---|",
    ]
    for r in content["results"]:
        lines.append(
            f"| `{r['benchmark']}` | {r['case']} | {r['per_second']:,.0f} {r['unit']} "
            f"| {r['per_cpu_second']:,.0f} | {r['spread']:.0%} "
            f"| {r['compile_seconds']:.2f} s |"
        )
    return "\n".join(lines)


print("\n\n".join(table(Path(name)) for name in sys.argv[1:]))
