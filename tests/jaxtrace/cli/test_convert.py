"""Conversion from the command line writes, says so, and refuses what it cannot."""

from typer.testing import CliRunner

from jaxtrace.cli.app import app
from trace_cases import write_slices


def test_a_series_to_netcdf(tmp_path):
    source, target = write_slices(tmp_path), tmp_path / "deep" / "flow.nc"
    done = CliRunner().invoke(app, ["convert", str(source), str(target)])
    assert done.exit_code == 0, done.output
    assert target.exists()
    assert f"wrote {target}" in done.output


def test_an_unknown_target(tmp_path):
    words = ["convert", str(write_slices(tmp_path)), str(tmp_path / "flow.doc")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert "velocities are written as" in str(done.exception)
