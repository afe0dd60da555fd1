import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtrace.files.patterns import find_files, find_steps, natural_key, pick_evenly


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def names(spec) -> list[str]:
    return [step.files[0].name for step in find_steps(spec)]


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
    rows = '<DataSet timestep="1" file="b.vtu"/><DataSet timestep="0" file="a.vtu"/>'
    (tmp_path / "run.pvd").write_text(f"<VTKFile>{rows}</VTKFile>")
    assert names(tmp_path) == ["a.vtu", "b.vtu"]
    assert [step.time for step in find_steps(tmp_path / "run.pvd")] == [0.0, 1.0]


def test_a_case_speaks_for_its_folder(tmp_path):
    touch(tmp_path, "run.case", "extra.vtu")
    assert names(tmp_path) == ["run.case"]


def test_nothing_found_says_what_was_looked_for(tmp_path):
    for spec in (tmp_path, tmp_path / "x_*.vtu", str(tmp_path / "none.vtu")):
        with pytest.raises(FileNotFoundError, match=re.escape(Path(spec).name)):
            find_steps(spec)
    with pytest.raises(FileNotFoundError, match=r"none\.vtu: no such file"):
        find_steps([tmp_path / "none.vtu"])
    with pytest.raises(FileNotFoundError, match="the list is empty"):
        find_steps([])


def test_mixed_and_unknown_kinds_are_refused(tmp_path):
    touch(tmp_path, "a.vtu", "b.vti", "c.txt")
    with pytest.raises(ValueError, match=r"found 1 \.vtu, 1 \.vti"):
        find_steps(tmp_path)
    with pytest.raises(ValueError, match=r"unknown extension \.txt; known are \.vti"):
        find_steps(tmp_path / "c.txt")
    with pytest.raises(ValueError, match=r"unknown extension \.txt"):
        find_steps(str(tmp_path / "c*"))
    touch(tmp_path / "two", "a.case", "b.case")
    with pytest.raises(ValueError, match=r"whole series, found a\.case, b\.case"):
        find_steps(tmp_path / "two")


def test_other_kinds_can_be_looked_for(tmp_path):
    touch(tmp_path, "b.h5", "a.h5", "c.vtu")
    assert [path.name for path in find_files(tmp_path, (".h5",))] == ["a.h5", "b.h5"]
