import numpy as np
import pytest

from jaxtrace.analysis.sph import (
    adaptive_lengths,
    default_smoothing_length,
    fixed_length,
)
from trace_densities import clustered, naive_adaptive_lengths


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_default_length_follows_the_extent(scale):
    corners = np.array([[0, 0], [2, 4]]) * scale
    many = np.concatenate([corners, np.full((1598, 2), scale)])
    assert default_smoothing_length(many) == pytest.approx(2 * 3 * scale / 40)
    assert default_smoothing_length(corners) == pytest.approx(0.1 * 3 * scale)


@pytest.mark.parametrize("n", [7, 59])
@pytest.mark.parametrize("dims", [2, 3])
def test_adaptive_lengths_equal_the_naive_ones(dims, n):
    positions = clustered(60, dims)
    lengths = adaptive_lengths(positions, n)
    np.testing.assert_allclose(lengths, naive_adaptive_lengths(positions, n))


def test_wrong_use_raises():
    positions = clustered(6, 2)
    for n in (0, 6):
        with pytest.raises(ValueError, match="choose 1 to 5"):
            adaptive_lengths(positions, n)
    with pytest.raises(ValueError, match="share one place"):
        adaptive_lengths(np.zeros((6, 2)), 3)
    with pytest.raises(ValueError, match="at one place"):
        default_smoothing_length(np.ones((6, 2)))
    for length in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="must be positive"):
            fixed_length(length, positions)
