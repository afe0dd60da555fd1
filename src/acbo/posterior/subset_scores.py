"""Scores of all subsets of a short list of candidate causes, for every variable.

Three kinds of mechanism are averaged by their evidence, so that the shape is learned
and not assumed: linear with Gaussian noise, linear with noise of another density or of
a spread that varies, and curves. Rows in which a variable was set say nothing about its
causes and are left out of its score, and so are those in which its mechanism was
changed. A candidate that goes with a variable only where it was not set shares a hidden
cause with it.
"""

import itertools
import math
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from acbo.posterior import inputs
from acbo.posterior.inputs import free_moments, standardized
from acbo.posterior.scores import ScorePrior

CANDIDATES = 12  # per variable; a table of 2**12 subsets for each
# One variance alone fails on weak effects or on strong ones, so three are averaged.
WEIGHT_VARIANCES = (0.1, 1.0, 10.0)
# Log prior odds of the other mechanisms against linear ones with Gaussian noise.
VARYING_SPREAD = -2.0
CURVED = -2.0
HIDDEN_CAUSE = -3.0
# The density is fitted to the residuals it is judged by, and curves look like skew:
# with all of the gain, tables of curves get confident wrong directions.
DENSITY_SHARE = 0.6
DENSITY_ROWS = 20  # fewer do not tell a density
# Up to so many variables every subset is tried with every mechanism. Beyond, densities
# are those of the strongest candidates and curves have at most two of these causes.
FEW_VARIABLES = 13
STRONGEST = 8
LONG_TAILS = 1.8  # standard deviations of a Gaussian as wide in the middle half
FREQUENCIES = (0.8, 1.6)  # of curves, per standard deviation of the cause
CURVE_VARIANCES = (1.0, 10.0)
ROWS_AT_ONCE = 128
CHUNK = 25_000  # rows of designs of curves at once: some 5 MB, which caches hold


def log_sum(terms: np.ndarray) -> np.ndarray:
    """Return log(sum of exp) over the first axis; -inf where there is nothing."""
    # `np.logaddexp.reduce` is some ten times slower, one pair of numbers at a time.
    most = terms.max(axis=0)
    most = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        return most + np.log(np.exp(terms - most).sum(axis=0))


def screen_causes(
    grams: np.ndarray,
    table: inputs.CheckedData,
    required: np.ndarray,
    forbidden: np.ndarray,
    slots: int,
) -> Int[np.ndarray, "d slots"]:
    """Return the candidate causes of every variable; d marks an unused slot.

    Required causes come first. Then three rankings take turns: forward selection,
    correlation, and how far the variable moved when another was set. A strong candidate
    in one direction is one in the other as well: otherwise the screening, and not the
    data, would decide the direction.
    """
    d = len(table.names)
    closed = forbidden | np.eye(d, dtype=bool)
    shifts = _shifts(standardized(table), table.intervened)
    strength = _correlations(grams)
    by_shift = np.argsort(-shifts, axis=0, kind="stable")
    # What was never set has shifted nothing and has no place in this ranking.
    moved = np.take_along_axis(shifts, by_shift, axis=0) > 0
    rankings = [
        _forward_ranking(grams, closed, slots),
        np.argsort(-strength, axis=0, kind="stable").T,
        np.where(moved, by_shift, np.arange(d)).T,
    ]
    place = np.full((d, d), d)  # [candidate, variable]
    for j in range(d):
        turns = np.stack([ranking[j, :slots] for ranking in rankings], axis=1)
        own = [i for i in dict.fromkeys(turns.ravel().tolist()) if not closed[i, j]]
        place[own, j] = np.arange(len(own))
    lists = np.full((d, slots), d)
    first = slots // 2
    for j in range(d):
        own, asked = place[:, j], place[j]
        groups = np.select([required[:, j], own < first, asked < first], (0, 1, 2), 3)
        keys = (-strength[:, j], np.where(groups == 2, asked, own), groups)
        known = required[:, j] | (own < d) | (asked < first)
        kept = [i for i in np.lexsort(keys) if known[i] and not closed[i, j]][:slots]
        lists[j, : len(kept)] = kept
    return lists


def _forward_ranking(
    grams: np.ndarray, closed: np.ndarray, steps: int
) -> Int[np.ndarray, "d steps"]:
    """Return the variables in the order in which they reduce the residual most."""
    d = len(grams)
    every = np.arange(d)
    # The intercept is swept out first; a little ridge keeps copies of a column apart.
    rest = grams[:, 1:, 1:] - (
        grams[:, 1:, :1] * grams[:, :1, 1:] / np.maximum(grams[:, :1, :1], 1)
    )
    rest = rest + 1e-6 * np.eye(d)[None]
    left = ~closed.T
    found = np.empty((d, steps), int)
    for step in range(steps):
        own = np.einsum("jii->ji", rest)
        gain = np.where(left, rest[every, :, every] ** 2 / np.maximum(own, 1e-9), -1.0)
        best = gain.argmax(axis=1)
        found[:, step] = best
        left[every, best] = False
        row = rest[every, best]
        pivot = np.maximum(own[every, best], 1e-9)
        rest = rest - row[:, :, None] * (row / pivot[:, None])[:, None, :]
    return found


def tame_tails(table: inputs.CheckedData) -> inputs.CheckedData:
    """Return the table with long tails drawn in, where its columns fit better so.

    Where quantities vary by factors, as in chains of noise that grows with its cause, a
    few rows decide every sum of squares. asinh of the distance from the median is a
    line in the middle and a logarithm far out.
    """
    resting = ~table.intervened.any(axis=1)
    rows = table.values[resting] if resting.sum() >= DENSITY_ROWS else table.values
    median, spread = np.median(rows, axis=0), rows.std(axis=0)
    width = 1.4826 * np.median(np.abs(rows - median), axis=0)
    width = np.where(width > 1e-6 * spread, width, np.where(spread > 0, spread, 1))
    if (spread <= LONG_TAILS * width).all():
        return table
    free = ~table.intervened
    plain = table._replace(values=(table.values - median) / width)
    tamed = table._replace(values=np.arcsinh(plain.values))
    # Densities of one quantity on two scales differ by the derivative.
    slope = np.where(free, -0.5 * np.log1p(plain.values**2), 0).sum(axis=0)
    gain = _log_densities(tamed) + slope / np.maximum(free.sum(axis=0), 1)
    return tamed if np.mean(gain - _log_densities(plain)) > 0 else table


def _log_densities(table: inputs.CheckedData) -> Float[np.ndarray, " d"]:
    """Return nats per row of every variable, given the three that tell most of it."""
    z = standardized(table)
    d = z.shape[1]
    grams = free_moments(z, table.intervened)
    rankings = _forward_ranking(grams, np.eye(d, dtype=bool), min(3, d - 1))
    found = np.zeros(d)
    for j, own in enumerate(rankings):
        free = ~table.intervened[:, j]
        design = np.column_stack([np.ones(free.sum()), z[free][:, own]])
        y = table.values[free, j]
        left = y - design @ np.linalg.lstsq(design, y, rcond=1e-6)[0]
        shape = DENSITY_SHARE * negentropy(left[None])[0]
        found[j] = shape - 0.5 * np.log(left.var() + 1e-12)
    return found


def _correlations(grams: np.ndarray) -> Float[np.ndarray, "d d"]:
    """Return how strongly i and j go together [i, j], over rows where j was free."""
    every = np.arange(len(grams))
    count = np.maximum(grams[:, 0, 0], 1)[:, None]
    mean = grams[:, 0, 1:] / count
    square = np.einsum("jii->ji", grams)[:, 1:] / count
    spread = np.sqrt(np.maximum(square - mean**2, 1e-12))
    product = grams[every, 1:, every + 1] / count - mean * mean[every, every][:, None]
    return np.abs(product / spread / spread[every, every][:, None]).T


def _shifts(
    z: Float[np.ndarray, "n d"], was_set: Bool[np.ndarray, "n d"]
) -> Float[np.ndarray, "d d"]:
    """Return how far j moved when i was set [i, j], in standard errors."""
    d = z.shape[1]
    free = ~was_set.any(axis=1)
    found = np.zeros((d, d))
    if free.sum() < 2:
        return found
    mean, spread = z[free].mean(axis=0), z[free].std(axis=0)
    spread = np.where(spread > 0, spread, 1)
    for i in np.flatnonzero(was_set.any(axis=0)):
        rows = was_set[:, i][:, None] & ~was_set
        count = rows.sum(axis=0)
        # Squares, since settings on both sides of the mean may cancel.
        moved = np.where(rows, ((z - mean) / spread) ** 2 - 1, 0).sum(axis=0)
        found[i] = np.abs(moved) / np.sqrt(np.maximum(2 * count, 1))
    return found


def score_subsets(
    table: inputs.CheckedData,
    grams: Float[np.ndarray, "d e e"],
    lists: Int[np.ndarray, "d slots"],
) -> tuple[Float[np.ndarray, "d subsets"], Float[np.ndarray, "shaped d subsets"]]:
    """Return log P(column j, causes S) for every subset S of the list of j.

    Bit k of the subset's number stands for slot k. Before the data, every number of
    causes is equally likely, and so is every set of a size. Second comes the share of
    it in which slot k is no cause but shares a hidden one, for the first slots.
    """
    d, slots = lists.shape
    size = np.bitwise_count(np.arange(1 << slots))
    sets_of = np.array([math.lgamma(d) - math.lgamma(k + 1) - math.lgamma(d - k)
                        for k in range(slots + 1)])  # fmt: skip
    counts = (~table.intervened).sum(axis=0).astype(float)
    logs = [
        _evidence(grams, counts, lists, ScorePrior(weight_variance=each))
        for each in WEIGHT_VARIANCES
    ]
    linear = log_sum(np.stack(logs)) - math.log(len(logs))
    few = d <= FEW_VARIABLES
    shaped = slots if few else min(slots, STRONGEST)
    z = standardized(table)
    gains = density_gains(z[~table.intervened.any(axis=1)], lists[:, :shaped])
    # A weak candidate hardly changes the shape of what is left.
    linear = linear + gains[:, np.arange(1 << slots) & ((1 << shaped) - 1)]
    curves = curve_evidence(z, table.intervened, lists[:, :shaped], 3 if few else 2)
    found = linear.copy()
    found[:, : 1 << shaped] = np.logaddexp(found[:, : 1 << shaped], curves + CURVED)
    hidden = linear + hidden_cause_gains(z, table, grams, lists, shaped)
    found = log_sum(np.concatenate([found[None], hidden]))
    hidden = np.exp(hidden - found)
    found = found - sets_of[size][None]
    unused = ((lists == d) * (1 << np.arange(slots))).sum(axis=1)
    found = np.where(np.arange(1 << slots)[None] & unused[:, None], -np.inf, found)
    return found, hidden


def hidden_cause_gains(
    z: Float[np.ndarray, "n d"],
    table: inputs.CheckedData,
    grams: Float[np.ndarray, "d e e"],
    lists: Int[np.ndarray, "d slots"],
    shaped: int,
) -> Float[np.ndarray, "shaped d subsets"]:
    """Return the log odds that slot k of S shares a hidden cause, against causing.

    Both say the same about rows in which the candidate was free. Where it was set, a
    cause moves the variable, while a partner by a hidden cause does not: its column is
    0 there, the mean. Without such rows nothing tells the two apart: -inf.
    """
    d, slots = lists.shape
    # A candidate that was changed and not set still follows the hidden cause.
    intervened, was_set = table.intervened, table.intervened & ~table.soft
    if not was_set.any():
        return np.empty((0, d, 1 << slots))
    prior = ScorePrior(weight_variance=1.0)
    counts = (~intervened).sum(axis=0).astype(float)
    short = lists[:, :shaped]
    plain = _evidence(grams, counts, short, prior)
    subset = np.arange(1 << slots)
    found = np.full((shaped, d, 1 << slots), -np.inf)
    design = np.concatenate([np.ones((len(z), 1)), z], axis=1)
    for k in range(shaped):
        changed, told = grams.copy(), np.zeros(d, bool)
        for j in np.flatnonzero(short[:, k] < d):
            i = short[j, k]
            rows = was_set[:, i] & ~intervened[:, j]
            told[j] = rows.any()
            moment = z[rows, i] @ design[rows]
            changed[j, i + 1] -= moment
            changed[j, :, i + 1] -= moment
            # The square stands in the row and in the column: it was taken off twice.
            changed[j, i + 1, i + 1] += moment[i + 1]
        odds = _evidence(changed, counts, short, prior) - plain + HIDDEN_CAUSE
        held = (subset >> k & 1 == 1)[None] & told[:, None]
        found[k] = np.where(held, odds[:, subset & ((1 << shaped) - 1)], -np.inf)
    return found


def _evidence(
    grams: np.ndarray, counts: np.ndarray, lists: np.ndarray, prior: ScorePrior
) -> Float[np.ndarray, "d subsets"]:
    """Return the log evidence of every subset, by Schur complements.

    The table doubles with every slot: each matrix goes on without the slot's row, and
    once more with the row eliminated. So 2**k subsets cost little more than their own
    number, where eliminating each on its own would cost k**3 times as much.
    """
    d, slots = lists.shape
    index = np.concatenate(
        [np.zeros((d, 1), int), lists + 1, np.arange(1, d + 1)[:, None]], axis=1
    )
    padded = np.pad(grams, ((0, 0), (0, 1), (0, 1)))
    every = np.arange(d)[:, None, None]
    matrix = padded[every, index[:, :, None], index[:, None, :]]
    weights = [1 / prior.weight_variance] * slots
    ridge = [1 / prior.intercept_variance, *weights, 2 * prior.noise_scale]
    matrix = matrix + np.diag(ridge)
    matrix, pivot = _eliminate(matrix[:, None])
    logs = np.log(pivot) + math.log(prior.intercept_variance)
    for _ in range(slots):
        reduced, pivot = _eliminate(matrix)
        weighed = logs + np.log(pivot) + math.log(prior.weight_variance)
        # The new slot is the higher bit: subsets with it follow those without.
        matrix = np.concatenate([matrix[:, :, 1:, 1:], reduced], axis=1)
        logs = np.concatenate([logs, weighed], axis=1)
    shape = prior.noise_shape + counts / 2
    return -logs / 2 - shape[:, None] * np.log(matrix[:, :, 0, 0] / 2)


def _eliminate(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eliminate the first row and column; return the rest and the pivot."""
    pivot = matrix[:, :, 0, 0]
    row = matrix[:, :, 0, 1:]
    rest = matrix[:, :, 1:, 1:]
    scaled = row / pivot[:, :, None]
    return rest - row[:, :, :, None] * scaled[:, :, None, :], pivot


def density_gains(
    z: Float[np.ndarray, "n d"], lists: Int[np.ndarray, "d slots"]
) -> Float[np.ndarray, "d subsets"]:
    """Return what a free density and spread of the noise add to the log evidence.

    Only rows in which nothing was set may tell: otherwise heavy tails would explain
    experiments away. In the wrong direction the residuals of a linear model with
    non-Gaussian noise are closer to Gaussian, so the gain tells directions apart
    (Hyvärinen & Smith, Pairwise likelihood ratios, 2013).
    """
    d, slots = lists.shape
    found = np.zeros((d, 1 << slots))
    if len(z) < DENSITY_ROWS:
        return found
    # An unused slot is a column of zeros: it explains nothing.
    wide = np.pad(z, ((0, 0), (0, 1))).astype(np.float32)
    for j in range(d):
        rest = wide[:, [*lists[j], j]].T[None]
        for _ in range(slots):
            # As in `_evidence`, but on rows: with the slot eliminated and without.
            column, others = rest[:, 0], rest[:, 1:]
            norm = np.einsum("sn,sn->s", column, column) + 1e-3 * len(z)
            weight = np.einsum("sn,scn->sc", column, others) / norm[:, None]
            cleared = others - weight[:, :, None] * column[:, None]
            rest = np.concatenate([others, cleared])
        found[j] = _gain(rest[:, 0], wide[None, :, j] - rest[:, 0])
    return found


def _gain(
    residual: Float[np.ndarray, "s n"], fitted: Float[np.ndarray, "s n"]
) -> Float[np.ndarray, " s"]:
    """Average over four kinds of noise, each less half a log n for every parameter."""
    n = residual.shape[1]
    penalty = math.log(n) / 2
    density = DENSITY_SHARE * n * negentropy(residual)
    centered = fitted - fitted.mean(axis=1, keepdims=True)
    scale = np.sqrt((centered**2).mean(axis=1, keepdims=True) + 1e-6)
    signal = np.clip(centered / scale, -3, 3)
    signal -= signal.mean(axis=1, keepdims=True)
    square = residual**2
    variance = square.mean(axis=1, keepdims=True) + 1e-9
    # log variance = a + b signal: one Fisher step for b, outliers capped.
    slope = (signal * np.minimum(square / variance, 9)).mean(axis=1, keepdims=True)
    root = np.exp(-0.5 * np.clip(slope, -1, 1) * signal)
    even = residual * root
    varied = (even**2).mean(axis=1) + 1e-9
    spread = -n / 2 * np.log(varied / variance[:, 0])
    both = spread + DENSITY_SHARE * n * negentropy(even)
    terms = [
        np.zeros(len(residual)),
        density - 2 * penalty,
        spread - penalty + VARYING_SPREAD,
        both - 3 * penalty + VARYING_SPREAD,
    ]
    return log_sum(np.stack(terms))


def negentropy(residual: Float[np.ndarray, "s n"]) -> Float[np.ndarray, " s"]:
    """Return how many nats a row is better described by a density than by a Gaussian.

    From E[x |x|], which tells skew, and E|x|, which tells tails (Hyvärinen, New
    approximations of differential entropy, 1998). Near the Gaussian each counts by its
    variance there; further away the curvature is that of the exponential and gamma
    densities, of the uniform, and of the Laplace and Student densities, whose entropies
    are known.
    """
    x = residual - residual.mean(axis=1, keepdims=True)
    x = x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-12)
    size = np.abs(x)
    skew = np.minimum((x * size).mean(axis=1) ** 2, 0.3)
    tails = size.mean(axis=1) - math.sqrt(2 / math.pi)
    light = np.clip(tails, 0, 0.0681)  # that of the uniform density
    heavy = np.maximum(-tails, 0)
    of_tails = light**2 * (1 + 36 * light) + heavy**2 / (1 + 3 * heavy)
    return 1.1025 * skew * (1 + 2.5 * skew) + 11.09 * of_tails


def curve_evidence(
    z: Float[np.ndarray, "n d"],
    intervened: Bool[np.ndarray, "n d"],
    lists: Int[np.ndarray, "d slots"],
    most: int,
) -> Float[np.ndarray, "d subsets"]:
    """Return the log evidence of curves in up to `most` causes; -inf for more."""
    d, slots = lists.shape
    found = np.full((d, 1 << slots), -np.inf)
    free = np.where(intervened, 0, z)
    # Products of so few rows stay on one thread: for more, BLAS wakes the others, which
    # takes several times the work on a busy machine.
    parts = [slice(at, at + ROWS_AT_ONCE) for at in range(0, len(z), ROWS_AT_ONCE)]
    for size in range(1, min(most, slots) + 1):
        chosen = np.array(list(itertools.combinations(range(slots), size)))
        numbers = (1 << chosen).sum(axis=1)
        causes = np.sort(lists[:, chosen], axis=2)  # [d, sets, size]
        there = causes[:, :, -1] < d
        # A set that stands in several lists has one design for all of them.
        sets, place = np.unique(causes[there], axis=0, return_inverse=True)
        places = np.full(there.shape, -1)
        places[there] = place.ravel()
        count = max(1, CHUNK // len(z))
        for start in range(0, len(sets), count):
            block = sets[start : start + count]
            design = _curve_design(z, block)
            turned = design.transpose(0, 2, 1)
            inner: Any = sum(turned[:, :, part] @ design[:, part] for part in parts)
            moments: Any = sum(free[part].T @ design[:, part] for part in parts)
            for j in range(d):
                mine = (places[j] >= start) & (places[j] < start + len(block))
                if mine.any():
                    which = places[j, mine] - start
                    was_set = np.flatnonzero(intervened[:, j])
                    left_out = design[np.ix_(which, was_set)]
                    gram = inner[which] - left_out.transpose(0, 2, 1) @ left_out
                    response = np.delete(z[:, j], was_set)
                    found[j, numbers[mine]] = _curve_scores(
                        gram, moments[which, j], response, size
                    )
    return found


def _curve_design(
    z: Float[np.ndarray, "n d"], sets: Int[np.ndarray, "s k"]
) -> Float[np.ndarray, "s n p"]:
    """Return intercept, lines and waves along every cause, sum and difference.

    Fixed directions instead of random ones: so the order of the columns, their signs
    and their names change nothing.
    """
    size = sets.shape[1]
    signs = itertools.product((1.0, -1.0), repeat=size - 1)
    diagonals = [(1.0, *each) for each in signs] if size > 1 else []
    directions = np.array([*np.eye(size), *diagonals])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    x = z[:, sets].transpose(1, 0, 2)
    # In single precision, whose sines take a tenth of the time.
    along = np.clip(x, -4, 4, dtype=np.float32) @ directions.T.astype(np.float32)
    # Half of all waves' variance, whatever their number.
    scale = np.float32(1 / math.sqrt(len(directions)))
    waves = [scale * f(w * along) for w in FREQUENCIES for f in (np.sin, np.cos)]
    return np.concatenate([np.ones((*x.shape[:2], 1)), x, *waves], axis=2)


def _curve_scores(
    gram: Float[np.ndarray, "t p p"],
    moment: Float[np.ndarray, "t p"],
    response: Float[np.ndarray, " n"],
    lines: int,
) -> Float[np.ndarray, " t"]:
    """Return the evidence of designs, from moments over rows where nothing was set."""
    prior = ScorePrior()
    p = gram.shape[1]
    matrix = np.empty((len(gram), p + 1, p + 1))
    matrix[:, :p, :p] = gram
    matrix[:, :p, p] = matrix[:, p, :p] = moment
    matrix[:, p, p] = response @ response
    shape = prior.noise_shape + len(response) / 2
    waves = p - 1 - lines
    logs = []
    for variance in CURVE_VARIANCES:
        precision = np.ones(p + 1)
        precision[p - waves : p] = 1 / variance
        precision[p] = 2 * prior.noise_scale
        factor = np.linalg.cholesky(matrix + np.diag(precision))
        pivots = 2 * np.log(np.einsum("taa->ta", factor))
        determinant = pivots[:, :p].sum(axis=1) + waves * math.log(variance)
        logs.append(-determinant / 2 - shape * (pivots[:, p] - math.log(2)))
    return log_sum(np.stack(logs)) - math.log(len(logs))
