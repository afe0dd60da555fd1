"""The cause room of the studio: tables checked, campaigns asked and told."""

import io
import re
import time
import zipfile

import pytest

pytest.importorskip("starlette")
pytest.importorskip("pandas")

from acbo import studio
from acbo.campaign import Campaign
from jaxrig.studio.jobs import Hub, Jobs
from jaxrig.studio.rooms import Desk, Workspace

EXAMPLE = {"example": "butterfly_5var"}
ROLES = {name: "set" for name in "ABCD"} | {"E": "target"}
NAME = {"campaign": "butterfly_5var-1"}
TABLE = "batch,dose,color,yield\n" + "".join(
    f"b{k},{k % 5},{'red' if k % 2 else 'blue'},{2 * (k % 5) + 0.1 * (k % 3)}\n"
    for k in range(12)
)


@pytest.fixture
def desk(tmp_path):
    return Desk("causal", Workspace(tmp_path), Jobs(Hub()))


def finish(desk, begun):
    job = desk.jobs.get(begun["id"])
    end = time.monotonic() + 120
    while job.state == "running":
        assert time.monotonic() < end
        time.sleep(0.01)
    assert (job.state, job.message) == ("done", "")


def begin(desk):
    request = {"source": EXAMPLE, "roles": ROLES, "maximize": False}
    finish(desk, studio.start(desk, request))
    return studio.state(desk, NAME)


def test_a_campaign_is_asked_told_and_taken_back(desk, tmp_path):
    before = begin(desk)
    (name,) = before["trial"]["settings"]
    assert before["sentence"].startswith(f"to lower E, set {name} to")
    drawn = studio.simulate(desk, NAME)
    assert drawn[name] == pytest.approx(before["trial"]["settings"][name])
    first = NAME | {"values": drawn, "number": before["trial"]["number"]}
    told = studio.tell(desk, first)
    assert told["warnings"] == []
    with pytest.raises(ValueError, match="has its outcome already"):
        studio.tell(desk, first)  # a second click, or another tab
    finish(desk, told)
    after = studio.state(desk, NAME)
    assert (after["rows"], len(after["beliefs"])) == (before["rows"] + 1, 2)
    assert after["beliefs"][0]["causes"] != after["beliefs"][1]["causes"]
    odd = studio.tell(desk, NAME | {"values": drawn | {"E": 1e6}})
    assert any("far from" in words for words in odd["warnings"])
    finish(desk, odd)
    finish(desk, studio.undo(desk, NAME))
    again = studio.state(desk, NAME)
    assert again["told"] == after["told"]
    assert Campaign(tmp_path / "campaigns/butterfly_5var-1").read().names == tuple(
        "ABCDE"
    )
    archive = zipfile.ZipFile(io.BytesIO(studio.download(desk, NAME).content))
    assert "butterfly_5var-1/rows.csv" in archive.namelist()
    assert b"<html" in studio.report(desk, NAME).content


def test_edges_stated_by_hand_hold(desk, tmp_path):
    begin(desk)
    problem = tmp_path / "campaigns/butterfly_5var-1/campaign.toml"
    text = re.sub(r"(?m)^(know|forbid) = .*\n", "", problem.read_text())
    byhand = 'know = [\n  ["D", "E"],  # not "sure]\n]\n# a note\n'
    problem.write_text(byhand + text)
    given = {"know": [["B", "E"]], "forbid": [["A", "E"]]}
    state = lambda edge, kind: studio.edges(desk, NAME | {"edge": edge, "kind": kind})
    for edge, kind in (("BE", "know"), ("DE", "forbid"), ("AE", "forbid"), ("DE", "")):
        finish(desk, state(list(edge), kind))
    assert "# a note" in problem.read_text()
    found = studio.state(desk, NAME)
    assert found["probs"][1][4] == pytest.approx(1.0)
    assert found["probs"][0][4] == 0.0
    assert (found["know"], found["forbid"]) == (given["know"], given["forbid"])
    for edge, words in ((["B", "B"], "itself"), (["B", "Z"], "not a variable")):
        with pytest.raises(ValueError, match=words):
            state(edge, "know")


def test_columns_are_checked_where_they_are_shown(desk, tmp_path):
    (tmp_path / "lab.csv").write_text(TABLE)
    found = studio.table(desk, {"source": {"file": "lab.csv"}})
    columns = {column["name"]: column for column in found["columns"]}
    assert found["rows"] == 12
    assert columns["dose"]["range"] == [0.0, 4.0]
    assert columns["batch"]["role"] == "ignored"
    assert columns["color"]["labels"] == ["blue", "red"]
    assert any("batch" in note for note in found["notes"])
    assert studio.sources(desk, {})["files"] == ["lab.csv"]


def test_experiments_are_kept_whatever_column_tells_of_them(desk, tmp_path):
    rows = [line + ("," if k else ",do") for k, line in enumerate(TABLE.split())]
    rows[-1] = rows[-1] + "dose"
    (tmp_path / "lab.csv").write_text("\n".join(rows))
    source = {"source": {"file": "lab.csv"}}
    found = studio.table(desk, source)
    assert found["interventions"] == 1
    roles = {column["name"]: column["role"] for column in found["columns"]}
    assert roles == dict(batch="ignored", dose="set", color="set", **{"yield": "set"})
    request = source | {"roles": roles | {"yield": "target"}, "maximize": True}
    finish(desk, studio.start(desk, request))
    flags = Campaign(tmp_path / "campaigns/lab-1").read().intervened
    assert flags.nonzero()[0].tolist() == [11]


def test_wrong_requests_are_refused_in_words(desk, tmp_path):
    (tmp_path / "words.csv").write_text("a,b\nx,y\n")
    source = {"source": EXAMPLE, "maximize": True}
    for call, request, words in (
        (studio.start, source | {"roles": {"A": "set"}}, "one column as the target"),
        (studio.start, source | {"roles": {"E": "target"}}, "can be set"),
        (studio.start, source | {"roles": {"E": "goal"}}, "not a role"),
        (studio.state, {"campaign": "../x"}, "among the campaigns"),
        (studio.state, {"campaign": "none"}, "among the campaigns"),
        (studio.table, {"source": {"file": "../x.csv"}}, "outside"),
        (studio.table, {"source": {"file": "words.csv"}}, "row"),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=words):
            call(desk, request)
    rows = {"x": [1.0, 2.0, 3.0, 5.0], "y": [2.0, 4.1, 5.9, 10.0]}
    Campaign.create(tmp_path / "campaigns/mine", rows, "y", True)
    with pytest.raises(ValueError, match="can be simulated"):
        studio.simulate(desk, {"campaign": "mine"})
