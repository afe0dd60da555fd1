import numpy as np
import pytest

from jaxtrace.analysis.statistics import validate_trajectory_data
from jaxtrace.tracking.trajectory import Trajectory
from trace_records import absorbing_channel, recycling_channel, uniform

TIMES = np.linspace(0, 3, 13)


@pytest.mark.parametrize(
    "trajectory",
    [
        uniform([1, 0, 0], np.zeros((2, 3)), TIMES),
        uniform([1, 0, 0], np.zeros((2, 3)), TIMES[::-1]),
        absorbing_channel(1.0, 1.0, [0.0, 0.5], TIMES),
        recycling_channel(1.0, 1.0, [0.0, 0.5], TIMES),
        uniform([1, 0, 0], np.zeros((2, 3)), TIMES[:1]),
    ],
    ids=["forward", "backward", "absorbed", "recycled", "one frame"],
)
def test_sound_records_pass_even_strictly(trajectory):
    found = validate_trajectory_data(trajectory, strict=True)
    assert found == {"valid": True, "warnings": [], "errors": []}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"positions": np.full((3, 1, 3), np.inf)}, "positions that are not finite"),
        ({"velocities": np.full((3, 1, 3), np.nan)}, "velocities that are not finite"),
        ({"times": [0, np.nan, 1]}, "times are not finite"),
        ({"times": [0, 2, 1]}, "both forward and backward"),
        ({"generation": [2, 1, 1]}, "generations go down"),
    ],
)
def test_faults_are_named(changes, sentence):
    sound = {
        "positions": np.zeros((3, 1, 3)),
        "times": [0.0, 1.0, 2.0],
        "alive": [True, True, True],
    }
    found = validate_trajectory_data(Trajectory(**(sound | changes)))
    assert not found["valid"]
    (error,) = found["errors"]
    assert sentence in error


def test_warnings_count_when_strict():
    trajectory = Trajectory(np.full((3, 1, 3), np.nan), [0, 0, 1])
    found = validate_trajectory_data(trajectory)
    assert found["valid"]
    assert found["warnings"] == [
        "1 frame intervals take no time",
        "no particle is alive at any frame",
    ]
    assert not validate_trajectory_data(trajectory, strict=True)["valid"]
