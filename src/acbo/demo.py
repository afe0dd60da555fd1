"""The causal part of the demo: a problem optimized live, regret, and rates."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from acbo.baselines import ExactThompson, Random
from acbo.benchmarks import count_compilations, document_steps, step_benchmark
from acbo.evaluation import Protocol, Report, evaluate
from acbo.evaluation.report import EPISODES
from acbo.pictures.charts import draw_parent_sets, draw_regret
from acbo.pictures.run import draw_outcomes, play_beliefs
from acbo.policy.advisor import Policy, PolicyProposer, load_policy
from acbo.problems import get
from acbo.runs import run_problem
from jaxrig.progress import Meter
from jaxrig.report import (
    Beside,
    Code,
    Figure,
    Fold,
    Heading,
    Part,
    Section,
    Table,
    Text,
)
from jaxrig.report.text import format_number

PROBLEM, ROWS, STEPS, SEED = "butterfly_5var", 20, 10, 1
MODELS, SIZE, FAMILY, INTERVENTIONS = 48, 5, "er1", 5
GRAPHS = 8  # batches of different names and sizes, for one compiled step


def causal_section(meter: Meter) -> Section:
    """Return the section of causal optimization: a live problem, regret, and rates."""
    policy = load_policy()
    proposer = policy.proposer()
    meter.compiling("causal optimization")
    # Most of the time goes into compiling, which two threads do at once.
    with ThreadPoolExecutor(2) as pool:
        live = pool.submit(optimize_live, policy, proposer)
        compared = pool.submit(held_out, proposer)
        problem = live.result()
        meter.start("causal optimization", 3)
        meter.show(1)
        report = compared.result()
    meter.show(2)
    rates = rate_parts()  # measured alone
    meter.show(3)
    meter.stop()
    return Section(
        "Causal optimization",
        *problem,
        Fold("Regret on models it has not seen", *regret_parts(report)),
        Fold("Rates, claimed and measured", *rates),
        id="causal",
    )


def optimize_live(policy: Policy, proposer: PolicyProposer) -> list[Part]:
    """Optimize one problem; return what was done and learned about its causes."""
    run = run_problem(get(PROBLEM), proposer, steps=STEPS, rows=ROWS, seed=SEED)
    problem, history = run.problem, run.record.history
    names, target = problem.scm.names, problem.target
    values, intervened = np.asarray(history.values), np.asarray(history.intervened)
    surrogate = policy.surrogate
    posterior = surrogate.posterior(values, intervened, target, names=names)
    made = run.interventions[run.best].items()
    best = ", ".join(f"{name} = {value:.3g}" for name, value in made)
    (goal, at), *_ = problem.optimum.intervention.items()
    return [
        Beside(
            play_beliefs(run, policy.surrogate),
            Heading("What causes what, and which experiment comes next"),
            Text(
                f"The policy sees {ROWS} rows of `{', '.join(names)}` and makes "
                f"{STEPS} experiments, one variable each, to lower `{target}`. Setting "
                f"{best} "
                f"reaches {run.shares[-1]:.0%} of the possible improvement. Edges that "
                "are not in the true graph are dashed, missed ones dotted. Neither "
                "network was trained on this problem."
            ),
            Code(
                f"jaxrig causal optimize {problem.name}\n"
                "jaxrig causal suggest data.csv --target yield --maximize"
            ),
        ),
        Fold(
            f"How {problem.name} was optimized",
            Text(
                f"Setting {best} leads to {run.expected[run.best]:.3f} on average, "
                f"where {problem.observational_mean:.3f} is the mean without an "
                f"intervention and {problem.optimum.outcome:.3f} the optimum, at "
                f"{goal} = {at:.3g}."
            ),
            Figure(
                draw_outcomes(run),
                caption="Measured outcomes have noise; the other three are true means.",
                alt=f"{target} by experiment",
            ),
            Figure(
                draw_parent_sets(posterior),
                caption=f"The posterior over sets of direct causes of `{target}`.",
                alt="Probabilities of parent sets",
            ),
        ),
    ]


def held_out(policy: Any) -> Report:
    """Evaluate the policy, chance and exact Thompson sampling on held-out models."""
    systems = {
        "policy": policy,
        "exact Thompson": ExactThompson(),
        "random": Random(),
    }
    return evaluate(
        systems,
        n_scms=MODELS,
        steps=INTERVENTIONS,
        families=(FAMILY,),
        sizes=(SIZE,),
        references=("random", "exact Thompson"),
        protocol=Protocol(chunk_size=MODELS),
    )


def regret_parts(report: Report) -> list[Part]:
    """Return regret by intervention, and the paired tests at the end."""
    results = [each for each in report.results if each.kind == EPISODES]
    curves = {each.system: each.curves["simple_regret"] for each in results}
    rows = []
    for row in report.rows():
        if row["metric"] != "simple_regret":
            continue
        chance = row["tests"].get("random", {}).get("p_value", np.nan)
        words = "below 0.0001" if chance < 1e-4 else f"{chance:.4f}"
        interval = f"{row['low']:.3f} to {row['high']:.3f}"
        shown = "" if np.isnan(chance) else words
        rows.append((row["system"], row["mean"], interval, shown))
    columns = ("proposer", "regret", "95% interval", "p against random")
    return [
        Text(
            f"{MODELS} random linear models of {SIZE} variables, not used in training "
            "and the same for all methods. Each method gets 20 observational rows and "
            f"10 rows with a random intervention, then makes {INTERVENTIONS} "
            "interventions. Regret is the difference in true expected outcome between "
            "the best intervention made and the best possible single intervention."
        ),
        Figure(
            draw_regret(curves),
            caption="Mean over models; bands are 95% intervals of the mean.",
            alt="Regret curves",
        ),
        Table(columns, rows, caption=f"After {INTERVENTIONS} interventions."),
    ]


def rate_parts() -> list[Part]:
    """Return what compiling is worth here, beside what users were told."""
    steps = document_steps()
    (step,) = step_benchmark(repeats=5, steps=steps)  # of 20 steps each
    counted = count_compilations(GRAPHS, steps=steps)
    rows = [
        (
            "first training step, including compilation",
            "2.35 s",
            f"{step.timing.compile_seconds:.2f} s",
        ),
        (
            "training step, compiled",
            "0.7 ms, or 6.4 ms on average",
            f"{format_number(step.timing.median / step.items * 1e3)} ms",
        ),
        (
            f"compilations over {counted['graphs']} batches of other graphs",
            "not stated",
            str(counted["compilations"]),
        ),
    ]
    return [
        Text(
            "A training step of the size that the users' guide measured: width 16, two "
            "layers, three data sets of 20 rows and 3 variables. Here the compiled "
            "step runs the model; the 3,386 times of the guide are its compile time "
            "over its run time. `benchmarks/causal.py step` compares the whole step "
            "compiled and not compiled."
        ),
        Table(("what", "documented", "in this run"), rows),
    ]
