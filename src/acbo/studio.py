"""The cause room of the studio: check a table, see causes, ask and tell experiments.

What a person does here is a campaign in the studio's folder, which `jaxrig causal ask`
and `tell` go on with.
"""

import io
import json
import re
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from acbo.campaign import LOCK, NUMBER, PROBLEM, Campaign, show_row
from acbo.named.reading import read_table
from acbo.named.samples import (
    create_perfect_intervention,
    sample_from_scm,
    sample_with_intervention,
)
from acbo.named.tables import read_frame
from acbo.pictures.graph import lay_out
from acbo.policy.problem import parse_edges
from acbo.policy.suggest import Suggestion, suggest
from acbo.problems import library
from acbo.types import import_extra, lower_is_better
from jaxrig.atomic import locked, write_file
from jaxrig.studio.jobs import Job
from jaxrig.studio.rooms import Desk, Download, Room, required

CAMPAIGNS = "campaigns"
SUFFIXES = (".csv", ".tsv", ".txt")
MOST_ROWS, MOST_COLUMNS = 20_000, 60
MOST_CURVES = 6
EXAMPLE_ROWS = 25
EXAMPLES = {
    "epidemic_static": "An epidemic: lower its cost",
    "reef_linear": "A coral reef: raise calcification",
    "butterfly_5var": "Five variables: lower E",
}
# Both keys of the problem, over as many lines as someone has given them by hand.
_WORD = r"""[^][\"'#]|#[^\n]*|"(?:[^"\\]|\\.)*"|'[^']*'"""
STATED = re.compile(
    rf"^(?:know|forbid)\s*=\s*\[(?:{_WORD}|\[(?:{_WORD})*\])*\][^\n]*\n?", re.MULTILINE
)
ROLES = ("target", "set", "measured", "ignored")


def sources(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """List the examples, the tables of the folder, and the campaigns."""
    listed = desk.folder.files(SUFFIXES)
    own = (f"{CAMPAIGNS}/", "runs/")
    return {
        "examples": [{"example": n, "title": title} for n, title in EXAMPLES.items()],
        "files": [f["name"] for f in listed if not f["name"].startswith(own)],
        "campaigns": campaigns(desk, {}),
        "suffixes": list(SUFFIXES),
    }


def campaigns(desk: Desk, request: Mapping[str, Any]) -> list[str]:
    """List the campaigns, the newest first."""
    found = [path.parent for path in desk.kept(CAMPAIGNS).glob(f"*/{PROBLEM}")]
    return [p.name for p in sorted(found, key=lambda path: -path.stat().st_mtime)]


def _frame(desk: Desk, source: Mapping[str, Any]) -> Any:
    """Return the table of an example or a file as it comes."""
    if "example" in source:
        scm = library.get(required(source, "example", str)).scm
        drawn = sample_from_scm(scm, EXAMPLE_ROWS)
        pandas = import_extra("pandas", "tables")
        return pandas.DataFrame([dict(row.values) for row in drawn])[list(scm.names)]
    frame = read_frame(desk.folder.file(required(source, "file", str)))
    if len(frame) > MOST_ROWS or len(frame.columns) > MOST_COLUMNS:
        raise ValueError(
            f"the table has {len(frame):,} rows and {len(frame.columns)} columns: the "
            f"studio takes {MOST_ROWS:,} and {MOST_COLUMNS}, `jaxrig causal` takes more"
        )
    return frame


def check_upload(desk: Desk, path: Path) -> None:
    """Read a table as the command line would."""
    read_table(_frame(desk, {"file": desk.folder.name(path)}))


def table(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what each column of a table holds, and what it can be used for."""
    source = required(request, "source", dict)
    frame = _frame(desk, source)
    read = read_table(frame)
    columns = []
    for name in frame.columns:
        if name in read.told_by:  # no variable, and not to be ignored
            continue
        used = str(name) in read.names
        numbers = read.values[:, read.names.index(str(name))] if used else np.zeros(0)
        columns.append(
            {
                "name": str(name),
                "kind": "number" if used else "not a number",
                "range": [float(numbers.min()), float(numbers.max())] if used else None,
                "missing": int(frame[name].isna().sum()),
                "role": "set" if used else "ignored",
                "labels": list(read.labels.get(str(name), ())),
            }
        )
    found: dict[str, Any] = {"columns": columns, "rows": len(frame)}
    found |= {"notes": list(read.notes), "target": None, "maximize": None}
    found["interventions"] = int(read.intervened.any(axis=1).sum())
    if "example" in source:
        problem = library.get(source["example"])
        found["target"] = problem.target
        found["maximize"] = lower_is_better(problem.direction) < 0
        for column in columns:
            if column["name"] not in (*problem.ranges, problem.target):
                column["role"] = "measured"
    return found


def start(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Begin a campaign with the roles of the columns; returns the job that asks."""
    source = required(request, "source", dict)
    roles = required(request, "roles", dict)
    if wrong := set(roles.values()) - set(ROLES):
        raise ValueError(f"{wrong.pop()!r} is not a role: {', '.join(ROLES)}")
    named = lambda role: [name for name, given in roles.items() if given == role]
    if len(named("target")) != 1:
        raise ValueError("choose one column as the target")
    if not named("set"):
        raise ValueError("choose at least one column that can be set")
    ranges: Mapping[str, Any] = {}
    if "example" in source:
        ranges = library.get(source["example"]).ranges
    frame = _frame(desk, source)
    given = str(source.get("example") or Path(source["file"]).stem)
    with desk.lock:  # two tabs may start at once
        name, folder = desk.fresh(CAMPAIGNS, given)
        campaign = Campaign.create(
            folder,
            frame,
            named("target")[0],
            required(request, "maximize", bool),
            settable=named("set"),
            ignore=named("ignored"),
            ranges={key: ends for key, ends in ranges.items() if key in named("set")},
        )
    if "example" in source:
        write_file(campaign.folder / "example.txt", source["example"])
    return _thinking(desk, name)


def _thinking(desk: Desk, name: str, again: bool = False) -> dict[str, Any]:
    """Ask in a job: the first question compiles, many variables take their time."""

    def work(job: Job) -> str:
        job.describe({"campaign": name})
        job.show("reading the table")
        job.show("weighing causes")
        with desk.lock:
            _campaign(desk, {"campaign": name}).ask(again)
            _suggestion(desk, name)
        return name

    return desk.start(f"suggestion for {name}", work)


def _campaign(desk: Desk, request: Mapping[str, Any]) -> Campaign:
    return Campaign(desk.result(CAMPAIGNS, required(request, "campaign", str)))


def _suggestion(desk: Desk, name: str) -> Suggestion:
    """Return what the rows suggest now, thinking again only if they have changed."""
    campaign = _campaign(desk, {"campaign": name})
    files = sorted(campaign.folder.glob("*.*"))
    stamp = [(p.name, p.stat().st_mtime_ns) for p in files if p.suffix != ".jsonl"]
    held = desk.held.setdefault("suggestions", {})
    if held.get(name, (None,))[0] != stamp:
        held[name] = (stamp, campaign.suggest())
    return held[name][1]


def _graph(found: Suggestion) -> dict[str, Any]:
    """Return the variables with their places in a picture, and the edges."""
    probs = np.array(found.edge_probs, np.float64)
    np.fill_diagonal(probs, 0.0)
    layout = lay_out(probs)
    return {
        "names": list(found.seen.names),
        "target": found.seen.target,
        "probs": np.round(probs, 4).tolist(),
        "columns": layout.column.tolist(),
        "heights": layout.height.tolist(),
    }


def _curves(found: Suggestion) -> list[dict[str, Any]]:
    """Return what to expect of each variable over its range, the likeliest causes
    first, with the outcomes of rows in which it was set.
    """
    seen = found.seen
    ranked = sorted(found.candidates, key=lambda each: -each.ancestor_probability)
    drawn = []
    for name in [each.variable for each in ranked][:MOST_CURVES]:
        made = seen.intervened[:, seen.names.index(name)]
        tried = seen.values[made][:, [seen.names.index(name), seen.column]]
        curve = found.curves[name]._asdict()
        parts = {key: part.tolist() for key, part in curve.items()}
        drawn.append({"name": name, **parts, "tried": tried.tolist()})
    return drawn


def preview(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the graph of an example before anyone has started a campaign."""
    with desk.lock:
        if "preview" not in desk.held:
            name = next(iter(EXAMPLES))
            problem, frame = library.get(name), _frame(desk, {"example": name})
            raises = lower_is_better(problem.direction) < 0
            desk.held["preview"] = _graph(suggest(frame, problem.target, raises))
        return desk.held["preview"]


def state(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything the page shows of a campaign."""
    with desk.lock:
        campaign = _campaign(desk, request)
        found = _suggestion(desk, request["campaign"])
        asked, trials = campaign.asked(), campaign.open_trials()
    problem, seen = campaign.problem, found.seen
    return _graph(found) | {
        "campaign": request["campaign"],
        "example": (campaign.folder / "example.txt").is_file(),
        "maximize": lower_is_better(seen.direction) < 0,
        "rows": len(seen.values),
        "know": [list(edge) for edge in problem.know],
        "forbid": [list(edge) for edge in problem.forbid],
        "worthwhile": found.worthwhile,
        "sentence": found.sentence(found.experiments[0]),
        "reasons": list(found.reasons),
        "notes": list(found.notes),
        "labels": {name: list(both) for name, both in found.labels.items()},
        "candidates": [asdict(each) for each in found.candidates],
        "curves": _curves(found),
        "trial": asdict(trials[0]) if trials else None,
        "beliefs": [{"rows": a.rows, "causes": a.cause_probs} for a in asked],
        "outcomes": [float(v) for v in seen.values[:, seen.names.index(seen.target)]],
        "told": [show_row(row) for row in campaign.told()],
    }


def tell(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Add the outcome of the open experiment, then ask again; returns the job."""
    values = required(request, "values", dict)
    with desk.lock, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", UserWarning)
        campaign, number = _campaign(desk, request), request.get("number")
        if number in {row.get(NUMBER) for row in campaign.told()} - {None}:
            raise ValueError(
                f"experiment {number} has its outcome already, perhaps from another "
                "tab: reload the page"
            )
        campaign.tell(values, request.get("settings"), number)
    job = _thinking(desk, request["campaign"])
    return job | {"warnings": [str(each.message) for each in heard]}


def undo(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Take back the row told last; returns the job that asks again."""
    with desk.lock:
        _campaign(desk, request).undo()
    return _thinking(desk, request["campaign"], again=True)


def edges(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """State that an edge is known or forbidden, or take that back (a kind of "");
    returns the job that asks again.
    """
    campaign = _campaign(desk, request)
    names, kind = campaign.read().names, required(request, "kind", str)
    (edge,) = parse_edges([required(request, "edge", list)])
    for name in edge:
        if name not in names:
            raise ValueError(f"{name!r} is not a variable of this campaign")
    if edge[0] == edge[1]:
        raise ValueError("a variable does not cause itself: draw to another one")
    if kind not in ("know", "forbid", ""):
        raise ValueError(f"{kind!r} is not a kind of edge: know or forbid")
    with desk.lock, locked(campaign.folder / LOCK):
        lines = []
        for key in ("know", "forbid"):  # as they are now: another tab may have drawn
            pairs = [pair for pair in getattr(campaign.problem, key) if pair != edge]
            pairs += [edge] if key == kind else []
            lines.append(f"{key} = {json.dumps(pairs, ensure_ascii=False)}")
        path = campaign.folder / PROBLEM
        kept = STATED.sub("", path.read_text(encoding="utf-8"))
        # Before everything else: keys after a table would belong to the table.
        write_file(path, "\n".join([*lines, kept]))
    return _thinking(desk, request["campaign"], again=True)


def simulate(desk: Desk, request: Mapping[str, Any]) -> dict[str, float]:
    """Make the open experiment of an example in the model that it comes from."""
    campaign = _campaign(desk, request)
    path, trials = campaign.folder / "example.txt", campaign.open_trials()
    if not path.is_file() or not trials:
        raise ValueError("only open experiments of the examples can be simulated")
    scm = library.get(path.read_text()).scm
    settings = trials[0].settings
    spec = create_perfect_intervention(set(settings), settings)
    (drawn,) = sample_with_intervention(scm, spec, 1, 1000 + trials[0].number)
    return {name: float(drawn.values[name]) for name in scm.names}


def report(desk: Desk, request: Mapping[str, Any]) -> Download:
    """Return a page of how the campaign stands, to be sent to others."""
    with desk.lock:
        path = _campaign(desk, request).report()
    return Download(f"{request['campaign']}.html", path.read_bytes())


def download(desk: Desk, request: Mapping[str, Any]) -> Download:
    """Return the campaign's folder as an archive."""
    campaign, file = _campaign(desk, request), io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(campaign.folder.iterdir()):
            if path.is_file() and not (path.is_symlink() or path.name[0] == "."):
                archive.write(path, f"{request['campaign']}/{path.name}")
    return Download(f"{request['campaign']}.zip", file.getvalue())


ROOM = Room(
    {
        function.__name__: function
        for function in (
            *(sources, campaigns, table, start, state, tell, undo, edges),
            *(simulate, report, download, preview),
        )
    },
    SUFFIXES,
    check_upload,
)
