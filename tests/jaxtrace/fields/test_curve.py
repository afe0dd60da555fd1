"""The order along Hilbert's curve, and work in chunks."""

import numpy as np
import pytest

from jaxtrace.fields import curve


@pytest.mark.parametrize("dimension", [2, 3])
def test_the_curve_goes_from_each_place_to_the_next_one_beside_it(dimension):
    axes = [np.arange(16.0)] * dimension
    places = np.stack(np.meshgrid(*axes, indexing="ij")).reshape(dimension, -1)
    shuffled = np.random.default_rng(0).permutation(places, axis=1)
    low, high = np.zeros(dimension), np.full(dimension, 15.0)
    order = curve.curve_order(
        shuffled.shape[1], lambda some: shuffled[:, some], low, high
    )
    steps = np.abs(np.diff(shuffled[:, order], axis=1)).sum(0)
    np.testing.assert_array_equal(steps, 1)


def test_places_that_are_all_one_keep_their_order():
    same = np.ones((3, 5))
    order = curve.curve_order(5, lambda some: same[:, some], same[:, 0], same[:, 0])
    np.testing.assert_array_equal(order, np.arange(5))


def test_chunks_cover_everything_once_and_pass_errors_on(monkeypatch):
    monkeypatch.setattr(curve, "CHUNK", 7)
    seen = np.zeros(50, int)

    def work(some):
        seen[some] += 1
        if some.stop == 50 and seen[0] > 1:
            raise ValueError("the last chunk")

    curve.in_chunks(50, work)
    np.testing.assert_array_equal(seen, 1)
    with pytest.raises(ValueError, match="the last chunk"):
        curve.in_chunks(50, work)
    curve.in_chunks(0, work)
