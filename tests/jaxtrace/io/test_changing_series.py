import numpy as np
import pytest

import trace_files as files
from jaxtrace.files.cells import grid_to_cells
from jaxtrace.files.series import MeshSeries
from jaxtrace.files.snapshot import Cells, GridAxes
from jaxtrace.io.changing_series import ChangingSeriesField
from jaxtrace.io.dataset import series_arrays

pytestmark = pytest.mark.slow  # compiles many programs


def arrays(meshes):
    rows = tuple(files.linear(mesh.points) * (i + 1) for i, mesh in enumerate(meshes))
    rows = tuple(row.astype(np.float32) for row in rows)
    series = MeshSeries(np.arange(len(meshes)) * 2.0, rows, tuple(meshes), (), ())
    return series_arrays(series)


def box(nodes):
    axis = np.linspace(0, 1, nodes)
    return grid_to_cells(GridAxes(axis, axis, axis))


@pytest.mark.slow
def test_every_slice_is_asked_on_its_own_mesh():
    field = ChangingSeriesField(arrays([box(2), box(4), box(3)]), {"a": 1})
    places = np.random.default_rng(0).uniform(0, 1, (30, 3))
    found = field.sample_at_positions(places, 1.0)
    np.testing.assert_allclose(found, files.linear(places) * 1.5, rtol=1e-4, atol=1e-2)
    assert (field.T, field.t_min, field.t_max) == (3, 0.0, 4.0)
    assert [len(points) for points in field.positions] == [8, 64, 27]
    assert field._source_info == {"a": 1}
    low, high = field.get_spatial_bounds()
    np.testing.assert_array_equal([low, high], [[0, 0, 0], [1, 1, 1]])
    assert field.memory_usage_mb() > 0
    assert "mesh per slice" in field.interpolation_scheme


@pytest.mark.slow
def test_rules_are_passed_on():
    field = ChangingSeriesField(
        arrays([box(2), box(3)]), outside="nan", extrapolation="zero"
    )
    assert np.isnan(np.asarray(field.sample_at_positions([[9.0, 0, 0]], 0.0))).all()
    inside = field.sample_at_positions([[0.5, 0.5, 0.5]], 9.0)
    np.testing.assert_array_equal(inside, np.zeros((1, 3)))
    clamped = ChangingSeriesField(arrays([box(2), box(3)]), outside="clamp")
    edge = clamped.sample_at_positions([[2.0, 0.5, 0.5]], 0.0)
    np.testing.assert_allclose(
        edge, files.linear(np.array([[1.0, 0.5, 0.5]])), rtol=1e-5
    )


def test_points_alone_cannot_change():
    none = np.zeros(0, np.int64)
    cloud = Cells(np.zeros((3, 3)), none, np.zeros(1, np.int64), none)
    with pytest.raises(ValueError, match="slice 1 is points without cells"):
        ChangingSeriesField(arrays([box(2), cloud]))
