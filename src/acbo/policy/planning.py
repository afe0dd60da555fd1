"""Experiments on one or two variables, in batches, under costs and constraints.

Linear models are drawn from the posterior over graphs; the outcome of any intervention
is then known in closed form in each of them. What they miss is drawn from a Gaussian
process over interventions, of which experiments on one variable tell about pairs too.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from acbo.named.tables import Experiments
from acbo.policy.misfit import Arms, Told, draw_misfit
from acbo.policy.problem import Candidate, Experiment, Problem, Region
from acbo.posterior.order_chains import GraphPosterior

MODELS = 256  # drawn from the posterior
GRID, PAIR_GRID = 33, 17  # values of a variable alone, and of each one in a pair
PAIRED = 8  # of many variables, the likeliest causes are tried in pairs
BESIDE = 0.2  # of a range: experiments of one batch are farther apart than this
WEAK = 0.1, 1e-4  # prior precision of weights and of the intercept
# A correlation with the target beyond the effect on it: where it is less, watching a
# variable tells what setting it does.
BIAS = 0.1
OUTSIDE = 0.1  # of a range: rows farther outside tell nothing about it
NOISE = 1.0, 0.05  # shape and scale of the noise's inverse gamma prior

COMPARE: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "<": np.less,
    ">": np.greater,
}


class Models(NamedTuple):
    """Linear models x = x W + b + noise, in deviations of the columns."""

    mean: Float[np.ndarray, "s d"]
    effect: Float[np.ndarray, "s d d"]  # total, of i on j: (I - W)^-1
    noise: Float[np.ndarray, "s d"]  # variances
    center: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]

    def scaled(self, values: np.ndarray, columns: Any) -> np.ndarray:
        """Return values of some columns in deviations."""
        return (values - self.center[columns]) / self.scale[columns]


def draw_models(
    seen: Experiments, graphs: Bool[np.ndarray, "s d d"], draw: np.random.Generator
) -> Models:
    """Draw weights and noise of each graph, by regressions over rows where a variable
    was free; the prior is conjugate (normal inverse gamma).
    """
    center, spread = seen.values.mean(axis=0), seen.values.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    z = (seen.values - center) / scale
    count, d = len(graphs), z.shape[1]
    weights, base = np.zeros((count, d, d)), np.zeros((count, d))
    noise = np.ones((count, d))
    for j in range(d):
        rows = z[~seen.intervened[:, j]]
        sets, which = np.unique(graphs[:, :, j], axis=0, return_inverse=True)
        for number, parents in enumerate(sets):
            of = np.flatnonzero(which.ravel() == number)
            x = np.column_stack([rows[:, parents], np.ones(len(rows))])
            prior = np.diag([WEAK[0]] * int(parents.sum()) + [WEAK[1]])
            precision = x.T @ x + prior
            middle = np.linalg.solve(precision, x.T @ rows[:, j])
            left = rows[:, j] @ rows[:, j] - middle @ precision @ middle
            shape, rate = NOISE[0] + len(rows) / 2, NOISE[1] + max(left, 0.0) / 2
            variance = rate / draw.gamma(shape, size=len(of))
            root = np.linalg.cholesky(np.linalg.inv(precision))
            away = draw.normal(size=(len(of), len(middle))) @ root.T
            found = middle + np.sqrt(variance)[:, None] * away
            weights[of[:, None], np.flatnonzero(parents)[None], j] = found[:, :-1]
            base[of, j], noise[of, j] = found[:, -1], variance
    effect = np.linalg.inv(np.eye(d) - weights)
    mean = np.einsum("si,sij->sj", base, effect)
    return Models(mean, effect, noise, center, scale)


def respond(
    models: Models, columns: Sequence[int], values: Float[np.ndarray, "c a"], of: int
) -> Float[np.ndarray, "s c"]:
    """Return E[X_of | do(columns = values)] in each model.

    To set variables is to shift their equations by what makes up the difference.
    """
    a = list(columns)
    own = models.effect[:, a][:, :, a]
    per_unit = np.linalg.solve(own, models.effect[:, a, of][:, :, None])[:, :, 0]
    short = values[None] - models.mean[:, None, a]
    return models.mean[:, of, None] + np.einsum("sca,sa->sc", short, per_unit)


def outcome_variance(models: Models, columns: Sequence[int], of: int) -> float:
    """Return the mean variance of one outcome while some variables are set."""
    a = list(columns)
    own = models.effect[:, a][:, :, a]
    past = np.linalg.solve(own, models.effect[:, a, of][:, :, None])
    direct = models.effect[:, :, of] - (models.effect[:, :, a] @ past)[:, :, 0]
    direct[:, a] = 0.0
    return float((models.noise * direct**2).sum(axis=1).mean())


def _models_of(
    seen: Experiments, posterior: GraphPosterior, draw: np.random.Generator
) -> Models:
    graphs = np.asarray(posterior.graphs, bool)
    picked = np.linspace(0, len(graphs) - 1, min(MODELS, len(graphs))).astype(int)
    return draw_models(seen, graphs[picked], draw)


def add_partial(
    seen: Experiments,
    posterior: GraphPosterior,
    values: Float[np.ndarray, "n d"],
    flags: Bool[np.ndarray, "n d"],
) -> Experiments:
    """Return a copy with experiments in which not everything was measured (NaN).

    A value that is missing is what the models expect of what was set: it then adds
    nothing to what the outcome tells (Berkson's errors do not bias a line).
    """
    models, found = _models_of(seen, posterior, np.random.default_rng(0)), values.copy()
    for row, column in np.argwhere(np.isnan(values)).tolist():
        a = np.flatnonzero(flags[row]).tolist()
        z = models.scaled(values[row, a], a)[None]
        expected = float(respond(models, a, z, column).mean())
        found[row, column] = models.center[column] + models.scale[column] * expected
    both = (seen.values, found), (seen.intervened, flags)
    rows, acted = (np.concatenate(each) for each in both)
    return replace(seen, values=rows, intervened=acted, checked=True)


def _arms(seen: Experiments, flags: np.ndarray, values: np.ndarray) -> Arms:
    """Return interventions by values; what may not be set does not count."""
    low, high, allowed = seen.bounds
    shares = (values - low) / np.where(high > low, high - low, 1.0)
    return Arms(flags & allowed, np.where(flags & allowed, shares, 0.0))


def _watched_rows(seen: Experiments, models: Models) -> Told:
    """Return the rows where nothing was set, once for each variable that may be set."""
    rows, of = np.flatnonzero(~seen.intervened.any(axis=1)), seen.column
    outcome = seen.sign * models.scaled(seen.values[rows, of], of)
    low, high, _ = seen.bounds
    parts = []
    for i in (seen.names.index(name) for name in seen.ranges):
        only = np.broadcast_to(np.arange(len(low)) == i, seen.values[rows].shape)
        arms = _arms(seen, only, seen.values[rows])
        noise = np.full(len(rows), outcome_variance(models, [i], of))
        there = np.abs(arms.shares[:, i] - 0.5) < 0.5 + OUTSIDE
        # What models expect is linear: that of the mean is the mean.
        told = Told(arms, outcome[None], noise).some(there)
        values = low[i] + told.arms.shares[:, i] * (high[i] - low[i])
        expected = respond(models, [i], models.scaled(values, i)[:, None], of)
        parts.append((*told.arms, (told.left - seen.sign * expected).T, told.noise))
    flags, shares, left, noise = map(np.concatenate, zip(*parts, strict=True))
    return Told(Arms(flags, shares), left.T, noise)


def _groups(
    seen: Experiments,
    models: Models,
    posterior: GraphPosterior,
    draw: np.random.Generator,
) -> Int[np.ndarray, "s d"]:
    """Return for each model 2 where watching a variable tells what setting it does,
    plus 1 where a path leads from it to the target.
    """
    of, effect = seen.column, models.effect
    along = effect * models.noise[:, :, None]  # what each noise brings
    deviation = np.sqrt((along * effect).sum(axis=1))
    watched = (along * effect[:, :, [of]]).sum(axis=1) / deviation
    set_to = effect[:, :, of] / np.diagonal(effect, axis1=1, axis2=2) * deviation
    bias = np.abs(watched - set_to) / deviation[:, [of]]
    hidden = draw.random(bias.shape) < posterior.confounded_probs[:, of]
    return 2 * ((bias < BIAS) & ~hidden) + (effect[:, :, of] != 0)


class _Candidates(NamedTuple):
    """Every experiment that may be made."""

    arms: Arms
    mean: Float[np.ndarray, "s c"]  # of the target by linear models, lower is better
    noise: Float[np.ndarray, " c"]  # variance
    cost: Float[np.ndarray, " c"]

    def of_only(self, column: int) -> Int[np.ndarray, " n"]:
        """Return which of them set one variable and no other."""
        single = self.arms.flags.sum(axis=1) == 1
        return np.flatnonzero(single & self.arms.flags[:, column])


def _columns_together(
    seen: Experiments, reach: Float[np.ndarray, " d"], at_once: int
) -> Iterator[list[int]]:
    settable = [seen.names.index(name) for name in seen.ranges]
    yield from ([column] for column in settable)
    if at_once > 1:
        likely = sorted(settable, key=lambda column: -reach[column])[:PAIRED]
        yield from map(list, itertools.combinations(sorted(likely), 2))


def _list_candidates(
    seen: Experiments,
    models: Models,
    problem: Problem,
    levels: Mapping[str, Sequence[float]],
) -> _Candidates:
    d = len(seen.names)
    reach = models.effect[:, :, seen.column] != 0
    regions = problem.regions(seen.names)
    parts = []
    for a in _columns_together(seen, reach.mean(axis=0), problem.at_once):
        names = [seen.names[column] for column in a]
        count = GRID if len(a) == 1 else PAIR_GRID
        axes = [levels.get(n, np.linspace(*seen.ranges[n], count)) for n in names]
        values = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        values = values.reshape(-1, len(a))
        values = values[~_forbidden(models, regions, a, values)]
        mean = seen.sign * respond(models, a, models.scaled(values, a), seen.column)
        flags, cells = np.zeros((len(values), d), bool), np.zeros((len(values), d))
        flags[:, a], cells[:, a] = True, values
        noise = np.full(len(values), outcome_variance(models, a, seen.column))
        price = np.full(len(values), problem.price(names))
        parts.append((flags, cells, mean.T, noise, price))
    flags, cells, mean, noise, price = map(np.concatenate, zip(*parts, strict=True))
    if not len(price):
        raise ValueError("every experiment is in a forbidden region: allow some")
    return _Candidates(_arms(seen, flags, cells), mean.T, noise, price)


def _forbidden(
    models: Models,
    regions: Sequence[Region],
    columns: list[int],
    values: Float[np.ndarray, "c a"],
) -> Bool[np.ndarray, " c"]:
    """Return which settings lead into a region; variables that are not set are where
    the models expect them.
    """
    bad = np.zeros(len(values), bool)
    for region in regions:
        inside = np.ones(len(values), bool)
        for column, sign, number in region:
            if column in columns:
                x = values[:, columns.index(column)]
            else:
                scaled = models.scaled(values, columns)
                expected = respond(models, columns, scaled, column).mean(axis=0)
                x = models.center[column] + models.scale[column] * expected
            inside &= COMPARE[sign](x, number)
        bad |= inside
    return bad


class _Outlook(NamedTuple):
    """What is drawn for the candidates, in deviations of the target."""

    best: Float[np.ndarray, " s"]  # of what was made, in each draw
    mean: Float[np.ndarray, "s c"]

    @property
    def gain(self) -> Float[np.ndarray, " c"]:
        """Return the expected improvement, E[max(best - mean, 0)] over the draws: to do
        the best experiment again gains nothing.
        """
        return np.maximum(self.best[:, None] - self.mean, 0.0).mean(axis=0)

    @property
    def to_gain(self) -> float:
        """Return the expected improvement by the best experiment, were it known."""
        return float(np.maximum(self.best - self.mean.min(axis=1), 0.0).mean())


class EffectCurve(NamedTuple):
    """The expected outcome of setting a variable, in the units of the table."""

    values: Float[np.ndarray, " m"]
    expected: Float[np.ndarray, " m"]
    std: Float[np.ndarray, " m"]  # of the expected outcome


class Plan(NamedTuple):
    """What to do next; outcomes in the units of the table."""

    batch: list[Experiment]
    alone: list[Candidate]  # each variable, first that of the best experiment
    curves: dict[str, EffectCurve]  # over the values that a variable may have alone
    to_gain: float  # expected improvement by the best experiment, were it known


def plan(
    seen: Experiments,
    posterior: GraphPosterior,
    problem: Problem,
    levels: Mapping[str, Sequence[float]],
) -> Plan:
    """Return the experiments of highest expected improvement per square root of cost,
    one after the other: each counts what the ones before it may bring.

    Per cost itself, many cheap experiments with little to gain would come before a dear
    one that could be the best.
    """
    draw = np.random.default_rng(0)
    models = _models_of(seen, posterior, draw)
    given = _list_candidates(seen, models, problem, levels)
    made, outcome, expected, noise = _experiments_made(seen, models)
    told, watched = Told(made, outcome - expected, noise), _watched_rows(seen, models)
    groups = _groups(seen, models, posterior, draw)
    chosen, missed = draw_misfit(told, watched, groups, given.arms, draw)
    models = models._replace(mean=models.mean[chosen])
    given, expected = given._replace(mean=given.mean[chosen]), expected[chosen]
    # What comes of setting nothing is known too.
    best = seen.sign * models.mean[:, seen.column]
    tried = expected + missed[:, : len(noise)]
    best = np.minimum(best, tried.min(axis=1, initial=np.inf))
    outlook = _Outlook(best, given.mean + missed[:, len(noise) :])
    alone = _alone(seen, models, posterior, given, outlook)
    curves = _curves(seen, models, given, outlook)
    to_gain = float(models.scale[seen.column]) * outlook.to_gain
    batch: list[Experiment] = []
    untried = np.ones(len(given.cost), bool)
    while untried.any() and len(batch) < problem.batch:
        # Where nothing improves, the best mean decides.
        score = outlook.gain / np.sqrt(given.cost) - 1e-6 * outlook.mean.mean(axis=0)
        place = int(np.argmax(np.where(untried, score, -np.inf)))
        batch.append(_describe(seen, models, given, outlook, place))
        # Each draw takes its own outcome for what will come of it.
        best = np.minimum(outlook.best, outlook.mean[:, place])
        outlook = outlook._replace(best=best)
        untried &= ~_beside(given.arms, place)
    return Plan(batch, alone, curves, to_gain)


def _beside(arms: Arms, place: int) -> Bool[np.ndarray, " c"]:
    """Return which candidates set the same variables to nearly the same values."""
    same = (arms.flags == arms.flags[place]).all(axis=1)
    return same & (np.abs(arms.shares - arms.shares[place]).max(axis=1) < BESIDE)


def _describe(
    seen: Experiments, models: Models, given: _Candidates, outlook: _Outlook, place: int
) -> Experiment:
    """Return one candidate in the units of the table."""
    center, scale = (float(x[seen.column]) for x in (models.center, models.scale))
    low, high, _ = seen.bounds
    values = low + given.arms.shares[place] * (high - low)
    column = outlook.mean[:, place]
    better = float(outlook.best.mean() - column.mean())
    noise = math.sqrt(given.noise[place])
    chosen = np.flatnonzero(given.arms.flags[place])
    return Experiment(
        {seen.names[i]: float(values[i]) for i in chosen},
        center + scale * seen.sign * float(column.mean()),
        scale * float(column.std()),
        scale * float(outlook.gain[place]),
        # So many that two standard errors of their mean are this improvement.
        runs=math.ceil((2 * noise / better) ** 2) if better > 0 else 1,
        noise=scale * noise,
    )


def _alone(
    seen: Experiments,
    models: Models,
    posterior: GraphPosterior,
    given: _Candidates,
    outlook: _Outlook,
) -> list[Candidate]:
    """Return each variable at its best value, first the one that is part of the best
    experiment in most models.
    """
    winners = given.arms.flags[outlook.mean.argmin(axis=1)].mean(axis=0)
    score = outlook.gain - 1e-6 * outlook.mean.mean(axis=0)
    found = []
    for column, name in enumerate(seen.names):
        mine = given.of_only(column)
        if mine.size:
            place = int(mine[np.argmax(score[mine])])
            one = _describe(seen, models, given, outlook, place)
            found.append(
                Candidate(
                    name,
                    one.settings[name],
                    float(winners[column]),
                    float(posterior.edge_probs[column, seen.column]),
                    float(posterior.ancestor_probs[column, seen.column]),
                    one.expected,
                    one.std,
                    one.gain,
                )
            )
    return sorted(found, key=lambda each: -each.probability)


def _curves(
    seen: Experiments, models: Models, given: _Candidates, outlook: _Outlook
) -> dict[str, EffectCurve]:
    """Return what to expect of each variable, set alone, at all values it may have."""
    center, scale = (float(x[seen.column]) for x in (models.center, models.scale))
    found = {}
    for name, (low, high) in seen.ranges.items():
        column = seen.names.index(name)
        mine = given.of_only(column)
        if mine.size:
            drawn = scale * seen.sign * outlook.mean[:, mine]
            values = low + given.arms.shares[mine, column] * (high - low)
            expected = center + drawn.mean(axis=0)
            found[name] = EffectCurve(values, expected, drawn.std(axis=0))
    return found


def _experiments_made(
    seen: Experiments, models: Models
) -> tuple[Arms, np.ndarray, np.ndarray, np.ndarray]:
    """Return the experiments so far, their outcomes (lower is better), what each model
    expects of them, and the variance of their noise.
    """
    rows = np.flatnonzero(seen.intervened.any(axis=1))
    flags, values = seen.intervened[rows], seen.values[rows]
    expected, noise = np.zeros((len(models.mean), len(rows))), np.zeros(len(rows))
    for kind in np.unique(flags, axis=0):
        of = np.flatnonzero((flags == kind).all(axis=1))
        columns = np.flatnonzero(kind).tolist()
        z = models.scaled(values[of][:, columns], columns)
        expected[:, of] = seen.sign * respond(models, columns, z, seen.column)
        noise[of] = outcome_variance(models, columns, seen.column)
    outcome = seen.sign * models.scaled(values[:, seen.column], seen.column)
    return _arms(seen, flags, values), outcome, expected, noise
