import numpy as np
import pytest

from jaxtrace.files.cells import grid_to_cells
from jaxtrace.files.series import GridSeries, MeshSeries
from jaxtrace.files.snapshot import Cells, GridAxes
from jaxtrace.io.thinning import (
    FixedSlices,
    ThinSlices,
    discard_still_nodes,
    drop_nodes,
    every,
)

AXES = GridAxes(np.arange(4.0), np.arange(3.0), np.arange(2.0))


class Slices:
    """Steps that each have their number as velocity."""

    def __init__(self, geometries, shape):
        self._geometries, self._shape = geometries, shape
        self.times = np.arange(len(geometries)) * 1.0
        self.labels = tuple(f"step {i}" for i in range(len(geometries)))

    def __len__(self):
        return len(self._geometries)

    def describe(self):
        return ("velocity: u", "times: the index")

    def read_slice(self, index):
        values = np.arange(np.prod(self._shape), dtype=np.float32)
        return self._geometries[index], values.reshape(self._shape) + index


def test_every_keeps_both_ends():
    np.testing.assert_array_equal(every(7, 3), [0, 3, 6])
    np.testing.assert_array_equal(every(8, 3), [0, 3, 6, 7])
    np.testing.assert_array_equal(every(1, 3), [0])


def test_a_grid_keeps_its_corners():
    thin = ThinSlices(Slices([AXES, AXES], (4, 3, 2, 3)), 1.0, 2)
    geometry, values = thin.read_slice(1)
    assert isinstance(geometry, GridAxes)
    np.testing.assert_array_equal(geometry.x, [0.0, 2.0, 3.0])
    whole = Slices([AXES, AXES], (4, 3, 2, 3)).read_slice(1)[1]
    np.testing.assert_array_equal(values, whole[[0, 2, 3]][:, [0, 2]])
    assert thin.read_slice(0)[0] is geometry, "one grid stays one"
    assert thin.describe()[-1] == "every 2th node"


def test_a_mesh_keeps_nodes_and_loses_cells():
    mesh = grid_to_cells(AXES)
    thin = ThinSlices(Slices([mesh], (24, 3)), 1.0, 5)
    geometry, values = thin.read_slice(0)
    assert isinstance(geometry, Cells)
    assert (geometry.n_points, geometry.n_cells) == (5, 0)
    np.testing.assert_array_equal(values[:, 0], np.arange(0, 24, 5) * 3)
    np.testing.assert_array_equal(geometry.points, mesh.points[::5])
    assert thin.describe()[-1] == "every 5th node, without cells"


def test_a_slice_above_the_limit_is_refused():
    slices = Slices([AXES], (4, 3, 2, 3))
    size = 24 * 3 * 4 / 2**20
    assert ThinSlices(slices, size, None).read(0).shape == (4, 3, 2, 3)
    message = "step 0: a slice of .* MB is above max_memory_per_timestep_mb=.*raise it"
    with pytest.raises(ValueError, match=message):
        ThinSlices(slices, 0.99 * size, None).read(0)


def test_fixed_slices_share_one_geometry():
    same = GridAxes(AXES.x, AXES.y, AXES.z)
    fixed = FixedSlices(Slices([AXES, same], (4, 3, 2, 3)))
    assert fixed.read_slice(1)[0] is AXES
    assert fixed.read(1).ravel()[0] == 1.0
    other = GridAxes(2 * AXES.x, AXES.y, AXES.z)
    with pytest.raises(ValueError, match="step 1: its mesh differs from the first one"):
        FixedSlices(Slices([AXES, other], (4, 3, 2, 3))).read(1)


def test_cells_go_with_their_nodes():
    mesh = grid_to_cells(GridAxes(np.arange(4.0), np.arange(2.0), np.zeros(1)))
    keep = mesh.points[:, 0] > 0
    kept = drop_nodes(mesh, keep)
    assert (kept.n_points, kept.n_cells) == (6, 2)
    corners = kept.points[kept.connectivity].reshape(2, 4, 3)
    np.testing.assert_array_equal(corners[:, :, 0].min(1), [1.0, 2.0])
    with pytest.raises(ValueError, match="zero everywhere"):
        drop_nodes(mesh, np.zeros(8, bool))


def test_nodes_that_ever_move_stay():
    values = np.zeros((2, 4, 3, 2, 3), np.float32)
    values[0, 1:] = 1.0
    values[1, 2:] = 1.0
    series = GridSeries(np.arange(2.0), values, AXES, ("a", "b"), ("velocity: u",))
    kept = discard_still_nodes(series)
    assert isinstance(kept.geometry, Cells)
    assert kept.geometry.points[:, 0].min() == 1.0
    velocities = np.asarray(kept.velocities)
    assert velocities.shape == (2, 18, 3)
    moved = kept.geometry.points[:, 0] >= 2
    np.testing.assert_array_equal(velocities[1, :, 0], moved.astype(np.float32))
    assert kept.notes[-1] == "nodes without motion left out"


def test_meshes_that_change_are_cut_one_by_one():
    meshes = (grid_to_cells(AXES), grid_to_cells(AXES))
    rows = tuple(np.ones((24, 3), np.float32) for _ in meshes)
    rows[1][:6] = 0.0
    kept = discard_still_nodes(MeshSeries(np.arange(2.0), rows, meshes, (), ()))
    assert [len(row) for row in kept.velocities] == [24, 18]
    assert isinstance(kept.geometry, tuple)
    assert [mesh.n_points for mesh in kept.geometry] == [24, 18]
