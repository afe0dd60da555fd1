"""Tables as laboratories keep them: what is read, and what is said about the rest."""

import numpy as np
import pandas as pd
import pytest

from acbo.named.reading import find_name, read_cells, read_table
from acbo.named.tables import frame_to_table, table_to_frame

ROWS = 12
NUMBERS = np.random.default_rng(0).normal(size=(ROWS, 3)).round(3)


def messy(**more):
    """A notebook's table; `more` adds columns or replaces them."""
    columns = {
        "Run": range(1, ROWS + 1),
        "Date": [f"{day}.03.2024" for day in range(1, ROWS + 1)],
        "Operator": ["Ann", "Bob", "Cy"] * 4,
        "Catalyst": ["with", "without"] * 6,
        "Temp (°C)": NUMBERS[:, 0],
        "dose": [f"{value} mg" for value in NUMBERS[:, 1]],
        "Yield (%)": NUMBERS[:, 2],
        "stirring": 200,
        "Temp copy": NUMBERS[:, 0],
        "do": ["", "none", "temp", "Temp; dose", "{'dose'}", "do(dose=2)"] + ["[]"] * 6,
    }
    return pd.DataFrame(columns | more)


def test_every_column_is_used_or_named_with_the_reason():
    table = read_table(messy(), "yield")
    assert table.names == ("Catalyst", "Temp (°C)", "dose", "Yield (%)")
    np.testing.assert_array_equal(table.values[:, 0], [1, 0] * 6)
    np.testing.assert_array_equal(table.values[:, 1:], NUMBERS)
    assert table.labels == {"Catalyst": ("without", "with")}
    assert table.intervened.nonzero()[0].tolist() == [2, 3, 3, 4, 5]
    assert table.intervened.nonzero()[1].tolist() == [1, 1, 2, 2, 2]
    told = "\n".join(table.notes)
    for name, reason in {
        "'Run'": "numbers or names the rows",
        "'Date'": "dates",
        "'Operator'": "text of 3 levels (Ann, Bob, Cy)",
        "'stirring'": "200 in every row",
        "'Temp copy'": "equal to 'Temp (°C)'",
        "'dose'": "unit mg",
        "'without'": "was read as 0",
        "the target": "'Yield (%)'",
        "column 'do'": "what was set",
    }.items():
        assert any(name in line and reason in line for line in table.notes), told


def test_soft_interventions_are_marked_and_kept():
    cells = ["soft:temp", "SOFT: dose = 2; Temp", "soft:dose; dose"] + [""] * 9
    table = read_table(messy(do=cells), "yield")
    assert np.argwhere(table.intervened).tolist() == [[0, 1], [1, 1], [1, 2], [2, 2]]
    assert np.argwhere(table.soft).tolist() == [[0, 1], [1, 2]]
    again = frame_to_table(table_to_frame(table))
    np.testing.assert_array_equal(again.soft, table.soft)
    np.testing.assert_array_equal(again.intervened, table.intervened)
    kept, _ = read_cells(messy(do=cells), "yield")
    np.testing.assert_array_equal(read_table(kept, "yield").soft, table.soft)
    with pytest.raises(ValueError, match="'dosis' is not known"):
        read_table(messy(do=["soft:dosis"] + [""] * 11), "yield")


def test_experiments_that_lack_what_was_measured_are_kept_apart():
    """Rows: complete; lacks m; lacks the target; lacks what was set; only observed."""
    gap = np.nan
    rows = {
        "x": [1.0, 2.0, 3.0, gap, 5.0, 6.0, 4.0],
        "m": [0.5, gap, 0.1, 0.2, gap, 0.9, 0.3],
        "y": [1.5, 2.5, gap, 3.5, 4.5, 0.1, 0.2],
        "do": ["x", "x", "x", "x", "", "", "soft:x"],
    }
    table = read_table(rows, "y")
    assert table.values[:, 0].tolist() == [1.0, 6.0, 4.0]
    values, flags = table.partial
    np.testing.assert_array_equal(values, [[2.0, gap, 2.5]])
    assert flags.tolist() == [[True, False, False]]
    assert table.dropped == 3
    assert any("1 of 7 rows lack 'm': their outcomes" in n for n in table.notes)
    assert read_table(rows).partial is None
    # A row that sets c, which is the same in all complete rows, tells of no setting.
    more = {"c": [1.0, 7.0, *[1.0] * 5], "do": ["", "x; c", *[""] * 5]}
    other = read_table(rows | more, "y")
    assert other.names == ("x", "m", "y")
    assert other.partial is None
    assert "1 rows were left out: they set 'c'" in other.notes
    # More than half of m is missing: the column goes, unless it is to be kept.
    rows["m"][5:] = [gap, gap]
    assert read_table(rows, "y").names == ("x", "y")
    rows["m"][4] = 0.7
    kept = read_table(rows, "y", keep=["m"])
    assert (kept.names, len(kept.partial[0])) == (("x", "m", "y"), 1)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_files_of_spreadsheets(tmp_path, separator, encoding):
    path = tmp_path / "table.csv"
    messy().to_csv(path, index=False, sep=separator, encoding=encoding)
    table = read_table(path, "yield")
    assert table.names == read_table(messy(), "yield").names
    np.testing.assert_array_equal(table.values[:, 1:], NUMBERS)


def test_a_row_of_units_below_the_header_is_told_once(tmp_path):
    lines = [
        "dose,temp,growth",
        "mM,°C,1/h",
        *(f"{2 * n},3{n % 4},{n * n}" for n in range(9)),
    ]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    table = read_table(path, "growth")
    assert table.values[:, 2].tolist() == [n * n for n in range(9)]
    assert len(table.notes) == 1
    assert "(mM, °C, 1/h): left out" in table.notes[0]
    # One cell that is no number says nothing of the row.
    path.write_text("\n".join([lines[0], "1,n.d.,4", *lines[2:]]), encoding="utf-8")
    assert read_table(path, "growth").dropped == 1
    path.write_text("\n".join(lines[:2]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"has 1 row.* give at least 2"):
        read_table(path, "growth")


def test_cells_that_are_no_numbers_are_missing():
    weak = ["<0.1", np.nan, *NUMBERS[2:, 0]]
    table = read_table(messy(**{"Temp (°C)": weak, "rare": [1.0] + [None] * 11}))
    assert table.dropped == 2
    assert len(table.values) == ROWS - 2
    assert any("to keep rows beyond a limit of detection" in n for n in table.notes)
    words = ["nd", "n.d.", "#REF!", *NUMBERS[3:, 0]]  # all different, yet no names
    odd = read_table(messy(**{"Temp (°C)": words, "Temp copy": 1}))
    assert "'nd', 'n.d.', '#REF!' are not numbers and" in "; ".join(odd.notes)
    assert any("'rare'" in n and "11 of 12 values" in n for n in table.notes)
    # A row that sets what is not in the table is neither observed nor an experiment.
    left = read_table(messy(do=["Operator", *[""] * 11]))
    assert len(left.values) == ROWS - 1


@pytest.mark.parametrize(
    ("text", "first", "note"),
    [
        ('x,y\n"1,200.5",1\n"900",2\n-3,3\n', [1200.5, 1], "separate thousands"),
        ("x;y\n1.200,5;0,5\n1.300;0,7\n900;0,1\n", [1200.5, 0.5], "are decimal"),
        ('x,y\n"0,5",1\n"0,25",2\n"3",3\n', [0.5, 1], "are decimal"),
        ('x,y\n"0,350",1\n"1,200",2\n"0,875",3\n', [0.35, 1], "0,350 is 0.35"),
        (
            'x,y\n"1,200","0,375"\n"1,300","2,125"\n"1,4","3,625"\n',
            [1.2, 0.375],
            "0,375 is 0.375",
        ),
        ('x,y\n"1,5",1\n"2,5",2\n" ",3\n"4,5",4\n', [1.5, 1], "1,5 is 1.5"),
        ("x,y\n\u22121.5\xa0,1\n1\u202f200.5,2\n3,5\n", [-1.5, 1], None),
        ("# 7 runs\n# x,y\n1.2e-01,1\n2e0,5\n3e0,9\n", [0.12, 1], None),
        ("# a comment\n#, more\nx|y\n1|2\n2|5\n3|9\n", [1, 2], None),
        ("#,x,y\n1,1,2\n2,4,5\n3,5,9\n", [1, 2], "'#' was left out: it numbers"),
        ("id,x,y\n71,1,2\n12,4,5\n93,5,9\n", [1, 2], "'id' was left out: it numbers"),
        ("x,x,y\n1,3,2\n4,1,5\n5,0,9\n", [1, 3, 2], "'x.1' is another column 'x'"),
        ("x,y,y\n1,3,2\n4,1,5\n5,0,9\n", [1, 3], "'y.1' was left out"),
        ("x y\n1 2\n4   5\n5 9\n", [1, 2], None),
        ("\n \nx;y\n1,5;2;\n4;5;\n5;9;\n", [1.5, 2], None),
        ("sep=;\nx;y\n1,5;2\n4;5\n5;9\n", [1.5, 2], "above the header: sep="),
        (
            "runs\n\nin,,out\nx,z,y\n1,3,2\n4,7,5\n5,0,9\n",
            [1, 3, 2],
            "runs; in,,out",
        ),
        (
            "x\tz\ty\n1.013\t0,25\t3\n250\t1,5\t4\n9.000\t1\t7\n",
            [1013, 0.25, 3],
            "points",
        ),
        ("x;z;y\n1.013;0.25;3\n250;1.5;4\n9.001;1;7\n", [1.013, 0.25, 3], None),
        ("x\tnote\ty\n1.013\ttook 2,5 h\t2\n1.25\t\t3\n3.5\t\t7\n", [1.013, 2], "note"),
        ("x;z;y\n1.013;0,25;3\n1.25;1,5;4\n9.001;1;7\n", [1.013, 0.25, 3], None),
        ('"x\n(g)","y\n(%)"\n1,2\n4,5\n5,9\n', [1, 2], "column 'y (%)'"),
        ("x,y\n,\n1,2\n,\n4,5\n5,9\n,\n", [1, 2], None),
        ("x;y\n0,5;1\n<0,1;7\n0,7;2\n0,9;3\n", [0.5, 1], "'<0,1' is not a number and"),
        ('x,y\n"52,3 %",1\n"40,1 %",2\n"7 %",3\n', [52.3, 1], "unit % was taken"),
        ("x,y\n16.1 \u00b1 0.5,1\n2 \u00b1 0.5,2\n3,3\n", [16.1, 1], "spreads such as"),
        ('x,y\n"$1,050.5",1\n"$2,000",2\n"$3,000.25",3\n', [1050.5, 1], "unit $"),
        ("x;y\n1,5E-6;1\n2E-6;2\n3E-6;3\n", [1.5e-6, 1], None),
        ("no,x,y\n1a,1,2\n1b,4,5\n2a,5,9\n", [1, 2], "'no' was left out: it is text"),
        ("run,x,y\n7,1,2\n9,4,5\nbad,6,3\n6,5,9\n", [7, 1, 2], "'bad' is not a"),
        ("at,x,y\n1st St,1,2\n2nd St,4,5\nElm,5,9\n", [1, 2], "'at' was left out"),
        (
            "rep,x,y\n1,1,2\n2,4,5\n1,5,9\n",
            [1, 2],
            "it numbers runs of one",
        ),
        ("lot no,x,y\n17,1,2\n12,4,5\n3,5,9\n", [1, 2], "it numbers or names the rows"),
        ("Date,x,y\n45017,1,2\n45012,4,5\n45003,5,9\n", [1, 2], "it holds dates"),
        ("on,x,y\nMar 3 2024,1,2\n4-Mar-24,4,5\n5. March 2024,5,9\n", [1, 2], "dates"),
    ],
)
def test_ways_of_writing_numbers_rows_and_dates(tmp_path, text, first, note):
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    table = read_table(path, "y")
    assert table.values[0].tolist() == first
    assert table.values.shape == (3, len(first))
    told = "; ".join(table.notes)
    assert told == "" if note is None else note in told


def test_columns_of_levels_and_of_odd_types():
    columns = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
    table = read_table(pd.DataFrame(NUMBERS[:, :2], columns=columns), "a y")
    assert table.names == ("a x", "a y")
    odd = {"Temp (°C)": NUMBERS[:, 0] * 1j, "dose": pd.to_timedelta(range(12), "h")}
    odd |= {"Month": pd.period_range("2024-01", periods=12, freq="M")}
    table = read_table(messy(**odd, do=""), "yield")
    assert table.names == ("Catalyst", "Yield (%)", "Temp copy")
    assert any("complex" in note for note in table.notes)
    assert any("durations" in note for note in table.notes)
    near = {"Temp copy": NUMBERS[:, 2] * 2 + 1e-3 * NUMBERS[:, 0]}
    twins = [
        n for n in read_table(messy(**near), "yield").notes if "almost exactly" in n
    ]
    assert [note[:11] for note in twins] == ["'Temp copy'"]


def test_a_mapping_is_a_table_too():
    given = {"x": [1.0, 2, 4, 8], "on": [True, False, True, None], "y": [1, 2, 3, 4]}
    given |= {"ok": ["Yes", "yes", "no", "No"], "many": [np.ones(2)] * 4}
    table = read_table(given | {"huge": [1e300, 2e300, 3e300, 4e300]})
    assert table.names == ("x", "on", "y", "ok")
    assert table.labels == {"on": ("False", "True"), "ok": ("no", "Yes")}
    assert table.values[:, 3].tolist() == [1, 1, 0]
    assert any("1e+300 is too large" in note for note in table.notes)


def test_columns_that_flag_what_was_set():
    flags = {
        "temp_was_set": ["x"] + [None] * 11,
        "Dose set?": ["Yes"] * 2 + ["no"] * 10,
    }
    table = read_table(messy(**flags, do=[""] * 11 + ["temp"]), "yield")
    assert table.names == read_table(messy(), "yield").names
    assert np.argwhere(table.intervened).tolist() == [[0, 1], [0, 2], [1, 2], [11, 1]]
    assert any("'Dose set?' was read as whether 'dose'" in n for n in table.notes)
    flags = {"temp_was_set": [1.0, 0.0] + [None] * 10, "do_Dose": [1, 1] + [0] * 10}
    same = read_table(messy(**flags, do=[""] * 11 + ["temp"]), "yield")
    np.testing.assert_array_equal(same.intervened, table.intervened)
    # Neither a flag of nothing, nor what a variable was set to.
    settings = {"temp_set": NUMBERS[:, 0] + 1, "oil_set": [0, 1] * 6}
    found = read_table(messy(**settings), "yield").names
    assert set(settings) <= set(found)


def test_rows_that_set_what_is_ignored_are_left_out():
    table = read_table(messy(), "yield", ["dose"])
    assert len(table.values) == ROWS - 3
    assert any("3 rows were left out: they set 'dose'" in n for n in table.notes)
    kept, notes = read_cells(messy(), "yield", ["dose"])  # as a campaign does
    assert notes[-1] == "3 rows were left out: they set 'dose'"
    np.testing.assert_array_equal(read_table(kept, "yield").values, table.values)
    assert read_table(messy(), "yield", ["do", "dose"]).intervened.sum() == 0


@pytest.mark.parametrize(
    ("change", "target", "message"),
    [
        ({"do": ["tempp"] + [""] * 11}, "yield", "did you mean 'Temp"),
        ({"do": [1] + [0] * 11}, "yield", "but not what"),
        ({"do": ["yield"] + [""] * 11}, "yield", "the target 'Yield .* was|among"),
        ({"do": "", "which": ["dose"] + [""] * 11}, "yield", "intervention_targets"),
        (
            {"do": "", "treatment": ["temp", "dose/temp", "heat"] + [""] * 9},
            *("yield", "'treatment' names columns that were set, but row 3: .* 'heat'"),
        ),
        ({"dose": ["1 mg", "2 g"] * 6}, "yield", "column 'dose': .* units .g, mg."),
        ({}, "Operator", "the target 'Operator' cannot be used: it is text"),
        ({}, "stirring", "cannot be used: it is 200"),
        ({}, "yeld", "did you mean 'Yield"),
    ],
)
def test_what_cannot_be_read(change, target, message):
    frame = messy(**change)
    if {"which", "treatment"} & set(change):
        frame = frame.drop(columns="do")
    with pytest.raises(ValueError, match=message):
        read_table(frame, target)
    with pytest.raises(ValueError, match="has no rows"):
        read_table(frame.iloc[:0], target)
    with pytest.raises(TypeError, match="give a pandas DataFrame"):
        read_table([1, 2])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"x,y\n1,2,3\n2,3,5\n4,5,7\n", "more cells than the header"),
        (b"y\nNone\n", "the table has no rows"),
        (b"x y\nday1 1 2\nday2 2 3\n", "more cells than the header"),
        (b"PK\x03\x04\0\0", "table.csv: the file is not text"),
        (
            b"x,y\n1,2\n\n2,3\n4,5,7,9\n",
            "CSV table: '4,5,7,9' has too many",
        ),
        (
            b"x,1.5,2.5\ny,3.5,4.5\n",
            "names .* are numbers .1.5, 2.5.*transpose",
        ),
    ],
)
def test_files_that_are_no_tables(tmp_path, data, message):
    path = tmp_path / "table.csv"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message):
        read_table(path, "y")


def test_names_without_case_and_units():
    assert find_name(2, ["1", "2"]) == "2"  # as frames have them
    known = ["Temp (K)", "temp_max", "yield [%]", "yield (g)"]
    assert find_name("temp", known) == "Temp (K)"
    assert find_name("Temp max", known) == "temp_max"
    with pytest.raises(ValueError, match="did you mean"):
        find_name("yield", known)  # two columns could be meant
