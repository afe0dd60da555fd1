"""A missing package is named, with what installs it."""

import sys

import pytest

from jaxrig.machine import install_command
from jaxtrace.visualization.packages import load_package


def test_a_package_that_is_there_is_returned():
    assert load_package("os.path", "Tests").join("a", "b") == "a/b"


def test_a_missing_package_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "absent", None)
    with pytest.raises(RuntimeError, match="Plots need absent, ") as caught:
        load_package("absent.part", "Plots")
    assert install_command("viz") in str(caught.value)
