"""Compare the posterior over graphs, as a user gets it, with the exact posterior, local
scores and least squares over sizes, graphs, mechanisms, noises and rows.

python benchmarks/causal_table.py
python benchmarks/causal_table.py --sizes 5,8 --tables 24 --seed 3
python benchmarks/causal_table.py --flags --tables 600 --seed 3
python benchmarks/causal_table.py --usual

A cell is one size, family of graphs, mechanism, noise, mix of rows and range of
weights. Cells are a fixed balanced design: every level of a factor is in as many cells
as any other. F1 is that of edges above 0.5, "named" that of the edges of highest
expected F1 (`GraphPosterior.likely_edges`), log loss is per pair of variables in nats,
calibration is the expected calibration error over all pairs, and `flagged` is the share
of tables that were called unlike the network's training. A flag is right where the
network's own log loss is above that of the rows alone. Least squares counts |t| > 3,
the exact posterior goes up to 10 variables, the network up to 16, and the local score
has the 12 candidates of largest |t|.

Cells in which ours is more than 0.03 of F1 below the best of the other three, by
whichever rule suits those, are drawn again, four times as many fresh tables: what was
below by chance is not then. Above 0.5, methods that call both directions of an edge
gain; "named" compares the edges that ours would name. Intervals are 95 % of the paired
difference. `--flags` prints which flags are right on tables of up to 16 variables whose
factors are drawn one by one, how many large losses of the network they find, and how
often a named misfit is there; `--usual` the flags of tables like the training's.
"""

import argparse
import time
import zlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import stdtrit

import acbo
from acbo.evaluation.metrics import expected_calibration_error
from acbo.posterior.distribution import USUAL_DISCREPANCY, name_edges
from acbo.posterior.order_chains import sample_graphs
from acbo.posterior.scores import local_posterior, parent_marginals
from acbo.random_models import draw_dataset
from acbo.surrogate.predictor import TRAINED_VARIABLES
from acbo.training.policy import shipped_surrogate

COUNTS = {5: 16, 8: 16, 10: 16, 16: 12, 32: 6, 64: 4, 128: 3}  # cells of each size
CLOSE = 0.03  # F1
LARGE = 0.1  # nats


class Cell(NamedTuple):
    """What tables are drawn of; rows are observational and interventional."""

    d: int
    family: str
    mechanism: str
    noise: str
    rows: tuple[int, int]
    weights: str

    @property
    def name(self):
        """Return the levels in words."""
        rows = f"{self.rows[0]}+{self.rows[1]}"
        return f"{self.family}, {self.mechanism}, {self.noise}, {rows}, {self.weights}"


def draw_graph(draw, family, d):
    """Return which place in causal order causes which."""
    found = np.zeros((d, d), bool)
    if family == "chain":
        found[np.arange(d - 1), np.arange(1, d)] = True
    elif family == "fork":
        found[0, 1:] = True
    elif family == "scale_free":
        degree = np.ones(d)
        for j in range(1, d):
            share = degree[:j] / degree[:j].sum()
            causes = draw.choice(j, min(j, draw.integers(1, 3)), False, share)
            found[causes, j] = True
            degree[causes] += 1
    else:
        mean_degree = 2 * int(family.removeprefix("er"))
        found = np.triu(draw.random((d, d)) < min(1, mean_degree / (d - 1)), 1)
    return found


FAMILIES = ("chain", "fork", "scale_free", "er1", "er2", "er3")
NOISES = {  # of mean 0 and variance 1
    "gaussian": lambda draw, shape: draw.normal(size=shape),
    "varying": lambda draw, shape: draw.normal(size=shape),
    "exponential": lambda draw, shape: draw.exponential(size=shape) - 1,
    "laplace": lambda draw, shape: draw.laplace(size=shape) / np.sqrt(2),
    "student": lambda draw, shape: draw.standard_t(3, size=shape) / np.sqrt(3),
    "uniform": lambda draw, shape: draw.uniform(-np.sqrt(3), np.sqrt(3), shape),
}
MIXES = {  # rows of tables of up to 16 variables, and of more
    "watched": ((120, 0), (500, 0)),
    "mixed": ((100, 20), (200, 100)),
    "set": ((2, 60), (2, 300)),
    "few": ((20, 10), (60, 40)),
}
WEIGHTS = {"plain": (0.5, 2.0), "weak": (0.1, 0.5)}


def bounded(x):
    """Return values within 15 of 0, so that chains of squares stay finite."""
    return np.clip(x, -15, 15)


def draw_sum(shape):
    """Return a mechanism that is a function of the weighted sum and of a phase."""

    def drawn(draw, weight):
        phase = draw.uniform(0, 2 * np.pi)
        return lambda x: shape(x @ weight, phase)

    return drawn


def draw_steps(draw, weight):
    """Return a mechanism that jumps where a cause passes its threshold."""
    at = draw.normal(size=len(weight)) / 2
    return lambda x: 2 * np.sign(x - at) @ weight


def draw_products(draw, weight):
    """Return a mechanism in which every cause acts through the next one too."""
    causes = np.flatnonzero(weight)
    after = np.roll(causes, 1)

    def apply(x):
        both = x[:, causes] * np.where(len(causes) > 1, x[:, after], 1)
        return bounded((x[:, causes] + both) @ weight[causes])

    return apply


def draw_units(bend, units, gain):
    """Return a mechanism that is a layer of random units."""

    def drawn(draw, weight):
        inner = draw.normal(size=(len(weight), units)) * weight[:, None]
        shift = draw.uniform(0, 2 * np.pi, units)
        outer = draw.normal(size=units) * gain / np.sqrt(units)
        return lambda x: bend(x @ inner + shift) @ outer

    return drawn


MECHANISMS = {
    "linear": draw_sum(lambda s, phase: s),
    "tanh": draw_sum(lambda s, phase: 2 * np.tanh(s)),
    "wave": draw_sum(lambda s, phase: 2 * np.sin(s + phase)),
    "quadratic": draw_sum(lambda s, phase: bounded(s + s**2 / 2)),
    "step": draw_steps,
    "product": draw_products,
    "mlp": draw_units(lambda s: np.tanh(s - np.pi), 8, 4.0),
    "smooth": draw_units(lambda s: np.cos(s / 4), 64, 8.0),
}


def design(sizes):
    """Return the cells of some sizes: levels of each factor in turn, then shuffled."""
    draw = np.random.default_rng(0)
    total = sum(COUNTS.values())
    # Two fifths of the cells are linear, as most models that people assume.
    mechanisms = ["linear"] * 4 + list(MECHANISMS)
    turns = [
        draw.permutation(np.resize(np.array(levels), total))
        for levels in (list(FAMILIES), mechanisms, list(NOISES), list(MIXES))
    ]
    weights = np.where(draw.random(total) < 0.2, "weak", "plain")
    cells = []
    for place, d in enumerate(d for d, count in COUNTS.items() for _ in range(count)):
        family, mechanism, noise, mix = (str(each[place]) for each in turns)
        rows = MIXES[mix][d > TRAINED_VARIABLES]
        cells.append(Cell(d, family, mechanism, noise, rows, str(weights[place])))
    return [cell for cell in cells if cell.d in sizes]


def draw_table(draw, d, family, mechanism, noise, rows, weights):
    """Return graph, rows, and which cells were set, two deviations either way."""
    order = draw.permutation(d)
    size = draw.uniform(*WEIGHTS[weights], (d, d)) * draw.choice([-1, 1], (d, d))
    graph = np.zeros((d, d), bool)
    graph[np.ix_(order, order)] = draw_graph(draw, family, d)
    weight = np.where(graph, size, 0)
    means = [MECHANISMS[mechanism](draw, weight[:, j]) for j in range(d)]

    def simulate(n, flags, settings):
        x = np.zeros((n, d))
        shocks = NOISES[noise](draw, (n, d))
        for j in order:
            if graph[:, j].any():
                if noise == "varying":
                    shocks[:, j] *= 0.5 + np.logaddexp(0, x @ weight[:, j])
                x[:, j] = means[j](x)
            x[:, j] += shocks[:, j]
            x[flags[:, j], j] = settings[flags[:, j], j]
        return x

    nothing = np.zeros((400, d))
    deviation = simulate(400, nothing > 0, nothing).std(axis=0)
    n = sum(rows)
    flags = np.zeros((n, d), bool)
    flags[np.arange(rows[0], n), draw.integers(0, d, rows[1])] = True
    settings = draw.choice([-2.0, 2.0], (n, 1)) * deviation
    return graph, simulate(n, flags, settings), flags


@jax.jit
def score_alone(values, flags, lists):
    """Return P(i causes the first column of its list), by the score of that alone."""
    rows = jnp.ones(len(values), bool)

    def of(columns):
        there = jnp.ones(len(columns), bool)
        given = values[:, columns], flags[:, columns], rows, there
        logs = local_posterior(*given, jnp.asarray(0))
        return parent_marginals(logs, there, jnp.asarray(0))

    return jax.vmap(of)(lists)


def local_scores(values, flags, t):
    """Return P(i causes j) by the score of j alone, among the largest |t|."""
    d = len(t)
    best = np.argsort(-(t + t.T), axis=0)[: min(12, d - 1)]  # [slots, effect]
    lists = np.concatenate([np.arange(d)[None], best]).T
    found = np.zeros((d, d))
    chances = np.asarray(score_alone(values - values.mean(axis=0), flags, lists))
    found[lists, np.arange(d)[:, None]] = chances
    np.fill_diagonal(found, 0)
    return found


def t_statistics(values, flags):
    """Return |t| of the regression of every variable on all others [cause, effect]."""
    d = values.shape[1]
    z = (values - values.mean(axis=0)) / values.std(axis=0)
    found = np.zeros((d, d))
    for j in range(d):
        free, others = ~flags[:, j], np.arange(d) != j
        design = np.column_stack([np.ones(free.sum()), z[free][:, others]])
        inverse = np.linalg.inv(design.T @ design + 1e-3 * np.eye(d))
        weights = inverse @ design.T @ z[free, j]
        rest = z[free, j] - design @ weights
        variance = rest @ rest / max(len(rest) - d, 1)
        found[others, j] = np.abs(weights / np.sqrt(np.diag(inverse) * variance))[1:]
    return found


def f1(probs, graph):
    """Return the harmonic mean of precision and recall."""
    chosen = np.asarray(probs) > 0.5
    return 2 * (chosen & graph).sum() / max(chosen.sum() + graph.sum(), 1)


def log_loss(probs, graph):
    """Return nats per pair of variables."""
    sure = np.clip(np.asarray(probs, float), 1e-3, 1 - 1e-3)
    return -np.log(np.where(graph, sure, 1 - sure))[
        ~np.eye(len(graph), dtype=bool)
    ].mean()


OTHERS = ("exact", "exact named", "local", "local named", "squares")
METHODS = ("ours", "ours named", "exact", "local", "squares", "network")
LOSSES = ("ours", "exact", "local", "network")


class Answer(NamedTuple):
    """What was found on one table; F1 and loss are by method."""

    f1: dict[str, float]
    loss: dict[str, float]
    chances: np.ndarray  # of ours, all pairs
    truth: np.ndarray
    flagged: bool
    right: bool  # the flag: the network is worse than the rows alone
    seconds: float  # of ours


def answer(cell, number, seed):
    """Draw one table of a cell and answer it by every method."""
    kind = zlib.crc32(repr(cell).encode())
    draw = np.random.default_rng([seed, number, kind])
    graph, values, flags = draw_table(draw, *cell)
    t = t_statistics(values, flags)
    found = {"squares": t > 3, "local": local_scores(values, flags, t)}
    if cell.d <= TRAINED_VARIABLES:
        found["network"] = acbo.load_surrogate().edge_probs(values, flags)
    if cell.d <= 10:
        found["exact"] = acbo.exact_edge_posterior(values, flags)
    start = time.process_time()
    ours = acbo.infer_graphs(values, flags)
    seconds = time.process_time() - start
    found["ours"] = ours.edge_probs
    loss = {name: log_loss(probs, graph) for name, probs in found.items()}
    right = ours.unlike_training
    if right and "network" in found:
        alone = sample_graphs(values, flags).edge_probs
        right = loss["network"] > log_loss(alone, graph)
    off = ~np.eye(cell.d, dtype=bool)
    scores = {name: f1(probs, graph) for name, probs in found.items()}
    for name in {"ours", "exact", "local"} & found.keys():
        scores[f"{name} named"] = f1(name_edges(found[name]), graph)
    given = scores, loss, ours.edge_probs[off], graph[off]
    return Answer(*given, ours.unlike_training, right, seconds)


def short_of_best(answers, rule="ours named"):
    """Return by how much ours is below the best of the other three, table by table."""
    mean = lambda name: np.mean([a.f1[name] for a in answers])
    best = max((n for n in OTHERS if n in answers[0].f1), key=mean)
    return [a.f1[best] - a.f1[rule] for a in answers]


def interval(x):
    """Return the mean and half of its 95 % interval, by Student's t."""
    wide = stdtrit(len(x) - 1, 0.975)
    return np.mean(x), wide * np.std(x, ddof=1) / np.sqrt(len(x))


def shown(x):
    """Return mean and interval in words."""
    mean, half = interval(x)
    return f"{mean:+.3f} ± {half:.3f}"


def summary(answers, shorts):
    """Return the columns of a line: means over tables by method, and more of ours."""
    scores = lambda of, name: [getattr(a, of)[name] for a in answers if name in a.f1]
    show = lambda x: f"{np.mean(x):.2f}" if x else ""
    behind = [shown(short) for short in shorts]
    chances = jnp.asarray(np.concatenate([a.chances for a in answers]))
    truth = jnp.asarray(np.concatenate([a.truth for a in answers]))
    error = expected_calibration_error(chances, truth, jnp.ones(len(truth), bool))
    flags = [a.right for a in answers if a.flagged]
    return [
        *behind,
        str(len(answers)),
        *(show(scores("f1", name)) for name in METHODS),
        *(show(scores("loss", name)) for name in LOSSES),
        f"{float(error):.3f}",
        f"{len(flags) / len(answers):.0%}",
        f"{np.mean(flags):.0%}" if flags else "",
        f"{1e3 * np.median([a.seconds for a in answers]):.0f}",
    ]


RULES = ("ours", "ours named")
HEADS = ["below: above 0.5", "below: named"]
HEADS += ["tables", *(f"F1 {name}" for name in METHODS)]
HEADS += [f"loss {name}" for name in LOSSES]
HEADS += ["calibration", "flagged", "rightly", "CPU-ms"]


def print_line(cells):
    """Print one line of a table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def print_heads(*first):
    """Print the heads of a table."""
    print_line([*first, *HEADS])
    print("|---" * (len(first) + len(HEADS)) + "|")


def compare(sizes, tables, seed):
    """Print all cells, means over levels, and where ours is behind on fresh tables."""
    found = {}
    print_heads("d", "cell")
    for cell in dict.fromkeys(design(sizes)):
        count = tables if cell.d <= TRAINED_VARIABLES else max(2, tables // 2)
        found[cell] = [answer(cell, number, seed) for number in range(count)]
        print_cell(cell, cell.name, found[cell])
    print_levels(found)
    gaps = lambda cell: [np.mean(short_of_best(found[cell], rule)) for rule in RULES]
    again = [cell for cell in found if max(gaps(cell)) > CLOSE]
    print(
        f"\n{len(again)} of {len(found)} cells are behind by more than {CLOSE}; again"
    )
    for cell in again:
        count = 4 * tables if cell.d <= TRAINED_VARIABLES else 2 * tables
        fresh = [answer(cell, number, seed + 1) for number in range(count)]
        verdicts = [is_behind(short_of_best(fresh, rule)) for rule in RULES]
        print_cell(cell, f"{cell.name}: {', '.join(verdicts)}", fresh)


def is_behind(short):
    """Return whether ours is behind by more than can be chance."""
    mean, half = interval(short)
    return "behind" if mean > max(CLOSE, half) else "not behind"


def print_cell(cell, name, answers):
    """Print the line of one cell."""
    shorts = [short_of_best(answers, rule) for rule in RULES]
    print_line([str(cell.d), name, *summary(answers, shorts)])


def print_levels(found):
    """Print the means over all cells that share a level of a factor."""
    print()
    print_heads("factor", "level")
    named = {rows: mix for mix, both in MIXES.items() for rows in both}
    for place, factor in enumerate(Cell._fields):
        for level in dict.fromkeys(cell[place] for cell in found):
            cells = [each for cell, each in found.items() if cell[place] == level]
            some = [a for each in cells for a in each]
            shorts = [
                np.concatenate([short_of_best(each, rule) for each in cells])
                for rule in RULES
            ]
            print_line([factor, str(named.get(level, level)), *summary(some, shorts)])


def mixed_tables(tables, seed):
    """Yield cells of any mix of the levels, with a table of each."""
    draw = np.random.default_rng([seed, 77])
    mechanisms = ["linear"] * 4 + list(MECHANISMS)
    levels = (5, 8, 10, 16), FAMILIES, mechanisms, list(NOISES), list(MIXES)
    for _ in range(tables):
        d, family, mechanism, noise, mix = (draw.choice(each) for each in levels)
        weights = "weak" if draw.random() < 0.2 else "plain"
        cell = Cell(int(d), family, mechanism, noise, MIXES[mix][0], weights)
        yield cell, *draw_table(draw, *cell)


def usual_tables(tables, seed):
    """Yield tables as they were drawn for the network's training."""
    for config in shipped_surrogate().data:
        keys = jax.random.split(jax.random.key(seed), tables)
        draw = jax.jit(jax.vmap(lambda key, c=config: draw_dataset(key, c)))
        data = jax.device_get(draw(keys))
        for i in range(tables):
            rows, columns = data.row_mask[i], data.var_mask[i]
            values = data.values[i][rows][:, columns].astype(float)
            flags = data.intervened[i][rows][:, columns]
            resting = values[~flags.any(axis=1)]
            # The network alone takes no column without a scale of its own.
            if len(resting) > 1 and np.ptp(resting, axis=0).all():
                yield None, data.adjacency[i][columns][:, columns], values, flags


def true_misfits(cell, caused):
    """Return what does not fit a linear model with Gaussian noise."""
    uneven = cell.noise == "varying" and caused
    return {
        "curves": cell.mechanism != "linear" and caused,
        "skewed noise": cell.noise == "exponential",
        "heavy-tailed noise": cell.noise in ("laplace", "student") or uneven,
        "drift over the rows": False,
    }


def judge_flags(drawn):
    """Print how often flags and named misfits are right, and how many are found."""
    found, misfits = [], []
    for cell, graph, values, flags in drawn:
        ours = acbo.infer_graphs(values, flags)
        if cell is not None:
            for fit, caused in zip(ours.fits, graph.any(axis=0), strict=True):
                truth = true_misfits(cell, caused)
                misfits += [(what, what in fit.misfits, truth[what]) for what in truth]
        alone = sample_graphs(values, flags).edge_probs
        network = acbo.load_surrogate().edge_probs(values, flags)
        edges = ours.edge_probs, alone, network
        found.append([ours.discrepancy, *(log_loss(each, graph) for each in edges)])
    apart, ours, alone, network = np.array(found).T
    worse = network - alone
    part = lambda some, of: (some & of).sum() / max(of.sum(), 1)
    share = lambda some, of: f"{part(some, of):.0%} of {of.sum()}"
    print(f"log loss: ours {ours.mean():.3f}, rows {alone.mean():.3f}, ", end="")
    print(f"network {network.mean():.3f}; network worse: {(worse > 0).mean():.0%}")
    for least in (1.4, 1.6, 1.8, USUAL_DISCREPANCY):
        flagged = apart > least
        print(f"above {least:g}: {share(worse > 0, flagged)} flags are right; ", end="")
        print(f"flagged are {share(flagged, worse > -np.inf)} tables and ", end="")
        print(f"{share(flagged, worse > LARGE)} that the network loses by {LARGE}")
    for what in dict.fromkeys(each[0] for each in misfits):
        told, true = np.array([each[1:] for each in misfits if each[0] == what]).T
        print(f"{what}: {share(true, told)} are right; told of {share(told, true)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, COUNTS)))
    parser.add_argument("--tables", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--flags", action="store_true")
    parser.add_argument("--usual", action="store_true")
    given = parser.parse_args()
    if given.flags or given.usual:
        draw = mixed_tables if given.flags else usual_tables
        judge_flags(draw(given.tables, given.seed))
    else:
        compare([int(d) for d in given.sizes.split(",")], given.tables, given.seed)
