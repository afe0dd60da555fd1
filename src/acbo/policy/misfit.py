"""What linear models miss: a curve for each variable, a surface for each pair.

How long and how high the curve of a variable is, and how noisy the outcomes about it,
is drawn by the evidence of its rows. Rows where nothing was set tell of it in models
without a common cause; how well they foretell the experiments then weighs the models,
so that what was set wins over what was watched.
"""

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

# Lengths in widths of a range, variances in those of the target, the share of the
# models' noise that is left, and how likely it is that there is no curve.
LENGTHS, VARIANCES, SHARES = (0.07, 0.14, 0.28, 0.56), (0.1, 0.5, 1.5), (1.0, 0.6)
STRAIGHT = 0.3
# Curves have a slope about the place where the variable rests, with this variance over
# theirs. It makes the ends of a range the most uncertain, and so worth trying.
SLOPE = 6.0
# A graph without a path may be wrong where effects are curved: there this much of the
# deviation counts.
UNREACHED = 0.5
TOGETHER = 0.3  # probability that two variables have a surface beside their curves
SMOOTHEST = 2  # among LENGTHS: surfaces are no shorter
NEAR = 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2  # of a range: what is nearer is averaged
MANY = 128  # outcomes: of more, those that are less near are averaged
JITTER = 1e-6


class Arms(NamedTuple):
    """Interventions as rows: which columns are set, and to which shares of ranges."""

    flags: Bool[np.ndarray, "n d"]
    shares: Float[np.ndarray, "n d"]

    def some(self, rows: np.ndarray) -> "Arms":
        """Return some of them."""
        return Arms(self.flags[rows], self.shares[rows])

    @property
    def on_grid(self) -> "Arms":
        """Return them with shares that few of them differ in, if they are many."""
        if len(self.flags) <= MANY:
            return self
        return Arms(self.flags, np.rint(self.shares / NEAR[0]) * NEAR[0])


class Told(NamedTuple):
    """Outcomes of interventions, less what each model expects of them."""

    arms: Arms
    left: Float[np.ndarray, "s n"]
    noise: Float[np.ndarray, " n"]  # variance

    def some(self, rows: np.ndarray) -> "Told":
        """Return some of them; those of nearly the same intervention are averaged, and
        of less nearly the same one where there are many.
        """
        arms, left, noise = self.arms.some(rows), self.left[:, rows], self.noise[rows]
        first, which = _cells(arms, NEAR[0])
        for near in NEAR[1:]:
            if len(first) > MANY:
                first, which = _cells(arms, near)
        share = np.eye(len(first))[which]
        share = share / share.sum(axis=0)
        arms = Arms(arms.flags[first], share.T @ arms.shares)
        return Told(arms, left @ share, noise @ share**2)


def _cells(arms: Arms, near: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the first of those that are near one another, and which is among whom."""
    cells = np.concatenate([np.rint(arms.shares / near), arms.flags], axis=1)
    _, first, which = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    return first, which.ravel()


class Kinds(NamedTuple):
    """Kinds of curves."""

    length: Int[np.ndarray, " k"]  # place among LENGTHS
    variance: Float[np.ndarray, " k"]
    share: Float[np.ndarray, " k"]
    log_prior: Float[np.ndarray, " k"]


def list_kinds() -> Kinds:
    """Return every kind, first that without a curve."""
    curved = [*itertools.product(range(len(LENGTHS)), VARIANCES, SHARES)]
    prior = np.array([STRAIGHT] + [(1 - STRAIGHT) / len(curved)] * len(curved))
    length, variance, share = map(np.array, zip((0, 0.0, 1.0), *curved, strict=True))
    return Kinds(length, variance, share, np.log(prior))


def _kernels(places: Float[np.ndarray, " p"]) -> Float[np.ndarray, "l p p"]:
    away = places[:, None] - places[None]
    return np.exp(-0.5 * (away / np.reshape(LENGTHS, (-1, 1, 1))) ** 2)


def _roots(kernels: Float[np.ndarray, "l p p"]) -> Float[np.ndarray, "l p p"]:
    return np.linalg.cholesky(kernels + JITTER * np.eye(kernels.shape[1]))


class Part(NamedTuple):
    """Curves of one variable or surfaces of two, one for each model, at every pair of
    places; and what they have to do with experiments on several variables.
    """

    columns: list[int]
    places: list[Float[np.ndarray, " p"]]
    values: Float[np.ndarray, "s p"]
    mean: Float[np.ndarray, "s t"]  # expected at those experiments
    spread: Float[np.ndarray, "s p t"]  # covariance with them
    length: Int[np.ndarray, " s"]
    variance: Float[np.ndarray, " s"]
    share: Float[np.ndarray, " s"]  # of the noise; of surfaces 0

    def find(self, arms: Arms) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
        """Return which interventions it is a part of, and their places."""
        mine = arms.flags[:, self.columns].all(axis=1)
        if len(self.columns) > 1:
            mine &= arms.flags.sum(axis=1) == len(self.columns)
        rows, at = np.flatnonzero(mine), 0
        for column, places in zip(self.columns, self.places, strict=True):
            at = at * len(places) + np.searchsorted(places, arms.shares[rows, column])
        return rows, np.asarray(at)


class Curve(NamedTuple):
    """What is known of the curve of one variable."""

    column: int
    places: Float[np.ndarray, " p"]
    kernels: Float[np.ndarray, "l p p"]  # of each length, at the places
    at: Int[np.ndarray, " n"]  # of outcomes among the places
    left: Float[np.ndarray, "s n"]
    noise: Float[np.ndarray, " n"]
    watched: Bool[np.ndarray, " n"]
    group: Int[np.ndarray, " s"]  # 2 if watched rows count, plus 1 if a path leads on

    def known(self, group: int) -> Int[np.ndarray, " m"]:
        """Return the outcomes that count in a group of models."""
        return np.flatnonzero(~self.watched | (group >= 2))

    def high(self, group: int, kinds: Kinds) -> Float[np.ndarray, " k"]:
        """Return the variance of each kind in a group of models."""
        return kinds.variance * (1.0 if group % 2 else UNREACHED**2)

    def matrices(
        self, group: int, known: Int[np.ndarray, " m"], kinds: Kinds
    ) -> Float[np.ndarray, "k m m"]:
        """Return the covariance of some outcomes under each kind."""
        at = self.at[known]
        matrix = self.kernels[kinds.length][:, at][:, :, at]
        noise = kinds.share[:, None] * self.noise[known]
        high = self.high(group, kinds)[:, None, None]
        return high * matrix + noise[:, :, None] * np.eye(len(known))

    def evidence(self, kinds: Kinds) -> tuple[np.ndarray, np.ndarray]:
        """Return how likely each kind is in each model, and how well each model, with
        what was watched, foretells the experiments: logarithms.
        """
        logs = np.tile(kinds.log_prior, (len(self.left), 1))
        score = np.zeros(len(logs))
        for group in np.unique(self.group).tolist():
            of, known = np.flatnonzero(self.group == group), self.known(group)
            first = logs[of] + self._fit(group, known[self.watched[known]], kinds, of)
            logs[of] += self._fit(group, known, kinds, of)
            score[of] = np.logaddexp.reduce(logs[of], axis=1)
            score[of] -= np.logaddexp.reduce(first, axis=1)
        return logs, score

    def _fit(
        self, group: int, known: np.ndarray, kinds: Kinds, of: np.ndarray
    ) -> Float[np.ndarray, "s k"]:
        root = np.linalg.cholesky(self.matrices(group, known, kinds))
        unit = np.linalg.solve(root, self.left[of][:, known].T[None])
        logdet = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        return -(np.square(unit).sum(axis=1) / 2 + logdet[:, None]).T

    def sample(
        self,
        which: Int[np.ndarray, " s"],
        kind: Int[np.ndarray, " s"],
        several: Arms,
        draw: np.random.Generator,
    ) -> Part:
        """Draw a curve of a kind for each of some models.

        Functions of the prior are corrected by what they miss of the outcomes
        (Matheron's rule: Wilson et al., Pathwise conditioning of Gaussian processes,
        2021).
        """
        kinds = list_kinds()
        groups, roots = self.group[which], _roots(self.kernels)
        shares = several.shares[several.flags[:, self.column], self.column]
        toward = np.searchsorted(self.places, shares)
        values = np.zeros((len(which), len(self.places)))
        mean, variance = np.zeros((len(which), len(toward))), np.zeros(len(which))
        spread = np.zeros((*values.shape, len(toward)))
        both = np.stack([groups, kind], axis=1)
        for group, k in np.unique(both, axis=0).tolist():
            rows = np.flatnonzero((both == (group, k)).all(axis=1))
            one = Kinds(*(x[[k]] for x in kinds))
            known, high = self.known(group), self.high(group, one)[0]
            kernel, at = self.kernels[one.length[0]], self.at[known]
            cross = high * kernel[at]
            pull = np.linalg.solve(self.matrices(group, known, one)[0], cross)
            unit = draw.normal(size=(len(rows), len(self.places)))
            prior = np.sqrt(high) * unit @ roots[one.length[0]].T
            left = self.left[which[rows]][:, known]
            blur = np.sqrt(one.share * self.noise[known])
            gap = left - prior[:, at] - blur * draw.normal(size=left.shape)
            values[rows], variance[rows] = prior + gap @ pull, high
            mean[rows] = left @ pull[:, toward]
            spread[rows] = (high * kernel - cross.T @ pull)[:, toward]
        found = [self.column], [self.places], values, mean, spread
        return Part(*found, kinds.length[kind], variance, kinds.share[kind])


def _gather(
    column: int, made: Told, watched: Told, group: np.ndarray, at: Arms
) -> Curve:
    """Gather what is known of the curve of one variable."""
    parts = []
    for told in (watched, made):
        alone = told.arms.flags.sum(axis=1) == 1
        parts.append(told.some(told.arms.flags[:, column] & alone))
    seen, x = parts[0], np.concatenate([each.arms.shares[:, column] for each in parts])
    rest = np.clip(seen.arms.shares[:, column].mean(), 0, 1) if len(seen.noise) else 0.5
    used = at.shares[at.flags[:, column], column]
    places = np.unique(np.concatenate([x, used]))
    return Curve(
        column,
        places,
        _kernels(places) + SLOPE * np.outer(places - rest, places - rest),
        np.searchsorted(places, x),
        np.concatenate([each.left for each in parts], axis=1),
        np.concatenate([each.noise for each in parts]),
        np.arange(len(x)) < len(seen.noise),
        group,
    )


def _draw_surface(
    first: Part, second: Part, at: Arms, several: Arms, draw: np.random.Generator
) -> Part:
    """Draw a surface of two variables for each model, before any outcome."""
    columns = first.columns + second.columns
    rows = at.flags[:, columns].all(axis=1) & (at.flags.sum(axis=1) == 2)
    places = [np.unique(at.shares[rows, column]) for column in columns]
    count = len(first.variance)
    variance = np.sqrt(first.variance * second.variance)
    variance = np.where(draw.random(count) < TOGETHER, variance, 0.0)
    length = [np.maximum(each.length, SMOOTHEST) for each in (first, second)]
    kernels = [_kernels(each) for each in places]
    a, b = (_roots(k)[which] for k, which in zip(kernels, length, strict=True))
    unit = draw.normal(size=(count, len(places[0]), len(places[1])))
    values = np.sqrt(variance)[:, None, None] * (a @ unit @ b.swapaxes(1, 2))
    none = np.zeros(count)
    flat = values.reshape(count, -1), none[:, None], none[:, None, None]
    found = Part(columns, places, *flat, length[0], variance, none)
    rows, cells = found.find(several)
    p, q = np.divmod(cells, len(places[1]))
    a, b = (
        kernel[:, :, to][which]
        for kernel, to, which in zip(kernels, (p, q), length, strict=True)
    )
    spread = variance[:, None, None, None] * a[:, :, None] * b[:, None]
    spread = spread.reshape(count, len(places[0]) * len(places[1]), len(rows))
    return found._replace(mean=np.zeros((count, len(rows))), spread=spread)


def _resample(
    logs: Float[np.ndarray, " s"], draw: np.random.Generator
) -> Int[np.ndarray, " s"]:
    """Return places as often as they are likely: even steps through their sums."""
    share = np.cumsum(np.exp(logs - np.logaddexp.reduce(logs)))
    level = (np.arange(len(logs)) + draw.random()) / len(logs)
    return np.minimum(np.searchsorted(share, level), len(logs) - 1)


def _draw_kinds(
    logs: Float[np.ndarray, "s k"], draw: np.random.Generator
) -> Int[np.ndarray, " s"]:
    total = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    level = (draw.permutation(len(logs)) + 0.5)[:, None] / len(logs) * total[:, -1:]
    return np.minimum((level > total).sum(axis=1), logs.shape[1] - 1)


def _hear(
    told: Told, parts: list[Part], draw: np.random.Generator
) -> tuple[Int[np.ndarray, " s"], list[Part]]:
    """Correct curves and surfaces by experiments on several variables, and return which
    models, with theirs, foretold these experiments, as often as they are likely.
    """
    count, n = told.left.shape
    covariance, share = np.zeros((count, n, n)), np.zeros((count, n))
    expected, heard = np.zeros((count, n)), np.zeros((count, n))
    for part in parts:
        rows, at = part.find(told.arms)
        covariance[:, rows[:, None], rows] += part.spread[:, at]
        expected[:, rows] += part.mean
        heard[:, rows] += part.values[:, at]
        share[:, rows] += part.share[:, None] / told.arms.flags[rows].sum(axis=1)
    noise = share * told.noise
    covariance += noise[:, :, None] * np.eye(n)
    root = np.linalg.cholesky(covariance)
    unit = np.linalg.solve(root, (told.left - expected)[:, :, None])
    logdet = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    keep = _resample(-np.square(unit).sum(axis=(1, 2)) / 2 - logdet, draw)
    gap = told.left - heard - np.sqrt(noise) * draw.normal(size=heard.shape)
    pull = np.linalg.solve(covariance, gap[:, :, None])
    found = []
    for part in parts:
        rows, _ = part.find(told.arms)
        more = (part.spread @ pull[:, rows])[:, :, 0]
        found.append(part._replace(values=(part.values + more)[keep]))
    return keep, found


def draw_misfit(
    made: Told,
    watched: Told,
    group: Int[np.ndarray, "s d"],
    at: Arms,
    draw: np.random.Generator,
) -> tuple[Int[np.ndarray, " s"], Float[np.ndarray, "s n+m"]]:
    """Draw models, as often as they foretold the experiments, and what each misses, at
    experiments made and then at others.

    `watched` has every row once for each variable, as if it alone had been set; it
    counts where the group of the variable is 2 or 3. A path leads from it to the target
    where the group is odd.
    """
    made = made._replace(arms=made.arms.on_grid)
    both = Arms(*map(np.concatenate, zip(made.arms, at, strict=True)))
    several = made.some(made.arms.flags.sum(axis=1) > 1)
    every = Arms(*map(np.concatenate, zip(both, several.arms, strict=True)))
    curves = [
        _gather(column, made, watched, group[:, column], every)
        for column in np.flatnonzero(every.flags.any(axis=0)).tolist()
    ]
    kinds = list_kinds()
    known = [curve.evidence(kinds) for curve in curves]
    chosen = _resample(np.sum([score for _, score in known], axis=0), draw)
    parts = [
        curve.sample(chosen, _draw_kinds(logs[chosen], draw), several.arms, draw)
        for curve, (logs, _) in zip(curves, known, strict=True)
    ]
    alone = {part.columns[0]: part for part in parts}
    for flags in np.unique(every.flags[every.flags.sum(axis=1) == 2], axis=0):
        i, j = np.flatnonzero(flags).tolist()
        parts.append(_draw_surface(alone[i], alone[j], every, several.arms, draw))
    if len(several.noise):
        told = several._replace(left=several.left[chosen])
        keep, parts = _hear(told, parts, draw)
        chosen = chosen[keep]
    found = np.zeros((len(chosen), len(both.flags)))
    for part in parts:
        rows, cells = part.find(both)
        found[:, rows] += part.values[:, cells]
    return chosen, found
