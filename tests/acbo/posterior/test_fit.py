"""Oracle: fits to all rows but one, and tables made to fit or not."""

import numpy as np
import pytest

from acbo.posterior.inputs import check_data, check_fits

# The others may cause the last of three variables, and do; nothing else has causes.
LISTS = np.array([[1, 2], [0, 2], [0, 1]])
SETS = np.eye(4)[[0, 0, 3]]


def checked(response, rows=300, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, 2))
    values = np.column_stack([x, response(x, draw)])
    return values, check_fits(check_data(values, None, None), LISTS, SETS)


def with_noise(noise):
    return lambda x, draw: x[:, 0] - 2 * x[:, 1] + noise(draw, len(x))


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (with_noise(lambda draw, n: draw.exponential(size=n)), ("skewed noise",)),
        (with_noise(lambda draw, n: draw.laplace(size=n)), ("heavy-tailed noise",)),
        (with_noise(lambda draw, n: np.linspace(-3, 3, n) + draw.normal(size=n)),
         ("drift over the rows",)),
        (lambda x, draw: x[:, 0] ** 2 + x[:, 1] + draw.normal(size=len(x)),
         ("curves",)),
        (lambda x, draw: np.sin(2 * x[:, 0]) + 0.3 * draw.normal(size=len(x)),
         ("curves",)),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(response, expected):
    _, fits = checked(response)
    assert [fit.misfits for fit in fits] == [(), (), expected]


def test_what_fits_is_left_alone_and_few_rows_tell_nothing():
    gaussian = with_noise(lambda draw, n: draw.normal(size=n))
    for seed in range(100):
        _, fits = checked(gaussian, seed=seed)
        assert not any(fit.misfits for fit in fits)
        assert fits[2].calibration < 0.1
    assert checked(gaussian, rows=19)[1][2] == (0.0, 0.0, ())


def test_the_gain_is_that_of_rows_left_out():
    values, fits = checked(with_noise(lambda draw, n: draw.normal(size=n)), rows=40)
    y, left = values[:, 2], []
    for row in range(40):
        others = np.arange(40) != row
        design = np.column_stack([np.ones(40), values[:, :2]])
        weights = np.linalg.lstsq(design[others], y[others], rcond=None)[0]
        left.append(y[row] - design[row] @ weights)
    expected = 1 - np.mean(np.square(left)) / y.var()
    assert fits[2].gain == pytest.approx(expected, rel=1e-9)
