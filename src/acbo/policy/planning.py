"""Experiments on one or two variables, in batches, under costs and constraints.

Linear models are drawn from the posterior over graphs; the outcome of any intervention
is then known in closed form in each of them. What they miss is added by a Gaussian
process over interventions, of which experiments on one variable tell about pairs too.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import erf

from acbo.named.tables import Experiments
from acbo.posterior.order_chains import GraphPosterior
from acbo.types import lower_is_better

MODELS = 256  # drawn from the posterior
GRID, PAIR_GRID = 33, 17  # values of a variable alone, and of each one in a pair
PAIRED = 8  # of many variables, the likeliest causes are tried in pairs
BESIDE = 0.2  # of a range: experiments of one batch are farther apart than this
LENGTH = 0.3  # of the Gaussian process, in widths of a range
# Variances of what linear models miss, in those of the target, and how likely they are.
MISFITS = ((0.0, 0.7), (0.1, 0.15), (0.5, 0.15))
# A graph without a path may be wrong where effects are curved: there this much of the
# deviation counts.
UNREACHED = 0.5
WEAK = 0.1, 1e-4  # prior precision of weights and of the intercept
NOISE = 1.0, 0.05  # shape and scale of the noise's inverse gamma prior

Condition = tuple[str, str, float]
COMPARE: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "<=": lambda x, y: x <= y,
    ">=": lambda x, y: x >= y,
    "<": lambda x, y: x < y,
    ">": lambda x, y: x > y,
}


def parse_region(words: str) -> tuple[Condition, ...]:
    """Return the conditions of a forbidden region.

    >>> parse_region("heat > 80 & pH <= 4")
    (('heat', '>', 80.0), ('pH', '<=', 4.0))
    """
    found = []
    for part in re.split(r"&| and ", words):
        match = re.fullmatch(r"\s*(.+?)\s*(<=|>=|<|>)\s*([-+\d.eE]+)\s*", part)
        if match is None:
            raise ValueError(
                f"region {words!r}: {part.strip()!r} is not NAME>NUMBER or "
                "NAME<NUMBER, joined by &, e.g. 'heat>80 & pH<4'"
            )
        found.append((match[1], match[2], float(match[3])))
    return tuple(found)


@dataclass(frozen=True)
class Limits:
    """What an experiment may be, by the names of the table."""

    levels: Mapping[str, Sequence[float]]
    cost: Mapping[str, float]  # 1 where not given
    avoid: Sequence[tuple[Condition, ...]]
    at_once: int
    batch: int

    def price(self, names: Sequence[str]) -> float:
        """Return the cost of setting some variables; without costs, all are alike."""
        return sum(self.cost.get(name, 1.0) for name in names) if self.cost else 1.0


class Models(NamedTuple):
    """Linear models x = x W + b + noise, in deviations of the columns."""

    mean: Float[np.ndarray, "s d"]
    effect: Float[np.ndarray, "s d d"]  # total, of i on j: (I - W)^-1
    noise: Float[np.ndarray, "s d"]  # variances
    graphs: Bool[np.ndarray, "s d d"]


class Plan(NamedTuple):
    """One experiment of a batch; outcomes in the units of the table."""

    settings: dict[str, float]
    expected: float
    std: float  # of the mean outcome
    gain: float  # expected improvement on what is known, and on the batch before it
    noise: float  # standard deviation of one outcome
    runs: int  # whose mean tells this improvement from the noise


class Found(NamedTuple):
    """A batch, and each variable alone at its best: (plan, how often it is best)."""

    batch: list[Plan]
    alone: dict[str, tuple[Plan, float]]


def draw_models(
    seen: Experiments, graphs: Bool[np.ndarray, "s d d"], draw: np.random.Generator
) -> Models:
    """Draw weights and noise of each graph, by regressions over rows where a variable
    was free; the prior is conjugate (normal inverse gamma).
    """
    center, scale = _scales(seen.values)
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
            spread = draw.normal(size=(len(of), len(middle))) @ root.T
            found = middle + np.sqrt(variance)[:, None] * spread
            weights[of[:, None], np.flatnonzero(parents)[None], j] = found[:, :-1]
            base[of, j], noise[of, j] = found[:, -1], variance
    effect = np.linalg.inv(np.eye(d) - weights)
    return Models(np.einsum("si,sij->sj", base, effect), effect, noise, graphs)


def _scales(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    spread = values.std(axis=0)
    return values.mean(axis=0), np.where(spread > 0, spread, 1.0)


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


class Arms(NamedTuple):
    """Interventions as rows: which columns are set, and to which shares of ranges."""

    flags: Bool[np.ndarray, "n d"]
    shares: Float[np.ndarray, "n d"]


def _kernel(a: Arms, b: Arms) -> Float[np.ndarray, "n m"]:
    """Return covariances: a curve for each variable, and a surface for each pair."""
    total = np.zeros((len(a.flags), len(b.flags)))
    product = np.ones_like(total)
    for column in np.flatnonzero(a.flags.any(axis=0) & b.flags.any(axis=0)):
        both = a.flags[:, None, column] & b.flags[None, :, column]
        away = (a.shares[:, None, column] - b.shares[None, :, column]) / LENGTH
        curve = np.where(both, np.exp(-0.5 * away**2), 0.0)
        total += curve
        product *= np.where(both, curve, 1.0)
    same = (a.flags[:, None] == b.flags[None]).all(axis=2)
    pairs = same & (a.flags.sum(axis=1) > 1)[:, None]
    return total + np.where(pairs, product, 0.0)


def misfit(
    made: Arms, left: np.ndarray, noise: np.ndarray, at: Arms
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance, at some interventions, of what linear models miss, from
    what they left of experiments; variances are averaged by their evidence.
    """
    count = at.flags.sum(axis=1)
    own = (count + (count > 1)).astype(np.float64)
    if not len(left):
        return np.zeros(len(own)), own * sum(v * p for v, p in MISFITS)
    inner, outer = _kernel(made, made), _kernel(at, made)
    logs, means, variances = [], [], []
    for variance, prior in MISFITS:
        factor = np.linalg.cholesky(variance * inner + np.diag(noise))
        white = np.linalg.solve(factor, left)
        cross = np.linalg.solve(factor, variance * outer.T)
        logs.append(math.log(prior) - np.log(np.diag(factor)).sum() - white @ white / 2)
        means.append(white @ cross)
        variances.append(np.maximum(variance * own - (cross**2).sum(axis=0), 0.0))
    share = np.exp(np.array(logs) - max(logs))
    share /= share.sum()
    mean = share @ np.array(means)
    square = share @ (np.array(variances) + np.array(means) ** 2)
    return mean, np.maximum(square - mean**2, 0.0)


def improvement(
    best: Float[np.ndarray, " s"],
    mean: Float[np.ndarray, "s c"],
    std: Float[np.ndarray, "s c"],
) -> Float[np.ndarray, " c"]:
    """Return E[max(best - outcome, 0)] over models, outcomes normal in each of them."""
    # Jones, Schonlau and Welch (1998), equation 15; its limit where nothing is unsure.
    short = best[:, None] - mean
    sure = std < 1e-9
    z = short / np.where(sure, 1.0, std)
    below = 0.5 * (1 + erf(z / math.sqrt(2)))
    density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    gain = np.where(sure, np.maximum(short, 0.0), short * below + std * density)
    return gain.mean(axis=0)


class _Candidates(NamedTuple):
    arms: Arms
    mean: Float[np.ndarray, "s c"]  # of the target by linear models, lower is better
    noise: Float[np.ndarray, " c"]  # variance
    trust: Float[np.ndarray, "s c"]  # in what linear models miss: 1 for causes
    cost: Float[np.ndarray, " c"]


def _values_of(seen: Experiments, name: str, limits: Limits, count: int) -> np.ndarray:
    if name in limits.levels:
        return np.asarray(limits.levels[name], np.float64)
    return np.linspace(*seen.ranges[name], count)


def _columns_together(
    seen: Experiments, reach: Float[np.ndarray, " d"], at_once: int
) -> Iterator[tuple[int, ...]]:
    settable = [seen.names.index(name) for name in seen.ranges]
    yield from ((column,) for column in settable)
    if at_once > 1:
        likely = sorted(settable, key=lambda column: -reach[column])[:PAIRED]
        yield from itertools.combinations(sorted(likely), 2)


def _list_candidates(seen: Experiments, models: Models, limits: Limits) -> _Candidates:
    """Return every experiment that may be made."""
    center, scale = _scales(seen.values)
    low, high, _ = seen.bounds
    width = np.where(high > low, high - low, 1.0)
    d, target = len(seen.names), seen.names.index(seen.target)
    sign = lower_is_better(seen.direction)
    reach = models.effect[:, :, target] != 0
    parts: list[_Candidates] = []
    for columns in _columns_together(seen, reach.mean(axis=0), limits.at_once):
        a = list(columns)
        count = GRID if len(a) == 1 else PAIR_GRID
        names = [seen.names[column] for column in a]
        axes = [_values_of(seen, name, limits, count) for name in names]
        values = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        values = values.reshape(-1, len(a))
        values = values[~_forbidden(seen, models, limits, a, values)]
        flags, shares = np.zeros((len(values), d), bool), np.zeros((len(values), d))
        flags[:, a] = True
        shares[:, a] = (values - low[a]) / width[a]
        scaled = (values - center[a]) / scale[a]
        parts.append(
            _Candidates(
                Arms(flags, shares),
                sign * respond(models, a, scaled, target),
                np.full(len(values), outcome_variance(models, a, target)),
                np.outer(
                    np.where(reach[:, a].any(axis=1), 1.0, UNREACHED),
                    np.ones(len(values)),
                ),
                np.full(len(values), limits.price(names)),
            )
        )
    if not any(len(part.cost) for part in parts):
        raise ValueError("every experiment is in a forbidden region: allow some")
    arms, *rest = zip(*parts, strict=True)
    flags, shares = (np.concatenate(each) for each in zip(*arms, strict=True))
    return _Candidates(
        Arms(flags, shares), *(np.concatenate(each, axis=-1) for each in rest)
    )


def _forbidden(
    seen: Experiments,
    models: Models,
    limits: Limits,
    columns: Sequence[int],
    values: Float[np.ndarray, "c a"],
) -> Bool[np.ndarray, " c"]:
    """Return which settings lead into a region; variables that are not set are where
    the models expect them.
    """
    center, scale = _scales(seen.values)
    a = list(columns)
    scaled = (values - center[a]) / scale[a]
    bad = np.zeros(len(values), bool)
    for region in limits.avoid:
        inside = np.ones(len(values), bool)
        for name, sign, number in region:
            column = seen.names.index(name)
            if column in a:
                x = values[:, a.index(column)]
            else:
                expected = respond(models, columns, scaled, column).mean(axis=0)
                x = center[column] + scale[column] * expected
            inside &= COMPARE[sign](x, number)
        bad |= inside
    return bad


class _Outlook(NamedTuple):
    """What is expected of the candidates, in deviations of the target."""

    best: Float[np.ndarray, " s"]  # of what was made, in each model
    mean: Float[np.ndarray, "s c"]
    unsure: Float[np.ndarray, " c"]  # variance that models do not know of
    gain: Float[np.ndarray, " c"]


def plan(seen: Experiments, posterior: GraphPosterior, limits: Limits) -> Found:
    """Return the experiments of highest expected improvement per cost, one after the
    other: each counts what the ones before it may bring.
    """
    graphs = np.asarray(posterior.graphs, bool)
    picked = np.linspace(0, len(graphs) - 1, min(MODELS, len(graphs))).astype(int)
    models = draw_models(seen, graphs[picked], np.random.default_rng(0))
    given = _list_candidates(seen, models, limits)
    made, outcome, expected, noise = _experiments_made(seen, models)
    left = outcome - expected.mean(axis=0)
    # What comes of setting nothing is known too.
    target = seen.names.index(seen.target)
    best = lower_is_better(seen.direction) * models.mean[:, target]
    if len(left):
        extra = misfit(made, left, noise, made)[0]
        best = np.minimum(best, (expected + extra).min(axis=1))

    batch: list[Plan] = []
    alone: dict[str, tuple[Plan, float]] = {}
    untried = np.ones(len(given.cost), bool)
    for turn in range(limits.batch):
        shift, unsure = misfit(made, left, noise, given.arms)
        mean = given.mean + shift
        gain = improvement(best, mean, np.sqrt(unsure)[None] * given.trust)
        outlook = _Outlook(best, mean, unsure, gain)
        if not turn:
            alone = _alone(seen, given, outlook)
        # Where nothing improves, the best mean decides.
        score = gain / given.cost - 1e-6 * mean.mean(axis=0)
        place = int(np.argmax(np.where(untried, score, -np.inf)))
        batch.append(_describe(seen, given, outlook, place))
        # The outcome to come is believed to be its mean (Ginsbourger et al., 2010).
        best = np.minimum(best, mean[:, place])
        untried &= ~_beside(given.arms, place)
        if not untried.any():
            break
        made = Arms(
            np.append(made.flags, given.arms.flags[place, None], axis=0),
            np.append(made.shares, given.arms.shares[place, None], axis=0),
        )
        left = np.append(left, shift[place])
        noise = np.append(noise, given.noise[place])
    return Found(batch, alone)


def _beside(arms: Arms, place: int) -> Bool[np.ndarray, " c"]:
    """Return which candidates set the same variables to nearly the same values."""
    same = (arms.flags == arms.flags[place]).all(axis=1)
    return same & (np.abs(arms.shares - arms.shares[place]).max(axis=1) < BESIDE)


def _describe(
    seen: Experiments, given: _Candidates, outlook: _Outlook, place: int
) -> Plan:
    """Return one candidate in the units of the table."""
    target = seen.names.index(seen.target)
    center, scale = (float(each[target]) for each in _scales(seen.values))
    low, high, _ = seen.bounds
    values = low + given.arms.shares[place] * (high - low)
    column = outlook.mean[:, place]
    better = float(outlook.best.mean() - column.mean())
    noise = math.sqrt(given.noise[place])
    return Plan(
        {
            name: float(values[i])
            for i, name in enumerate(seen.names)
            if given.arms.flags[place, i]
        },
        center + scale * lower_is_better(seen.direction) * float(column.mean()),
        scale * math.sqrt(column.var() + outlook.unsure[place]),
        scale * float(outlook.gain[place]),
        scale * noise,
        # So many that two standard errors of their mean are this improvement.
        math.ceil((2 * noise / better) ** 2) if better > 0 else 1,
    )


def _alone(
    seen: Experiments, given: _Candidates, outlook: _Outlook
) -> dict[str, tuple[Plan, float]]:
    """Return each variable at its best value, and in how many models it is part of the
    best experiment.
    """
    winners = given.arms.flags[outlook.mean.argmin(axis=1)].mean(axis=0)
    score = outlook.gain - 1e-6 * outlook.mean.mean(axis=0)
    single = given.arms.flags.sum(axis=1) == 1
    found = {}
    for column, name in enumerate(seen.names):
        mine = single & given.arms.flags[:, column]
        if mine.any():
            place = int(np.argmax(np.where(mine, score, -np.inf)))
            one = _describe(seen, given, outlook, place)
            found[name] = (one, float(winners[column]))
    return found


def _experiments_made(
    seen: Experiments, models: Models
) -> tuple[Arms, np.ndarray, np.ndarray, np.ndarray]:
    """Return the experiments so far, their outcomes (lower is better), what each model
    expects of them, and the variance of their noise.
    """
    center, scale = _scales(seen.values)
    target, sign = seen.names.index(seen.target), lower_is_better(seen.direction)
    low, high, allowed = seen.bounds
    width = np.where(high > low, high - low, 1.0)
    z = (seen.values - center) / scale
    rows = np.flatnonzero(seen.intervened.any(axis=1))
    expected = np.zeros((len(models.mean), len(rows)))
    noise = np.zeros(len(rows))
    flags = seen.intervened[rows]
    for kind in np.unique(flags, axis=0):
        of = np.flatnonzero((flags == kind).all(axis=1))
        columns = np.flatnonzero(kind)
        values = z[rows[of]][:, columns]
        expected[:, of] = sign * respond(models, columns.tolist(), values, target)
        noise[of] = outcome_variance(models, columns.tolist(), target)
    shares = np.where(allowed, (seen.values[rows] - low) / width, 0.0)
    arms = Arms(flags & allowed, shares)
    return arms, sign * z[rows, target], expected, noise
