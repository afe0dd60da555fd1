"""A missing package is named, with what installs it."""

import sys

import pytest

from jaxtrace.visualization.packages import load_package


def test_a_package_that_is_there_is_returned():
    assert load_package("os.path", "Tests").join("a", "b") == "a/b"


@pytest.mark.parametrize("command", ["", "pip install absent-thing"])
def test_a_missing_package_is_named_with_its_remedy(monkeypatch, command):
    monkeypatch.setitem(sys.modules, "absent", None)
    with pytest.raises(RuntimeError, match=r"Plots need absent.*pip install") as caught:
        load_package("absent", "Plots", command)
    assert command in str(caught.value)
