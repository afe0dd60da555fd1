import numpy as np
import pytest

from jaxtrace.files import columns
from jaxtrace.files.vtk_arrays import read_arrays
from jaxtrace.files.vtk_write import write_vtu


def test_arrays_come_back_without_vtk(tmp_path):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(6, 3)).astype("f4")
    data = {kind: rng.integers(0, 99, 6).astype(kind) for kind in columns.KINDS}
    data["_<vector>"] = rng.normal(size=(6, 3))
    path = write_vtu(
        tmp_path / "a.vtu",
        points,
        columns.vertices(6),
        point_data=data,
        field_data={"TimeValue": 0.5, "whole": np.arange(9)},
    )
    found = read_arrays(path)
    np.testing.assert_array_equal(found["Points"]["Points"], points)
    assert set(found["PointData"]) == set(data)
    for name, values in data.items():
        np.testing.assert_array_equal(found["PointData"][name], values)
        assert found["PointData"][name].dtype == values.dtype
    assert found["FieldData"]["TimeValue"].tolist() == [0.5]
    np.testing.assert_array_equal(found["FieldData"]["whole"], np.arange(9))
    np.testing.assert_array_equal(found["Cells"]["types"], np.ones(6))


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "a.vtu"
    path.write_text("<VTKFile></VTKFile>")
    with pytest.raises(ValueError, match="was not written here"):
        read_arrays(path)
