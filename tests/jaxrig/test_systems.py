"""Oracle: the entry points of the installed package, and a planted wrong one."""

import pytest

from jaxrig import systems
from jaxrig.systems import System, installed_systems


class Entry:
    value = "somewhere:THING"

    def __init__(self, thing):
        self._thing = thing

    def load(self):
        return self._thing


def test_the_core_is_installed_and_first(monkeypatch):
    assert installed_systems()[0].name == "core"
    order = [System("trace", ""), System("core", ""), System("arc", "")]
    monkeypatch.setattr(systems, "entry_points", lambda group: map(Entry, order))
    assert [s.name for s in installed_systems()] == ["core", "arc", "trace"]


def test_an_entry_point_to_something_else_is_refused(monkeypatch):
    monkeypatch.setattr(systems, "entry_points", lambda group: [Entry(object())])
    with pytest.raises(TypeError, match="somewhere:THING is no jaxrig System"):
        installed_systems()
