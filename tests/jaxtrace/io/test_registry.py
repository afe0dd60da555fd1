import subprocess
import sys

import pytest

from jaxtrace.io import registry
from jaxtrace.io.registry import (
    FORMATS,
    detect_format,
    format_info,
    list_supported_formats,
    require_format,
    validate_file_access,
)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("flow.vtu", "vtk"),
        ("run_*.pvtu", "vtk"),
        ("flow.pvd", "vtk"),
        ("case.nek5000", "vtk"),
        ("flow.H5", "hdf5"),
        (["a.hdf5", "b.hdf5"], "hdf5"),
        ("ocean_*.nc", "grid"),
        ("ocean.zarr", "grid"),
    ],
)
def test_extensions_tell_the_format(spec, name):
    assert detect_format(spec) == name


def test_folders_and_open_globs_are_looked_into(tmp_path):
    (tmp_path / "readme.txt").touch()
    (tmp_path / "flow_1.vtu").touch()
    assert detect_format(tmp_path) == "vtk"
    assert detect_format(str(tmp_path / "flow*")) == "vtk"
    (tmp_path / "flow_2.h5").touch()
    with pytest.raises(ValueError, match="formats hdf5, vtk; give format_type="):
        detect_format(tmp_path)


def test_unknown_extensions_list_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown extension \.dat; known are .*\.vtu"):
        detect_format("flow.dat")


def test_nothing_to_look_at(tmp_path):
    for spec in (tmp_path, str(tmp_path / "none*"), []):
        with pytest.raises(FileNotFoundError, match="no files"):
            detect_format(spec)


def test_every_format_is_described():
    for name in list_supported_formats():
        info = format_info(name)
        assert info["name"] == name
        assert info["extensions"]
        assert info["available"] == FORMATS[name].available
    with pytest.raises(ValueError, match="'csv' is not one of: vtk, hdf5, grid"):
        format_info("csv")


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "has_package", lambda name: name != "h5py")
    assert require_format("vtk").name == "vtk"
    with pytest.raises(ImportError, match=r"need h5py: pip install -e .*\[trace\]"):
        require_format("hdf5")
    (tmp_path / "a.h5").touch()
    report = validate_file_access(tmp_path / "a.h5")
    assert not report["valid"]
    assert not report["format_supported"]


def test_access_reports_what_is_there(tmp_path):
    (tmp_path / "a.vtu").touch()
    here, gone = str(tmp_path / "a.vtu"), str(tmp_path / "b.vtu")
    good = validate_file_access(here)
    assert good["valid"]
    assert (good["files_found"], good["files_missing"]) == ([here], [])
    assert (good["detected_format"], good["format_supported"]) == ("vtk", True)
    some = validate_file_access([here, gone])
    assert not some["valid"]
    assert (some["files_found"], some["files_missing"]) == ([here], [gone])
    assert "no such file" in some["errors"][0]
    none = validate_file_access(str(tmp_path / "x_*.vtu"))
    assert not none["valid"]
    assert "no files found" in none["errors"][0]
    odd = validate_file_access("flow.dat")
    assert odd["detected_format"] is None
    (tmp_path / "flow.zarr").mkdir()
    assert validate_file_access(tmp_path / "flow.zarr")["valid"]


@pytest.mark.slow
def test_flags_are_known_without_importing_backends():
    code = (
        "import sys, jaxtrace.io as io; assert io.VTK_IO_AVAILABLE is not None;"
        "loaded = {'vtkmodules', 'h5py', 'xarray', 'zarr'} & set(sys.modules);"
        "assert not loaded, loaded"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
