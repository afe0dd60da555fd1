import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtrace.io.geometry import Cells
from jaxtrace.io.series import pick_evenly
from jaxtrace.io.steps import (
    FileSteps,
    Step,
    choose_clock,
    find_files,
    listed_steps,
    name_number,
    natural_key,
    open_steps,
)
from trace_files import hexahedra, write_xml
from trace_solvers import write_ensight


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
        ("<DataSet", "not a readable list"),
    ],
)
def test_a_wrong_collection_is_refused_by_name(tmp_path, rows, message):
    with pytest.raises(ValueError, match=rf"run\.pvd: .*{message}"):
        listed_steps(collection(tmp_path, rows))


def test_a_listed_file_that_is_not_there_is_named(tmp_path):
    path = collection(tmp_path, '<DataSet timestep="1" file="x.vtu"/>')
    with pytest.raises(FileNotFoundError, match=r"run\.pvd refers to 'x\.vtu'"):
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


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def names(spec) -> list[str]:
    return [file.name for file in find_files(spec)]


def test_numbers_sort_as_numbers():
    files = ["run10_2.vtu", "run2_10.vtu", "run2_9.vtu", "run2.vtu"]
    ordered = sorted(files, key=natural_key)
    assert ordered == ["run2.vtu", "run2_9.vtu", "run2_10.vtu", "run10_2.vtu"]


@given(st.lists(st.text("a1.0_9"), max_size=6))
def test_natural_keys_can_always_be_compared(texts):
    sorted(texts, key=natural_key)


@given(st.integers(1, 60), st.integers(1, 70))
def test_picked_steps_are_even_and_keep_the_ends(n, most):
    picked = pick_evenly(n, most)
    assert picked.size == min(n, most)
    assert picked[0] == 0
    if most > 1:
        assert picked[-1] == n - 1
    gaps = np.diff(picked)
    assert gaps.size == 0 or (gaps.min() >= 1 and gaps.max() - gaps.min() <= 1)


def test_no_limit_picks_all_and_zero_is_refused():
    assert pick_evenly(4, None).tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="at least 1, got 0"):
        pick_evenly(4, 0)


def test_globs_folders_files_and_lists(tmp_path):
    touch(tmp_path, "a_10.vtu", "a_2.vtu", "b_1.vtu", "notes.txt")
    assert names(str(tmp_path / "a_*.vtu")) == ["a_2.vtu", "a_10.vtu"]
    assert names(tmp_path / "a_*") == ["a_2.vtu", "a_10.vtu"]
    assert names(tmp_path) == ["a_2.vtu", "a_10.vtu", "b_1.vtu"]
    assert names(tmp_path / "b_1.vtu") == ["b_1.vtu"]
    backwards = [tmp_path / "a_10.vtu", str(tmp_path / "a_2.vtu")]
    assert names(backwards) == ["a_10.vtu", "a_2.vtu"]


def test_a_name_with_brackets_is_a_file_before_it_is_a_pattern(tmp_path):
    touch(tmp_path, "a[1].vtu")
    assert names(tmp_path / "a[1].vtu") == ["a[1].vtu"]


def test_parallel_files_speak_for_their_pieces(tmp_path):
    touch(tmp_path, "a_1.pvtu", "a_1_0.vtu", "a_1_1.vtu", "a_0.pvtu", "a_0_0.vtu")
    assert names(tmp_path) == ["a_0.pvtu", "a_1.pvtu"]


def test_a_collection_speaks_for_its_folder(tmp_path):
    touch(tmp_path, "a.vtu", "b.vtu", "c.vtu")
    (tmp_path / "run.pvd").touch()
    assert names(tmp_path) == ["run.pvd"]


def test_a_case_speaks_for_its_folder(tmp_path):
    touch(tmp_path, "run.case", "extra.vtu")
    assert names(tmp_path) == ["run.case"]


def test_nothing_found_says_what_was_looked_for(tmp_path):
    for spec in (tmp_path, tmp_path / "x_*.vtu", str(tmp_path / "none.vtu")):
        with pytest.raises(FileNotFoundError, match=re.escape(Path(spec).name)):
            find_files(spec)
    with pytest.raises(FileNotFoundError, match=r"none\.vtu: no such file"):
        find_files([tmp_path / "none.vtu"])
    with pytest.raises(FileNotFoundError, match="the list is empty"):
        find_files([])


def test_mixed_and_unknown_kinds_are_refused(tmp_path):
    touch(tmp_path, "a.vtu", "b.vti", "c.txt")
    with pytest.raises(ValueError, match=r"found 1 \.vtu, 1 \.vti"):
        find_files(tmp_path)
    with pytest.raises(ValueError, match=r"unknown extension \.txt; known are \.vti"):
        find_files(tmp_path / "c.txt")
    with pytest.raises(ValueError, match=r"unknown extension \.txt"):
        find_files(str(tmp_path / "c*"))
    touch(tmp_path / "two", "a.case", "b.case")
    with pytest.raises(ValueError, match=r"whole series, found a\.case, b\.case"):
        find_files(tmp_path / "two")


LABELS = ["a_20.vtu", "a_3.vtu"]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("run3_0.25.vtu", 0.25),
        ("/x9/flow_1e-3.vtk", 1e-3),
        ("T0000000500.pvtu", 500.0),
        ("mesh.vtu", None),
        ("a-7.vtu", 7.0),
    ],
)
def test_the_number_of_a_name_is_its_last(name, number):
    assert name_number(name) == number


def test_the_best_source_that_all_files_have_is_used():
    stated = {
        "field": [1.0, None],
        "collection": [0.5, 0.25],
        "array": [7.0, 8.0],
        "name": [20.0, 3.0],
    }
    clock = choose_clock(LABELS, stated)
    assert clock.source == "collection"
    assert clock.times.tolist() == [0.25, 0.5]
    assert clock.order.tolist() == [1, 0]
    assert choose_clock(LABELS, {**stated, "field": [1.0, 2.0]}).source == "field"


@pytest.mark.parametrize(
    ("stated", "source"),
    [
        ({"array": [7.0, 8.0], "name": [20.0, 3.0]}, "array"),
        ({"array": [7.0, None], "name": [20.0, 3.0]}, "name"),
        ({"name": [3.0, 3.0]}, "index"),
        ({"name": [None, 3.0]}, "index"),
        ({}, "index"),
    ],
)
def test_the_order_of_the_sources(stated, source):
    assert choose_clock(LABELS, stated).source == source


def test_a_source_can_be_asked_for():
    stated = {"field": [0.0, 0.0], "name": [20.0, 3.0]}
    assert choose_clock(LABELS, stated, "name").times.tolist() == [3.0, 20.0]
    assert choose_clock(LABELS, stated, "index").order.tolist() == [0, 1]
    with pytest.raises(ValueError, match="not every file has the timestep"):
        choose_clock(LABELS, stated, "collection")
    with pytest.raises(ValueError, match=r"'guess': choose one of field, collection"):
        choose_clock(LABELS, stated, "guess")


def test_two_files_of_one_instant_are_named():
    with pytest.raises(ValueError, match=r"a_20\.vtu and a_3\.vtu both have t = 5"):
        choose_clock(LABELS, {"field": [5.0, 5.0]})


def test_a_time_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match=r"a_3\.vtu: its time is nan"):
        choose_clock(LABELS, {"field": [5.0, float("nan")]})


pytest.importorskip("vtkmodules")


def test_files_come_in_order_of_their_own_time(tmp_path):
    for name, time in [("a_1.vtu", 5.0), ("a_2.vtu", 1.0), ("a_10.vtu", 9.0)]:
        write_xml(hexahedra(), tmp_path / name, time=time)
    steps = open_steps(tmp_path / "a_*.vtu")
    assert isinstance(steps, FileSteps)
    assert steps.times.tolist() == [1.0, 5.0, 9.0]
    assert "TimeValue" in steps.time_source
    assert [label[-8:] for label in steps.labels][:2] == ["/a_2.vtu", "/a_1.vtu"]


def test_numbers_of_names_and_indices_serve_without_times(tmp_path):
    for name in ("a_2.vtu", "a_10.vtu"):
        write_xml(hexahedra(), tmp_path / name)
    assert open_steps(tmp_path).times.tolist() == [2.0, 10.0]
    assert open_steps(tmp_path, "index").times.tolist() == [0.0, 1.0]


def test_a_collection_gives_times_and_parts(tmp_path):
    for name in ("a.vtu", "b.vtu", "c.vtu"):
        write_xml(hexahedra((2, 2, 2)), tmp_path / name)
    (tmp_path / "run.pvd").write_text(
        '<VTKFile><DataSet timestep="0.5" part="0" file="a.vtu"/>'
        '<DataSet timestep="0.5" part="1" file="b.vtu"/>'
        '<DataSet timestep="0.75" file="c.vtu"/></VTKFile>'
    )
    steps = open_steps(tmp_path / "run.pvd")
    assert steps.times.tolist() == [0.5, 0.75]
    assert steps.time_source == "the timestep of the collection"
    parts, whole = steps.read(0).geometry, steps.read(1).geometry
    assert isinstance(parts, Cells)
    assert isinstance(whole, Cells)
    assert (parts.n_cells, whole.n_cells) == (2, 1)


def test_a_case_is_its_own_source(tmp_path):
    case = write_ensight(tmp_path)
    steps = open_steps(case)
    with pytest.raises(ValueError, match="its own times, leave out time_source='name'"):
        open_steps(case, "name")
    assert steps.time_source == "the solver's case"
    np.testing.assert_array_equal(steps.times, [0.5, 1.5, 4.0])


def test_text_in_place_of_a_plot3d_solution_is_refused(tmp_path):
    # VTK would ask for as much memory as the first letters say, as a number.
    (tmp_path / "a.xyz").write_text("2 2 1")
    (tmp_path / "a.q").write_text("hello, this is no solution")
    with pytest.raises(ValueError, match=r"a\.q: the file is text, not a PLOT3D"):
        open_steps([tmp_path / "a.xyz", tmp_path / "a.q"])
