"""A campaign in a folder: asked, told, taken back, killed, and told by two at once."""

import json
import re
import signal
import subprocess
import sys
import warnings

import pandas as pd
import pytest
from typer.testing import CliRunner

import acbo
from acbo.campaign import show_row
from acbo.cli import app
from acbo.policy import suggest as engine
from causal_policies import middle_of_ranges
from causal_tables import write_table

VALUES = {"Z": 0.5, "Y": 1.25}


@pytest.fixture(autouse=True)
def policy(monkeypatch):
    monkeypatch.setattr(engine, "plan", middle_of_ranges)


@pytest.fixture
def campaign(tmp_path):
    path = write_table(tmp_path)
    return acbo.Campaign.create(
        tmp_path / "lab", path, "y", maximize=True, ranges={"X": (-4, 4)}
    )


def test_the_folder_holds_the_problem_and_every_row(campaign):
    problem = acbo.Campaign(campaign.folder).problem
    assert (problem.target, problem.direction) == ("Y", "MAXIMIZE")
    assert problem.settable == ("X", "Z")
    assert problem.ranges["X"] == (-4, 4)
    rows = pd.read_csv(campaign.folder / "rows.csv")
    # Ranges that were not given are those of the start, whatever is told later.
    assert problem.ranges["Z"] == (rows["Z"].min(), rows["Z"].max())
    assert len(rows) == 24
    assert campaign.told() == []
    with pytest.raises(ValueError, match="holds a campaign already"):
        acbo.Campaign.create(campaign.folder, rows, "Y", maximize=True)
    names = [f"day {number % 5}" for number in range(24)]
    with pytest.raises(ValueError, match=r"'day' is not known.*'day' was left out"):
        acbo.Campaign.create(
            campaign.folder / "b", rows.assign(day=names), "Y", True, settable="day"
        )
    with pytest.raises(ValueError, match="holds no campaign"):
        acbo.Campaign(campaign.folder / "other")


def test_what_is_asked_stays_open_until_it_is_told(campaign):
    asked = campaign.ask()
    assert asked.settings == {"X": 0.0}
    assert asked.trials[0].number == 1
    assert campaign.ask() == asked  # after a restart too: all is in the folder
    assert campaign.tell(VALUES) == 1
    (row,) = campaign.told()
    assert row["X"] == 0.0
    assert row["intervention_targets"] == "X"
    assert row["experiment_number"] == 1
    assert campaign.read().intervened[-1].tolist() == [True, False, False]
    assert campaign.ask().trials[0].number == 2
    assert campaign.ask(again=True).trials[0].number == 3
    assert [each.rows for each in campaign.asked()] == [24, 25, 25]

    with pytest.warns(UserWarning, match="told before: kept as another run"):
        campaign.tell(VALUES, number=1)
    with pytest.raises(ValueError, match="sets X, and told is that nothing was set"):
        campaign.tell(VALUES | {"X": 0.0}, (), number=1)
    campaign.undo()
    assert campaign.undo()["Y"] == 1.25
    assert len(campaign.read().values) == 24
    with pytest.raises(ValueError, match="nothing to take back"):
        campaign.undo()


@pytest.mark.parametrize(
    ("values", "settings", "words"),
    [
        ({"X": 2.0}, None, "asked for X = 0, told is 2.0: kept as told"),
        ({"X": 5.0}, ["X"], "outside its range -4 to 4: kept"),
        ({"Y": 1250.0}, None, "Y = 1250 is far from .* unit or the decimal point"),
        ({}, ["Z"], "Z was not what was asked for .experiment 1 is still open"),
        ({"Z": None, "X": 1.0}, [], "no value of Z: the row is kept, but not used"),
        (
            {"Z": None},
            None,
            "no value of Z: the row is kept, but tells nothing about causes",
        ),
    ],
)
def test_what_looks_wrong_is_kept_with_a_warning(campaign, values, settings, words):
    campaign.ask()
    given = {n: v for n, v in (VALUES | {"X": 0.0} | values).items() if v is not None}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        campaign.tell(given, settings)
    assert re.search(words, "; ".join(str(each.message) for each in caught))
    (row,) = campaign.told()
    assert {name: row[name] for name in given} == given
    assert campaign.ask(again=True).rows == 24 + ("not used" not in words)


@pytest.mark.parametrize(
    ("values", "settings", "number", "message"),
    [
        (VALUES, None, None, "no experiment is open: ask first"),
        (VALUES, None, 7, "experiment 7 was not asked for"),
        ({"Z": 1.0}, (), None, "no value of 'Y'"),
        (VALUES, ["X"], None, "no value of 'X'"),
        (VALUES | {"Zz": 1.0}, (), None, "did you mean 'Z'"),
        (VALUES | {"Z": "x"}, (), None, "give a number"),
        (VALUES, ["Y"], None, "never set"),
    ],
)
def test_what_cannot_be_a_row_is_refused(campaign, values, settings, number, message):
    with pytest.raises(ValueError, match=message):
        campaign.tell(values, settings, number)
    assert campaign.told() == []


def test_texts_of_two_levels_are_told_as_texts(tmp_path):
    frame = pd.read_csv(write_table(tmp_path)).assign(Z=["off", "on"] * 12)
    campaign = acbo.Campaign.create(
        tmp_path / "lab", frame, "Y", maximize=True, levels={"X": (-1, 0, 2)}
    )
    campaign.tell({"X": 1.0, "Z": "ON", "Y": 2.0}, settings="Z")
    campaign.tell({"X": 1.0, "Z": 0, "Y": 2.0}, settings=["Z"])
    assert [row["Z"] for row in campaign.told()] == ["on", "off"]
    assert campaign.read().values[-2:, 1].tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="give off or on"):
        campaign.tell({"X": 1.0, "Z": "onn", "Y": 2.0}, settings=())
    with pytest.warns(UserWarning, match=r"none of its levels \(-1, 0, 2\): kept"):
        campaign.tell({"X": 1.0, "Z": "on", "Y": 2.0}, settings="X")


def test_rows_are_told_to_a_table_in_another_style(tmp_path):
    frame = pd.read_csv(write_table(tmp_path))
    frame["X"] = [f"{200 + x:.3f}".replace(".", ",") for x in frame["X"]]
    frame["Z"] = ["<0,1", *(f"1.00{k % 7},5 mg" for k in range(23))]
    campaign = acbo.Campaign.create(tmp_path / "lab", frame, "Y", maximize=True)
    told = {"X": 201.123456, "Z": 1003.25, "Y": 12.5}
    campaign.tell(told, settings=())
    assert campaign.read().values[-1].tolist() == [*told.values()]
    assert campaign.read().values[0, :2].tolist() == pytest.approx(
        [float(frame["X"][1].replace(",", ".")), 1000.5]
    )
    assert "X = 201.1235, Z = 1003.25, Y = 12.5" in show_row(campaign.told()[0])


def test_files_that_were_edited(campaign):
    campaign.ask()
    rows, asked = (campaign.folder / name for name in ("rows.csv", "asked.jsonl"))
    plain = pd.read_csv(rows)[["X", "Z", "Y"]]
    plain.to_csv(rows, index=False, sep=";")
    assert campaign.told() == []
    campaign.tell(VALUES)
    assert campaign.told()[0]["X"] == 0.0
    assert len(campaign.read().values) == len(plain) + 1
    asked.write_text(asked.read_text() + "{half")
    with pytest.raises(ValueError, match=r"asked.jsonl, line 2: .* restore the file"):
        campaign.ask()
    asked.unlink()
    with pytest.raises(ValueError, match=r"No such file.*leave an empty one"):
        campaign.ask()
    problem = campaign.folder / "campaign.toml"
    problem.write_text(problem.read_text().replace("target =", "# target ="))
    with pytest.raises(ValueError, match=r"campaign.toml: the key 'target' is missing"):
        _ = campaign.problem


TELLER = """
import sys
import warnings
from acbo.campaign import Campaign
campaign = Campaign(sys.argv[1])
for number in range(1000):
    row = {"X": float(sys.argv[2]), "Z": number / 1000, "Y": 1.0}
    campaign.tell(row, settings=())
    print(number, flush=True)
"""


def test_two_writers_that_are_killed_lose_nothing_that_was_told(campaign):
    command = [sys.executable, "-c", TELLER, str(campaign.folder)]
    writers = [
        subprocess.Popen([*command, mark], stdout=subprocess.PIPE, text=True)
        for mark in ("0.25", "0.75")
    ]
    for writer in writers:
        assert writer.stdout is not None
        while int(writer.stdout.readline()) < 5:
            pass
    confirmed = []
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
        rest = writer.communicate()[0].split()
        confirmed.append(max(map(int, rest), default=5))
    told = campaign.told()
    for mark, last in zip((0.25, 0.75), confirmed, strict=True):
        found = [round(1000 * row["Z"]) for row in told if row["X"] == mark]
        # A kill between the writing and the word about it leaves one row more.
        assert found in (list(range(last + 1)), list(range(last + 2)))
    assert len(campaign.read().values) == 24 + len(told)
    assert campaign.ask().rows == 24 + len(told)


def test_the_commands_and_the_page(tmp_path, campaign):
    path = write_table(tmp_path)
    call = lambda *words: CliRunner().invoke(app, [str(word) for word in words])
    folder = tmp_path / "new"
    begin = ("campaign", folder, "--data", path, "--target", "Y")
    assert "which way Y" in " ".join(call(*begin).output.split())
    done = call(*begin, "--maximize", "--range", "X=-4:4")
    assert done.exit_code == 0, done.output
    assert call(*begin, "--maximize").exit_code == 2
    done = call("ask", folder)
    assert "experiment 1: to raise Y, set X to 0" in done.output
    assert "tell" in done.output
    assert json.loads(call("ask", folder, "--json").output)["trials"][0]["number"] == 1
    done = call("tell", folder, "z=0.5", "y=9000")
    assert "warning: Y = 9000 is far from" in done.output
    assert "row 1: set X = 0; measured Z = 0.5, Y = 9000" in done.output
    assert "took back set X = 0" in call("tell", folder, "--undo").output
    for words in (
        ["Z"],
        ["Q=1"],
        ["Y=1,500"],
        ["--undo", "Y=1"],
        ["--observed", "--set", "X"],
    ):
        assert call("tell", folder, *words).exit_code == 2
    twice = call("tell", folder, "Z=0.5", "Y=1", "Y=2").output
    assert "'Y' is given twice: give one value" in " ".join(twice.split())
    for number in (1, 2):
        assert call("tell", folder, "z=0,5", f"y={number}").exit_code == 0
        assert call("ask", folder).exit_code == 0
    copied = call("tell", folder, "--observed", "X=1", "Z=\N{MINUS SIGN}1", "Y=1.5")
    assert "Z = -1" in copied.output
    page = tmp_path / "deep" / "page.html"
    assert call("report", folder, "--out", page).exit_code == 0
    text = page.read_text()
    for words in ("Campaign to maximize Y", "best so far", "nothing set", "data-edge"):
        assert words in text
    assert "X = 0 gave Y = 2" in text
    assert "Open is experiment 3: to raise Y, set X to 0" in text
    assert call("report", tmp_path).exit_code == 2
