import numpy as np

from acbo.problems.quadrature import gaussian_rule, point_rule, uniform_rule


def test_gaussian_moments_and_waves():
    nodes, weights = gaussian_rule(1.5)
    np.testing.assert_allclose(weights @ nodes**2, 1.5**2)
    np.testing.assert_allclose(weights @ nodes**4, 3 * 1.5**4)
    np.testing.assert_allclose(weights @ np.cos(3 * nodes), np.exp(-(4.5**2) / 2))


def test_uniform_and_point():
    nodes, weights = uniform_rule(55.0, 75.0)
    np.testing.assert_allclose(weights @ nodes, 65.0)
    np.testing.assert_allclose(weights @ (nodes - 65) ** 2, 400 / 12)
    nodes, weights = point_rule(2.0)
    assert weights @ nodes**3 == 8.0
