import numpy as np
import pytest

from acbo.named.tables import (
    frame_to_table,
    observed_ranges,
    read_csv,
    table_to_frame,
    write_csv,
)

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
    table = frame_to_table(frame(intervention_targets=cells), target="y")
    assert table.names == ("dose one", "y", "z")
    np.testing.assert_allclose(table.values[:, 0], [1.0, 2.0, 0.1])
    expected = [[True, False, False], [False] * 3, [True, False, True]]
    assert table.intervened.tolist() == expected


def test_without_the_column_all_rows_are_observational():
    table = frame_to_table(frame(), names=["z", "y"])
    assert table.names == ("z", "y")
    assert not table.intervened.any()
    assert table.index("y") == 1


def test_frames_and_files_make_the_round_trip(tmp_path):
    table = frame_to_table(frame(intervention_targets=["z", "", "dose one;z"]))
    back = frame_to_table(table_to_frame(table))
    write_csv(tmp_path / "data.csv", table)
    read = read_csv(tmp_path / "data.csv", target="y")
    for other in (back, read):
        assert other.names == table.names
        np.testing.assert_array_equal(other.values, table.values)
        np.testing.assert_array_equal(other.intervened, table.intervened)
    assert "0.1," in (tmp_path / "data.csv").read_text()
    assert observed_ranges(table)["dose one"] == (0.1, 2.0)


@pytest.mark.parametrize(
    ("changes", "arguments", "words"),
    [
        ({}, {"names": ["q"]}, "column 'q' is not one of: dose one, y, z"),
        ({}, {"target": "q"}, "target 'q' is not one of"),
        ({"y": [1.0, None, 3.0]}, {}, "row 2, column 'y' holds nan"),
        ({"y": ["1", "2", "low"]}, {}, "row 3, column 'y' holds 'low'"),
        ({"y": [1.0, 2.0, float("inf")]}, {}, "row 3, column 'y' holds inf"),
        ({"y": [7, 7, 7]}, {}, "column 'y' is 7 in every row"),
        (
            {"intervention_targets": ["", "dose two", ""]},
            {},
            "row 2: intervention target 'dose two' is not one of",
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
        frame_to_table(frame(**changes), **arguments)


def test_one_row_is_too_few():
    with pytest.raises(ValueError, match="has 1 row"):
        frame_to_table(frame().iloc[:1])


def test_wrong_files_are_named(tmp_path):
    path = tmp_path / "broken.csv"
    path.write_text("x,y\n1,2\n3,\n")
    with pytest.raises(ValueError, match=r"broken.csv: row 2, column 'y' holds nan"):
        read_csv(path)
    path.write_text("")
    with pytest.raises(ValueError, match=r"broken.csv is no CSV table"):
        read_csv(path)


def test_names_that_would_not_read_back_are_refused():
    table = frame_to_table(
        pd.DataFrame(
            {"a,b": [1.0, 2.0], "c": [3.0, 4.0]}
            | {"intervention_targets": ["a,b", {"a,b", "c"}]}
        )
    )
    assert table.intervened.tolist() == [[True, False], [True, True]]
    with pytest.raises(ValueError, match="'a,b' has a comma"):
        table_to_frame(table)
