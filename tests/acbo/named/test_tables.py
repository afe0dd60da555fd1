import dataclasses

import numpy as np
import pytest

from acbo.named import samples, tables
from acbo.named.samples import create_sample

pd = pytest.importorskip("pandas")

COLUMNS = {"dose one": [1.0, 2.0, 0.1], "y": [3, 4, 5], "z": [1.5, 0.5, 0.25]}


def frame(**changes):
    return pd.DataFrame(COLUMNS | changes)


@pytest.mark.parametrize(
    "cells",
    [
        ["dose one", "", "dose one;z"],
        ["dose one", None, "z, dose one"],
        [["dose one"], [], {"z", "dose one"}],
        [frozenset({"dose one"}), float("nan"), ("dose one", "z")],
    ],
)
def test_every_way_to_write_targets_means_the_same(cells):
    table = tables.frame_to_table(frame(intervention_targets=cells), target="y")
    assert table.names == ("dose one", "y", "z")
    np.testing.assert_allclose(table.values[:, 0], [1.0, 2.0, 0.1])
    expected = [[True, False, False], [False] * 3, [True, False, True]]
    assert table.intervened.tolist() == expected


def test_names_with_words_between_read_back_softly_too():
    cells = ["soft:N+P", "A and B; n+p", "soft:a and b"]
    given = pd.DataFrame({"N+P": [1.0, 2, 3], "a and b": [0.0, 2, 5], "k/m": [3, 1, 2]})
    table = tables.frame_to_table(given.assign(intervention_targets=cells))
    assert table.soft[:, :2].tolist() == [[True, False], [False, False], [False, True]]
    other = given.assign(intervention_targets=["K/M; n+p", "K/M", ""])
    flags = tables.frame_to_table(other.drop(columns="a and b")).intervened
    assert flags.tolist() == [[True, True], [False, True], [False, False]]
    back = tables.frame_to_table(tables.table_to_frame(table))
    np.testing.assert_array_equal(back.soft, table.soft)
    np.testing.assert_array_equal(back.intervened, table.intervened)


def test_without_the_column_all_rows_are_observational():
    table = tables.frame_to_table(frame(), names=["z", "y"])
    assert table.names == ("z", "y")
    assert not table.intervened.any()
    assert table.index("y") == 1


def test_frames_and_files_make_the_round_trip(tmp_path):
    table = tables.frame_to_table(frame(intervention_targets=["z", "", "dose one;z"]))
    back = tables.frame_to_table(tables.table_to_frame(table))
    tables.write_csv(tmp_path / "data.csv", table)
    read = tables.read_csv(tmp_path / "data.csv", target="y")
    for other in (back, read):
        assert other.names == table.names
        np.testing.assert_array_equal(other.values, table.values)
        np.testing.assert_array_equal(other.intervened, table.intervened)
    assert "0.1," in (tmp_path / "data.csv").read_text()
    assert tables.observed_ranges(table)["dose one"] == (0.1, 2.0)


@pytest.mark.parametrize(
    ("changes", "arguments", "words"),
    [
        ({}, {"names": ["q"]}, "column 'q' is not known; .* There are: dose one, y, z"),
        ({}, {"target": "q"}, "target 'q' is not known"),
        ({"y": [1.0, None, 3.0]}, {}, "row 2, column 'y' is nan"),
        ({"y": ["1", "2", "low"]}, {}, "row 3, column 'y' is 'low'"),
        ({"y": [1.0, 2.0, float("inf")]}, {}, "row 3, column 'y' is inf"),
        ({"y": [7, 7, 7]}, {}, "column 'y' is 7 in every row"),
        (
            {"intervention_targets": ["", "dose two", ""]},
            {},
            "row 2: intervention target 'dose two' is not known",
        ),
        (
            {"intervention_targets": ["", "", "y;z"]},
            {"target": "y"},
            "row 3: the target 'y' is among the intervention targets",
        ),
    ],
)
def test_wrong_tables_are_named(changes, arguments, words):
    with pytest.raises(ValueError, match=words):
        tables.frame_to_table(frame(**changes), **arguments)
    with pytest.raises(ValueError, match="has 1 row"):
        tables.frame_to_table(frame().iloc[:1])


def test_wrong_files_are_named(tmp_path):
    path = tmp_path / "broken.csv"
    path.write_text("x,y\n1,2\n3,\n")
    with pytest.raises(ValueError, match=r"broken.csv: row 2, column 'y' is nan"):
        tables.read_csv(path)
    path.write_text("")
    with pytest.raises(ValueError, match=r"broken.csv is not a CSV table"):
        tables.read_csv(path)


def test_names_that_would_not_read_back_are_refused():
    table = tables.frame_to_table(
        pd.DataFrame(
            {"a,b": [1.0, 2.0], "c": [3.0, 4.0]}
            | {"intervention_targets": ["a,b", {"a,b", "c"}]}
        )
    )
    assert table.intervened.tolist() == [[True, False], [True, True]]
    with pytest.raises(ValueError, match="'a,b' has a comma"):
        tables.table_to_frame(table)


SAMPLES = [
    create_sample({"x": 1.0, "y": 10.0, "z": 5.0}),
    create_sample({"x": 3.0, "y": 30.0, "z": 5.0}, "perfect", {"x"}),
]


def test_samples_become_arrays():
    values, intervened = samples.samples_to_arrays(SAMPLES, ["y", "x"])
    assert values.tolist() == [[10, 1], [30, 3]]
    assert intervened.tolist() == [[False, False], [False, True]]
    assert samples.samples_to_arrays(SAMPLES)[0].tolist() == [[1, 10, 5], [3, 30, 5]]
    with pytest.raises(ValueError, match="sample 2 has no value of 'y'"):
        samples.samples_to_arrays([SAMPLES[0], create_sample({"x": 1.0})])
    with pytest.raises(ValueError, match="no samples"):
        samples.samples_to_arrays([])


def test_channels_are_value_intervened_target():
    tensor = samples.samples_to_avici_format(SAMPLES, ["x", "y", "z"], "y")
    assert tensor.shape == (2, 3, 3)
    # Population standard deviation; a constant column is centered and left alone.
    np.testing.assert_allclose(tensor[..., 0], [[-1, -1, 0], [1, 1, 0]])
    assert tensor[..., 1].tolist() == [[0, 0, 0], [1, 0, 0]]
    assert tensor[..., 2].tolist() == [[0, 1, 0], [0, 1, 0]]


def test_raw_values_counts_and_no_target():
    raw = samples.samples_to_avici_format(SAMPLES, ["y", "x", "z"], standardize=False)
    assert raw[..., 0].tolist() == [[10, 1, 5], [30, 3, 5]]
    assert not raw[..., 2].any()
    counts = samples.samples_to_avici_format(
        SAMPLES, None, "y", standardization_type="count"
    )
    np.testing.assert_allclose(counts[..., 0], [[-1, -1, 0], [1, 1, 0]], atol=1e-6)
    with pytest.raises(
        ValueError, match=r"'rank' is not known; .* There are: default, count, none"
    ):
        samples.samples_to_avici_format(SAMPLES, standardization_type="rank")
    with pytest.raises(ValueError, match="count of -1"):
        samples.samples_to_avici_format(
            [create_sample({"x": -1.0})], standardization_type="count"
        )
    with pytest.raises(ValueError, match=r"'q' is not known; .* There are: x, y, z"):
        samples.samples_to_avici_format(SAMPLES, None, "q")


ROWS = np.arange(6).reshape(2, 3)
NONE = np.zeros((2, 3), int)
RANGES = {"C": (0, 4), "A": (-1.0, 2.0)}
SEEN = tables.Experiments(ROWS, NONE, ("A", "B", "C"), "B", RANGES, "maximize")


def test_what_is_given_is_brought_into_one_form():
    assert (SEEN.values.dtype, SEEN.intervened.dtype) == (np.float64, bool)
    assert (SEEN.direction, SEEN.column, SEEN.sign) == ("MAXIMIZE", 1, -1)
    low, high, allowed = SEEN.bounds
    np.testing.assert_array_equal(low, [-1, 0, 0])
    np.testing.assert_array_equal(high, [2, 0, 4])
    np.testing.assert_array_equal(allowed, [True, False, True])


def test_adding_a_row_leaves_the_first_as_they_were():
    more = SEEN.add({"C": 7.0, "A": 1.5, "B": -2.0}, ["A"])
    np.testing.assert_array_equal(more.values, [*ROWS, [1.5, -2.0, 7.0]])
    np.testing.assert_array_equal(more.intervened, [*NONE, [1, 0, 0]])
    assert len(SEEN.values) == 2
    assert (more.target, more.ranges, more.direction) == ("B", RANGES, "MAXIMIZE")
    empty = dataclasses.replace(SEEN, values=ROWS[:0], intervened=NONE[:0])
    first = empty.add({"A": 1.0, "B": 2.0, "C": 3.0}, [])
    assert first.values.shape == (1, 3)
    assert not first.intervened.any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": ROWS[:, :2]}, r"values \(2, 2\) and intervened \(2, 3\)"),
        ({"intervened": NONE[:1]}, "one column for each of the 3 names"),
        ({"values": np.array([[1, 2, 3], [1, np.nan, 3]])}, "row 2 is not finite"),
        ({"names": ("A", "B", "B")}, "'B' is a duplicate"),
        ({"target": "Z"}, "target 'Z' is not known; .* There are: A, B, C"),
        ({"target": "A"}, "the target 'A' must not have a range"),
        ({"ranges": {}}, "ranges is empty: name the variables"),
        ({"ranges": {"D": (0, 1)}}, "ranges: variable 'D' is not known"),
        ({"ranges": {"A": (1, 0)}}, "range of 'A': 1 to 0 is not a range"),
        ({"ranges": {"A": (0, np.inf)}}, "range of 'A': 0 to inf is not a range"),
        ({"direction": "up"}, "direction 'UP' is not known"),
    ],
)
def test_bad_experiments_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(SEEN, **change)


def test_bad_rows_are_refused():
    with pytest.raises(ValueError, match="no value for: B, C"):
        SEEN.add({"A": 1.0}, [])
    with pytest.raises(ValueError, match="variable that was set 'Z' is not known"):
        SEEN.add({"A": 1.0, "B": 1.0, "C": 1.0}, ["A", "Z"])
    with pytest.raises(ValueError, match="row 3 is not finite"):
        SEEN.add({"A": 1.0, "B": np.inf, "C": 1.0}, ["A"])
