"""Linear models as JSON files: our own form, and pgmpy's linear Gaussian networks."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acbo.named.digraph import check_known, parents_of
from acbo.named.frozen_map import as_float
from acbo.named.linear import create_linear_scm, linear_form
from acbo.named.model import NamedSCM, Ranges
from jaxrig.atomic import atomic_write

FORMAT = "acbo linear model"
INTERCEPT = "(Intercept)"  # pgmpy's name for the constant of a regression

Location = str | os.PathLike[str]


def scm_to_document(scm: NamedSCM) -> dict[str, Any]:
    """A linear model as JSON data: variables in order, edges, target and ranges."""
    form = linear_form(scm)
    place = {name: i for i, name in enumerate(form.names)}
    return {
        "format": FORMAT,
        "variables": [
            {
                "name": name,
                "intercept": float(form.intercept[i]),
                "noise_scale": float(form.noise_scale[i]),
                "hidden": name in scm.hidden,
            }
            for name, i in place.items()
        ],
        "edges": [
            {
                "cause": cause,
                "effect": effect,
                "coefficient": float(form.weight[place[cause], place[effect]]),
            }
            for cause, effect in sorted(scm.edges)
        ],
        "target": scm.target_name,
        "ranges": {
            name: list(bounds)
            for name, bounds in scm.ranges.items()
            if math.isfinite(bounds[0]) and math.isfinite(bounds[1])
        },
    }


def scm_from_document(document: Any) -> NamedSCM:
    """The model of such data; ValueError naming the entry that is missing or wrong.

    No ranges at all mean that every variable but the target may be set to any value.
    """
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise ValueError(f'this is no model of ours: "format" must be {FORMAT!r}')
    rows = [_take(row, "name", "variables") for row in document.get("variables", ())]
    numbers = {row["name"]: row for row in rows}
    edges = {}
    for edge in document.get("edges", ()):
        for key in ("cause", "effect", "coefficient"):
            _take(edge, key, "edges")
        edges[edge["cause"], edge["effect"]] = edge["coefficient"]
    return create_linear_scm(
        tuple(row["name"] for row in rows),
        edges,
        document.get("target"),
        document.get("ranges") or None,
        {name: row.get("intercept", 0.0) for name, row in numbers.items()},
        {name: row.get("noise_scale", 1.0) for name, row in numbers.items()},
        tuple(name for name, row in numbers.items() if row.get("hidden", False)),
    )


def write_json(path: Location, scm: NamedSCM) -> None:
    """A linear model as a file that `read_json` reads back equal."""
    text = json.dumps(scm_to_document(scm), indent=2, allow_nan=False)
    with atomic_write(path) as file:
        file.write(text.encode())


def read_json(path: Location) -> NamedSCM:
    """The linear model of a file written by `write_json`."""
    return _naming(path, lambda data: scm_from_document(data))


def read_pgmpy_json(
    path: Location, target: str | None = None, ranges: Ranges | None = None
) -> NamedSCM:
    """A linear Gaussian network in the JSON form that pgmpy saves.

    Accepted is an object with `nodes` (names), `arcs` (pairs cause, effect) and `cpds`:
    for each node `coefficients` ("(Intercept)" and each parent, as a number or a list
    of one), `variance` (likewise) and `parents` (optional; must agree with the arcs).
    Anything else is refused.
    """
    return _naming(path, lambda data: _from_pgmpy(data, target, ranges))


def _from_pgmpy(data: Any, target: str | None, ranges: Ranges | None) -> NamedSCM:
    for key in ("nodes", "arcs", "cpds"):
        _take(data, key, "a pgmpy network")
    nodes = tuple(data["nodes"])
    arcs = frozenset((cause, effect) for cause, effect in data["arcs"])
    weights, bases, scales = {}, {}, {}
    for name in nodes:
        cpd = _take(data["cpds"], name, "cpds")[name]
        given = _take(cpd, "coefficients", f"cpds[{name!r}]")["coefficients"]
        variance = _take(cpd, "variance", f"cpds[{name!r}]")["variance"]
        causes = parents_of(name, arcs)
        if set(cpd.get("parents", causes)) != set(causes):
            raise ValueError(
                f"cpds[{name!r}] has parents {cpd['parents']} and the arcs give it "
                f"{list(causes)}: make them the same"
            )
        for cause in set(given) - {INTERCEPT}:
            check_known(cause, causes, f"cpds[{name!r}]: parent")
        for cause in causes:
            found = _take(given, cause, f"coefficients of {name!r}")[cause]
            weights[cause, name] = _one(found, f"coefficient {cause} -> {name}")
        bases[name] = _one(given.get(INTERCEPT, 0.0), f"intercept of {name!r}")
        scales[name] = _root(_one(variance, f"variance of {name!r}"), name)
    return create_linear_scm(nodes, weights, target, ranges, bases, scales)


def _one(value: Any, what: str) -> float:
    if isinstance(value, list):
        if len(value) != 1:
            raise ValueError(f"{what} has {len(value)} numbers: give one")
        value = value[0]
    return as_float(value, what)


def _root(variance: float, name: str) -> float:
    if variance < 0:
        raise ValueError(f"variance of {name!r} is {variance}: give 0 or more")
    return math.sqrt(variance)


def _take(entry: Any, key: str, where: str) -> Any:
    if not isinstance(entry, Mapping) or key not in entry:
        raise ValueError(f"{where}: an entry has no {key!r}")
    return entry


def _naming(path: Location, build: Any) -> NamedSCM:
    try:
        return build(json.loads(Path(path).read_text()))
    except ValueError as error:  # what is wrong, and in which file
        raise ValueError(f"{os.fspath(path)}: {error}") from error
