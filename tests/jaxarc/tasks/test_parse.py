"""Sound tasks come through cell by cell; everything else is refused by name."""

import copy
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arc_samples import as_json, random_raw_task
from jaxarc.tasks.task_json import (
    MAX_FILE_BYTES,
    MAX_SIDE,
    TaskError,
    parse_task,
    read_json,
)

SOUND = {
    "train": [{"input": [[0, 1], [2, 3]], "output": [[9]]}],
    "test": [{"input": [[4, 5, 6]], "output": [[7], [8]]}],
}


def broken(path, value):
    """The sound task with one part replaced."""
    task = copy.deepcopy(SOUND)
    at = task
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return task


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.booleans())
def test_grids_come_through(seed, answers):
    raw = random_raw_task(np.random.default_rng(seed), answers=answers)
    parsed = parse_task(json.loads(json.dumps(as_json(raw))), "abc")
    assert parsed.id == "abc"
    for got, expected in zip(
        (*parsed.train, *parsed.test), (*raw.train, *raw.test), strict=True
    ):
        for grid, wanted in zip(got, expected, strict=True):
            if grid is None:
                assert wanted is None
            else:
                np.testing.assert_array_equal(grid, wanted, strict=True)


def test_numpy_grids_and_null_answers_are_accepted():
    raw = broken(("train", 0, "input"), np.array([[1, 2]]))
    np.testing.assert_array_equal(parse_task(raw, "abc").train[0][0], [[1, 2]])
    raw = broken(("test", 0, "output"), None)
    assert parse_task(raw, "abc").test[0][1] is None


CELLS = st.one_of(
    st.integers(max_value=-1),
    st.integers(min_value=10),
    st.booleans(),
    st.floats(),
    st.text(max_size=200),
    st.none(),
    st.lists(st.integers(0, 9)),
    st.dictionaries(st.text(), st.integers(0, 9)),
)


@given(CELLS, st.integers(0, 1), st.integers(0, 1))
def test_a_bad_cell_is_named(cell, row, column):
    raw = broken(("train", 0, "input", row, column), cell)
    with pytest.raises(TaskError, match="whole number from 0 to 9") as caught:
        parse_task(raw, "abc", "folder/abc.json")
    message = str(caught.value)
    assert message.startswith(f"folder/abc.json: train[0].input[{row}][{column}] is ")
    assert "correct it" in message
    assert len(message) < 300


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (True, "True (bool)"),
        (1.0, "1.0 (float)"),
        ("1", "'1' (str)"),
        (None, "null"),
        (-1, "-1 (int)"),
        (10, "10 (int)"),
        (1 << 20_000, "an int of 20001 bits"),
        ([1, 2], "a list of 2"),
        ("x" * 1000, "'xxxx"),
    ],
    ids=lambda value: str(value)[:9] if isinstance(value, str) else "cell",
)
def test_the_value_of_a_bad_cell_is_shown(cell, shown):
    with pytest.raises(TaskError) as caught:
        parse_task(broken(("test", 0, "output", 1, 0), cell), "abc")
    assert str(caught.value).startswith(f"abc: test[0].output[1][0] is {shown}")


NOT_A_LIST = st.one_of(st.none(), st.integers(), st.text(), st.just([]), st.just({}))


@given(NOT_A_LIST, st.sampled_from(["train", "test"]))
def test_a_part_is_a_list_of_pairs(value, part):
    with pytest.raises(TaskError, match=f"abc: '{part}' is .*at least one pair"):
        parse_task(broken((part,), value), "abc")
    without = {name: pairs for name, pairs in SOUND.items() if name != part}
    with pytest.raises(TaskError, match=f"abc: '{part}' is missing"):
        parse_task(without, "abc")


@given(NOT_A_LIST)
def test_grids_and_rows_are_lists(value):
    with pytest.raises(TaskError, match=r"train\[0\]\.output is .*a list of at least"):
        parse_task(broken(("train", 0, "output"), value), "abc")
    with pytest.raises(TaskError, match=r"train\[0\]\.input\[1\] is .*a row is a list"):
        parse_task(broken(("train", 0, "input", 1), value), "abc")


@pytest.mark.parametrize("value", [None, 3, "x", [1], []])
def test_a_task_and_a_pair_are_objects(value):
    with pytest.raises(TaskError, match=r"abc: holds .*an object with the lists"):
        parse_task(value, "abc")
    with pytest.raises(TaskError, match=r"train\[0\] is .*a pair is an object"):
        parse_task(broken(("train", 0), value), "abc")


@pytest.mark.parametrize(("part", "side"), [("train", "output"), ("test", "input")])
def test_a_missing_grid_is_named(part, side):
    raw = copy.deepcopy(SOUND)
    del raw[part][0][side]
    with pytest.raises(TaskError, match=rf"{part}\[0\] has no '{side}'"):
        parse_task(raw, "abc")


@given(st.integers(1, 6).filter(lambda n: n != 2))
def test_ragged_rows_are_named(length):
    raw = broken(("train", 0, "input", 1), [0] * length)
    with pytest.raises(
        TaskError, match=rf"input\[1\] has {length} cells and row 0 has 2"
    ):
        parse_task(raw, "abc")


@pytest.mark.parametrize("shape", [(MAX_SIDE + 1, 1), (1, MAX_SIDE + 1), (9, 100_000)])
def test_large_grids_are_refused_before_they_are_built(shape):
    rows = [[0] * shape[1]] * shape[0]
    with pytest.raises(TaskError, match=f"a grid has at most {MAX_SIDE} of both"):
        parse_task(broken(("test", 0, "input"), rows), "abc")


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 12), st.floats(), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(["train", "test", "input", "output"]), inner, max_size=4
        ),
    ),
    max_leaves=30,
)


@given(JSON)
def test_any_json_gives_a_task_error_or_a_task(value):
    try:
        task = parse_task(value, "abc")
    except TaskError as error:
        message = str(error)
    else:
        message = f"abc: {len(task.train)} pairs"
    assert message.startswith("abc: ")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (json.dumps(SOUND)[:-1], "not JSON .*download"),
        ("", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        ("9" * 5_000, "not JSON"),
        ("[" * 200_000 + "]" * 200_000, "nested too deeply"),
        (b" " * (MAX_FILE_BYTES + 1), "bytes, a task file has at most"),
    ],
)
def test_files_without_a_task_are_refused(tmp_path, content, problem):
    path = tmp_path / "abc.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TaskError, match=rf"abc\.json: .*{problem}"):
        read_json(path)
