import json
from pathlib import Path

import pytest

from jaxtrace.files.step_lists import Step, listed_steps


def collection(folder: Path, rows: str) -> Path:
    for name in ("a.vtu", "b.vtu", "c.vtu"):
        (folder / name).touch()
    path = folder / "run.pvd"
    path.write_text(f"<VTKFile><Collection>{rows}</Collection></VTKFile>")
    return path


def test_steps_come_in_order_of_time_with_their_parts(tmp_path):
    rows = (
        '<DataSet timestep="2.5" part="0" file="a.vtu"/>'
        '<DataSet timestep="0.5" part="0" file="b.vtu"/>'
        '<DataSet timestep="2.5" part="1" file="c.vtu"/>'
    )
    steps = listed_steps(collection(tmp_path, rows))
    assert steps == (
        Step((tmp_path / "b.vtu",), 0.5),
        Step((tmp_path / "a.vtu", tmp_path / "c.vtu"), 2.5),
    )


def test_entries_without_time_keep_their_order(tmp_path):
    path = collection(tmp_path, '<DataSet file="b.vtu"/><DataSet file="a.vtu"/>')
    assert [step.files[0].name for step in listed_steps(path)] == ["b.vtu", "a.vtu"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("", "names no files"),
        ('<DataSet timestep="1"/>', "names no file"),
        ('<DataSet timestep="soon" file="a.vtu"/>', "'soon' is not a number"),
        ("<DataSet", "not a readable collection"),
    ],
)
def test_a_wrong_collection_is_refused_by_name(tmp_path, rows, message):
    with pytest.raises(ValueError, match=rf"run\.pvd: .*{message}"):
        listed_steps(collection(tmp_path, rows))


def test_a_listed_file_that_is_not_there_is_named(tmp_path):
    path = collection(tmp_path, '<DataSet timestep="1" file="x.vtu"/>')
    with pytest.raises(FileNotFoundError, match=r"run\.pvd: names 'x\.vtu'"):
        listed_steps(path)


def test_json_series_are_read_too(tmp_path):
    path = tmp_path / "run.vtk.series"
    (tmp_path / "a.vtk").touch()
    rows = {"file-series-version": "1.0", "files": [{"name": "a.vtk", "time": 3}]}
    path.write_text(json.dumps(rows))
    assert listed_steps(path) == (Step((tmp_path / "a.vtk",), 3.0),)
    for wrong in ("{", "{}", '{"files": [1]}'):
        path.write_text(wrong)
        with pytest.raises(ValueError, match="not a readable list"):
            listed_steps(path)
