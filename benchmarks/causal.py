"""Measure causal optimization and print JSON.

python benchmarks/causal.py step > step.json
python benchmarks/causal.py surrogate --dim 128 --layers 8 --variables 20 --rows 128

`step` compares one training step of the users' guide compiled and operation by
operation, same model, loss and batch, and says how far their losses differ; `first` is
what compiling that step takes, and the program that draws data sets for training;
`compilations` counts over batches of different graphs; `surrogate` trains on fresh
data; `posterior` is one data set, beside the exact expert; `grpo` a policy that learns;
`problems` how far the shipped policy gets on three problems that are not linear;
`agreement` how far the shipped surrogate is from the exact posterior over sets of
causes, and its two heads from each other.
Every timing has wall and CPU seconds, compile seconds apart, and bytes.
"""

import argparse
import itertools
import json
import re
import time
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from acbo import benchmarks
from acbo.baselines import proposers
from acbo.baselines.structure import exact_predictor
from acbo.evaluation import evaluate_problems
from acbo.evaluation.evaluate import FAMILIES, draw_scm, draw_task, task_keys
from acbo.evaluation.report import Cell
from acbo.graphs import bucket_parent_sets
from acbo.policy.advisor import load_policy
from acbo.random_models import SCMConfig, draw_dataset
from acbo.surrogate.model import SurrogateConfig, set_logits
from acbo.surrogate.predictor import load_surrogate
from acbo.training.parent_set_model import create_parent_set_model
from acbo.training.policy import shipped_surrogate
from jaxrig.bench import Benchmark, Measurement, document, run_benchmark


def records(name: str, found: list[Measurement]) -> list[dict[str, Any]]:
    """Records with the median of CPU seconds added to them."""
    made = run_benchmark(Benchmark(f"causal.{name}", name, lambda: found))
    for record, measured in zip(made, found, strict=True):
        cpu = float(np.median(measured.timing.cpu_seconds))
        record["median_cpu_seconds"] = cpu
    return made


def step(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    steps = benchmarks.document_steps()
    found = benchmarks.step_benchmark(chosen.repeats, eager=True, steps=steps)
    wall, cpu = (
        [take(m) / m.items for m in found]
        for take in (
            lambda m: m.timing.median,
            lambda m: float(np.median(m.timing.cpu_seconds)),
        )
    )
    losses = steps.losses(chosen.steps or 5)
    gap = float(np.abs(losses["compiled"] - losses["eager"]).max())
    ratio = {
        "benchmark": "causal.step",
        "case": "compiled over eager",
        "wall_ratio": wall[1] / wall[0],
        "cpu_ratio": cpu[1] / cpu[0],
        "steps_compared": len(losses["eager"]),
        "largest_loss_difference": gap,
    }
    return [*records("step", found), ratio]


def first(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    steps, bucket = benchmarks.document_steps(), shipped_surrogate().data[1]
    keys = jax.random.split(jax.random.key(0), 64)
    programs = {
        "the guide's parameters": (
            create_parent_set_model({"dim": 16, "layers": 2}).init,
            (keys[0],),
        ),
        "the guide's step": (lambda *given: steps.compiled.run(*given), steps.args),
        "drawing a bucket": (jax.vmap(lambda k: draw_dataset(k, bucket)), (keys,)),
    }
    made = []
    for case, (function, given) in programs.items():
        start = time.process_time()
        text = jax.jit(function).lower(*given).compile().as_text() or ""
        used = time.process_time() - start
        found = {"cpu_seconds": used, "kernels": len(re.findall(r" fusion\(", text))}
        made.append({"benchmark": "causal.first", "case": case, **found})
    return made


def compilations(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    found = benchmarks.count_compilations(chosen.graphs)
    return [{"benchmark": "causal.compilations", **found}]


def surrogate(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    model = SurrogateConfig(dim=chosen.dim, layers=chosen.layers)
    wide = max(chosen.dim // model.heads, 1)
    found = benchmarks.surrogate_benchmark(
        replace(model, key_size=wide, compute_dtype=chosen.dtype),
        chosen.variables or 10,
        chosen.rows or 64,
        chosen.batch,
        chosen.steps or 10,
        chosen.repeats,
    )
    return records("surrogate", found)


def posterior(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    found = benchmarks.posterior_benchmark(
        chosen.variables or 10, chosen.rows or 120, chosen.repeats
    )
    return records("posterior", found)


def grpo(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    found = benchmarks.grpo_benchmark(
        chosen.states, chosen.group_size, chosen.variables or 8, chosen.repeats
    )
    return records("grpo", found)


PROPOSERS = ("random", "random_pairs", "gp", "gp_pairs", "exact_ei")


def problems(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    policy, known = load_policy(), proposers()
    systems = {
        "policy": policy.proposer(greedy=False),
        "likeliest": policy.proposer(),
        **{name: known[name] for name in PROPOSERS},
    }
    chosen_systems = {name: systems[name] for name in chosen.systems or systems}
    report = evaluate_problems(
        chosen_systems,
        ["toy_graph", "complete_graph", "psa"],
        runs=chosen.runs,
        steps=20,
        seed=chosen.seed,
    )
    return [
        {
            "benchmark": "causal.problems",
            "case": f"{result.system} on {result.cell.family}",
            "share_of_the_way": float(np.mean(result.scores["share"])),
            "worst_share": float(np.min(result.scores["share"])),
        }
        for result in report.results
    ]


def agreement(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    surrogate, exact = load_surrogate(), exact_predictor()

    def compare(key: Any, cell: Cell) -> Any:
        scm = draw_scm(key, jnp.asarray(cell.size), cell.family, SCMConfig(), cell.size)
        seen = draw_task(key, scm, cell, 0, False).history
        given = seen.values, seen.intervened, seen.row_mask, scm.mask, scm.target
        found = surrogate.read(*given)
        there, held = bucket_parent_sets(scm.mask, scm.target, exact.max_parents)
        sets = exact.predict(*given)[1]
        assert sets is not None
        log_q = jax.nn.log_softmax(set_logits(found, held, there))
        p = jnp.exp(sets[0])
        apart = jnp.where(p > 0, p * (sets[0] - log_q), 0.0).sum()
        by_sets = jnp.exp(log_q) @ held.astype(jnp.float32)
        return apart, jnp.abs(by_sets - found.parent_probs).mean()

    made = []
    for size, family in itertools.product((3, 4), FAMILIES):
        cell = Cell(family, size, 20, 10)
        keys = task_keys(chosen.seed, family, size, 200)
        apart, heads = jax.jit(jax.vmap(lambda key, c=cell: compare(key, c)))(keys)
        made.append(
            {
                "benchmark": "causal.agreement",
                "case": cell.name,
                "mean_kl_from_exact": float(apart.mean()),
                "mean_gap_between_heads": float(heads.mean()),
            }
        )
    return made


GROUPS = {
    "step": step,
    "first": first,
    "compilations": compilations,
    "surrogate": surrogate,
    "posterior": posterior,
    "grpo": grpo,
    "problems": problems,
    "agreement": agreement,
}

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("group", choices=[*GROUPS, "all"])
parser.add_argument("--repeats", type=int, default=5)
parser.add_argument("--dim", type=int, default=64)
parser.add_argument("--layers", type=int, default=4)
parser.add_argument("--variables", type=int, help="10; for grpo 8")
parser.add_argument("--rows", type=int, help="64; for posterior 120")
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--steps", type=int, help="in one compiled call: 10")
parser.add_argument("--dtype", default="float32", help="float32 or bfloat16")
parser.add_argument("--graphs", type=int, default=20)
parser.add_argument("--seed", type=int, default=0, help="of held-out problems")
parser.add_argument("--runs", type=int, default=20, help="of each problem")
parser.add_argument("--systems", nargs="*", help="of problems; by default all")
parser.add_argument("--states", type=int, default=16)
parser.add_argument("--group", type=int, default=64, dest="group_size")
arguments = parser.parse_args()
names = GROUPS if arguments.group == "all" else [arguments.group]
print(json.dumps(document([r for n in names for r in GROUPS[n](arguments)]), indent=1))
