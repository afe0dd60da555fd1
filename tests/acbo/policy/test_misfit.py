"""What linear models miss, against closed forms of Gaussian processes."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from acbo.policy import misfit
from acbo.policy.misfit import Arms, Told, draw_misfit

COUNT = 20_000
NOTHING = Told(
    Arms(np.zeros((0, 2), bool), np.zeros((0, 2))), np.zeros((COUNT, 0)), np.zeros(0)
)
FREE, OPEN = np.full((COUNT, 2), 1), np.full((COUNT, 2), 3)


def one_kind(monkeypatch, variance=0.5, slope=0.0):
    """Curves of one length and height, and surfaces of the same, without doubt."""
    monkeypatch.setattr(misfit, "LENGTHS", (0.3,))
    monkeypatch.setattr(misfit, "VARIANCES", (variance,))
    monkeypatch.setattr(misfit, "SHARES", (1.0,))
    monkeypatch.setattr(misfit, "STRAIGHT", 1e-12)
    monkeypatch.setattr(misfit, "SLOPE", slope)
    monkeypatch.setattr(misfit, "TOGETHER", 1.0)
    monkeypatch.setattr(misfit, "SMOOTHEST", 0)


def arms(*rows):
    """Interventions on two columns; None leaves one alone."""
    flags = np.array([[x is not None for x in row] for row in rows])
    return Arms(flags, np.array([[x or 0.0 for x in row] for row in rows]))


def told(where, *left, noise=0.25):
    count = len(left)
    return Told(where, np.tile(left, (COUNT, 1)).astype(float), np.full(count, noise))


def test_an_experiment_on_one_variable_tells_of_pairs(monkeypatch):
    one_kind(monkeypatch)
    at = arms((0.4, None), (0.4, 0.9), (None, 0.9))
    made, draw = told(arms((0.4, None)), 2.0), np.random.default_rng(0)
    _, found = draw_misfit(made, NOTHING, FREE, at, draw)
    np.testing.assert_allclose(found[:, 0], found[:, 1], atol=1e-9)
    # One observation with prior variance 0.5 and noise 0.25.
    kept = 0.5 / 0.75
    mean, variance = found[:, 1:].mean(axis=0), found[:, 1:].var(axis=0)
    np.testing.assert_allclose(mean, [2 * kept, 2 * kept, 0.0], atol=0.03)
    wanted = [0.5 * (1 - kept), 1.5 - 0.5 * kept, 0.5]
    np.testing.assert_allclose(variance, wanted, rtol=0.05)


def test_experiments_on_both_are_those_of_one_process(monkeypatch):
    one_kind(monkeypatch)
    where, at = arms((0.4, None), (0.4, 0.9), (0.1, 0.5)), arms((0.2, None), (0.3, 0.8))
    every = Arms(*map(np.concatenate, zip(where, at, strict=True)))

    def kernel(a, b):
        near = np.exp(-0.5 * ((a.shares[:, None] - b.shares) / 0.3) ** 2)
        near *= a.flags[:, None] & b.flags
        return 0.5 * (near.sum(axis=2) + near.prod(axis=2))

    outcomes = np.array([1.0, -0.5, 0.7])
    inner = kernel(where, where) + 0.25 * np.eye(3)
    pull = np.linalg.solve(inner, kernel(where, every))
    draw = np.random.default_rng(0)
    given = told(where, *outcomes), NOTHING, FREE, at, draw
    _, found = draw_misfit(*given)
    np.testing.assert_allclose(found.mean(axis=0), outcomes @ pull, atol=0.03)
    wanted = kernel(every, every) - kernel(every, where) @ pull
    np.testing.assert_allclose(np.cov(found.T), wanted, atol=0.03)


def test_evidence_is_the_density_of_outcomes():
    places = np.array([0.1, 0.2, 0.8])
    kernels = misfit._kernels(places)
    left, noise = np.array([[1.0, -1.0, 0.5]]), np.array([0.3, 0.2, 0.1])
    watched, group = np.array([True, False, False]), np.array([3])
    given = 0, places, kernels, np.arange(3), left, noise, watched, group
    kinds = misfit.list_kinds()
    logs, score = misfit.Curve(*given).evidence(kinds)
    wanted, first = [], []
    for length, variance, share, prior in zip(*kinds, strict=True):
        matrix = variance * kernels[length] + share * np.diag(noise)
        density = multivariate_normal(np.zeros(3), matrix).logpdf(left[0])
        wanted.append(prior + density)
        density = multivariate_normal([0.0], matrix[:1, :1]).logpdf(left[0, :1])
        first.append(prior + density)
    # But for the constants of the densities.
    constant = -1.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(logs[0] + constant, wanted)
    total = np.logaddexp.reduce(wanted) - np.logaddexp.reduce(first)
    assert score[0] - np.log(2 * np.pi) == pytest.approx(total)


def test_what_was_set_wins_over_what_was_watched():
    places = np.linspace(0.3, 0.7, 5)
    where = arms(*((x, None) for x in places))
    watched = told(where, *[3.0] * 5, noise=0.05)
    group = np.where(np.arange(COUNT)[:, None] < COUNT // 2, OPEN, FREE)
    at = arms((0.5, None))
    given = watched, group, at, np.random.default_rng(0)
    # Watched rows count in one half of the models.
    none = NOTHING
    chosen, found = draw_misfit(none, *given)
    opened = chosen < COUNT // 2
    assert opened.mean() == pytest.approx(0.5, abs=0.01)
    assert found[opened].mean() == pytest.approx(3.0, abs=0.2)
    assert found[~opened].mean() == pytest.approx(0.0, abs=0.1)
    # Experiments that say otherwise leave few of these models.
    made = told(where, *[0.0] * 5, noise=0.05)
    chosen, found = draw_misfit(made, *given)
    assert (chosen < COUNT // 2).mean() < 0.01
    assert found[:, -1].mean() == pytest.approx(0.0, abs=0.1)


def test_the_ends_of_a_range_are_the_least_known(monkeypatch):
    one_kind(monkeypatch, variance=0.5, slope=6.0)
    at = arms((0.0, None), (0.5, None), (1.0, None))
    nothing = Told(arms((0.5, None)), np.zeros((COUNT, 1)), np.array([1e6]))
    draw = np.random.default_rng(0)
    _, found = draw_misfit(nothing, NOTHING, FREE, at, draw)
    wanted = 0.5 * np.array([1 + 6 / 4, 1, 1 + 6 / 4])
    np.testing.assert_allclose(found[:, 1:].var(axis=0), wanted, rtol=0.05)


def test_short_waves_are_told_from_a_line():
    places = np.linspace(0, 1, 33)
    where = arms(*((x, None) for x in places))
    wave = np.cos(25 * places)
    made = told(where, *wave, noise=0.1)
    draw = np.random.default_rng(0)
    made = made._replace(left=made.left[:200] + 0.3 * draw.normal(size=33))
    nothing = NOTHING._replace(left=np.zeros((200, 0)))
    _, found = draw_misfit(made, nothing, FREE[:200], arms((0.5, None)), draw)
    assert np.corrcoef(found[:, :33].mean(axis=0), wave)[0, 1] > 0.95


def test_many_experiments_are_averaged_by_place(monkeypatch):
    one_kind(monkeypatch)
    draw = np.random.default_rng(0)
    shares = draw.random((2000, 2))
    left = shares[:, 0] - np.square(shares[:, 1])
    left = np.tile(left, (64, 1)) + 0.5 * draw.normal(size=2000)
    made = Told(Arms(np.ones((2000, 2), bool), shares), left, np.full(2000, 0.25))
    few = made.some(np.arange(2000))
    assert len(few.noise) <= misfit.MANY
    counts = 0.25 / few.noise
    assert counts.sum() == pytest.approx(2000)
    np.testing.assert_allclose(few.left @ counts, left.sum(axis=1))
    nothing = NOTHING._replace(left=np.zeros((64, 0)))
    at = arms((0.25, 0.25), (0.75, 0.5))
    _, found = draw_misfit(made, nothing, FREE[:64], at, draw)
    wanted = [0.25 - 0.25**2, 0.75 - 0.5**2]
    np.testing.assert_allclose(found[:, -2:].mean(axis=0), wanted, atol=0.1)
