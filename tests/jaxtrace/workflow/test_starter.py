"""The starting case explains every key, and is the default case."""

import tomllib

import pytest

from jaxrig.settings import readers
from jaxtrace.workflow.case import TABLES, read_case
from jaxtrace.workflow.starter import starter
from jaxtrace.workflow.tables import Boundary, Flow

BOTH = starter() + starter("x")


def test_both_are_cases():
    flow = read_case(tomllib.loads(starter()))
    assert flow.flow == Flow.from_mapping({"name": "double_gyre", "amplitude": 0.1})
    data = read_case(tomllib.loads(starter('some "odd" \\ *.vtu')))
    assert data.data is not None
    assert data.data.pattern == 'some "odd" \\ *.vtu'


@pytest.mark.parametrize("name", TABLES)
def test_every_key_is_there(name):
    kind = TABLES[name]
    keys = [k for k in readers(kind) if k not in ("options", "parameters")]
    keys += [k for k in Boundary().arguments() if name == "boundary"]
    left_out = ("concentrations", "bounds", "seed") if name == "boundary" else ()
    assert f"[{name}]" in BOTH
    assert all(f"{key} = " in BOTH for key in keys if key not in left_out)


@pytest.mark.parametrize("name", TABLES)
def test_the_values_are_the_defaults(name):
    if name in ("data", "flow", "boundary", "time"):
        return
    written = tomllib.loads(starter("x"))[name]
    assert TABLES[name].from_mapping(written) == TABLES[name]()
