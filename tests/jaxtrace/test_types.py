import numpy as np

from jaxtrace.trajectory import Trajectory
from jaxtrace.types import ExitRecord, ParticleStatus, PathRecord


def test_status_codes_fit_a_byte_and_do_not_move():
    codes = {status.name: int(status) for status in ParticleStatus}
    names = ("ACTIVE", "ABSORBED", "EXITED", "LOST", "STUCK", "BEACHED")
    names += ("EXPIRED", "REMOVED")
    assert codes == {name: code for code, name in enumerate(names)}
    assert all(np.int8(code) == code for code in codes.values())


def test_a_trajectory_is_a_record_and_bare_arrays_are_not():
    trajectory = Trajectory(np.zeros((2, 1, 3)), np.arange(2.0))
    assert isinstance(trajectory, PathRecord)
    assert isinstance(trajectory, ExitRecord)
    assert not isinstance(trajectory.positions, PathRecord)
