"""Strategies put together, and what the checks find in seeds."""

import copy

import numpy as np
import pytest

from jaxtrace.tracking import seeding
from jaxtrace.tracking.seeding import (
    combine_seed_strategies,
    random_seeds,
    seed_density_analysis,
    uniform_grid_seeds,
    validate_seeds,
)

BOX = [[0, 0, 0], [1, 1, 1]]


def test_every_documented_name_is_here():
    assert all(callable(getattr(seeding, name)) for name in seeding.__all__)


def test_strategies_follow_one_another_and_stay_what_they_are():
    strategies = [
        {"type": "random", "n": 4, "bounds": [[-1, 1], [-1, 1]]},
        {"type": "circle", "n": 3, "center": [0, 0], "radius": 0.5},
        {"type": "line", "n": 2, "start": [-1, -1], "end": [1, 1]},
        {"type": "uniform_grid", "resolution": 2, "bounds": BOX},
        {"type": "gaussian_cluster", "n": 5, "centers": [[0, 0], [1, 1]], "std": 0.1},
        {"type": "stratified", "n": 0, "bounds": BOX},
    ]
    before = copy.deepcopy(strategies)
    seeds = combine_seed_strategies(strategies)
    assert strategies == before
    assert seeds.shape == (4 + 3 + 2 + 8 + 10, 3)
    assert seeds.dtype == np.float32
    np.testing.assert_array_equal(seeds[7:9], [[-1, -1, 0], [1, 1, 0]])
    np.testing.assert_array_equal(combine_seed_strategies(strategies), seeds)


def test_strategies_do_not_repeat_each_other_unless_told():
    one = {"type": "random", "n": 5, "bounds": BOX}
    seeds = combine_seed_strategies([one, one])
    assert not np.array_equal(seeds[:5], seeds[5:])
    same = combine_seed_strategies([one | {"rng_seed": 7}] * 2)
    np.testing.assert_array_equal(same[:5], same[5:])
    np.testing.assert_array_equal(same[:5], random_seeds(5, BOX, 7))


def test_no_and_unknown_strategies():
    assert combine_seed_strategies([]).shape == (0, 3)
    with pytest.raises(ValueError, match="type='spiral' is not one of: random"):
        combine_seed_strategies([{"type": "spiral", "n": 3}])


def test_good_seeds_are_valid():
    found = validate_seeds(uniform_grid_seeds((2, 3, 4), BOX), BOX)
    assert found["valid"] is True
    assert found["errors"] == found["warnings"] == []
    assert found["stats"]["num_seeds"] == 24
    assert found["stats"]["bounds_max"] == [1, 1, 1]
    assert found["stats"]["mean"] == pytest.approx([0.5] * 3)


def test_bounds_that_float32_cannot_hold_are_not_a_fault():
    bounds = [[0.1, 0.1, 0.1], [0.7, 0.7, 0.7]]
    found = validate_seeds(uniform_grid_seeds(3, bounds, dtype=np.float32), bounds)
    assert found["warnings"] == []


def test_faults_are_found():
    seeds = np.array([[0.5, 0.5, 0.5], [0.5, 0.5, 0.5], [2, 0, 0]])
    found = validate_seeds(seeds, BOX)
    assert found["valid"] is True
    assert found["warnings"] == [
        "1 seeds are where another one is",
        "1 seeds are outside the bounds",
    ]
    broken = validate_seeds([[np.nan, 0, 0], [0, 0, 0]])
    assert broken["valid"] is False
    assert broken["errors"] == ["1 of 2 seeds are not finite"]
    assert validate_seeds(np.ones(3))["valid"] is False
    assert validate_seeds(np.zeros((0, 3)))["warnings"] == ["there are no seeds"]
    assert validate_seeds([[0.5, 0.5]], [0, 1, 0, 1])["warnings"] == []


def test_density_of_a_grid():
    seeds = uniform_grid_seeds((5, 5, 5), BOX)
    found = seed_density_analysis(seeds, bins=5)
    assert found["num_seeds"] == 125
    assert found["mean_density"] == pytest.approx(125)
    assert found["densities_1d"]["x"]["histogram"] == [25] * 5
    assert found["nearest_neighbor"]["min"] == pytest.approx(0.25)
    assert found["nearest_neighbor"]["std"] == pytest.approx(0, abs=1e-6)


def test_density_in_a_plane_of_one_seed_and_of_none():
    planar = seed_density_analysis(uniform_grid_seeds((3, 3), [0, 2, 0, 2]))
    assert planar["mean_density"] == pytest.approx(9 / 4)
    assert set(planar["densities_1d"]) == {"x", "y"}
    alone = seed_density_analysis([[1, 2, 3]])
    assert alone["mean_density"] is alone["nearest_neighbor"] is None
    assert seed_density_analysis(np.zeros((0, 3)))["empty"] is True
