"""Curves of means with intervals, and single runs against the optimum."""

import numpy as np
import pytest

from acbo.pictures.regret import draw_regret, draw_shares


def test_every_proposer_has_a_curve_and_a_band():
    random = np.random.default_rng(0)
    svg = draw_regret({"a": random.random((9, 4)), "b": np.ones((9, 4))})
    assert all(f'data-series="{n}"' in svg for n in "ab")
    assert all(f'data-band="{n}"' in svg for n in "ab")


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match="'a' has shape"):
        draw_regret({"a": np.ones(4)})


def test_shares_stand_beside_the_optimum():
    svg = draw_shares({"policy": np.array([0.1, 0.4, 0.9])})
    assert 'data-series="policy"' in svg
    assert 'data-series="optimum"' in svg
