"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import jaxarc
import jaxrig

EXTRAS = {"jaxarc.adapters.gymnasium": "gymnasium"}  # imported with their module
MODULES = [
    module.name
    for package in (jaxrig, jaxarc)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.ispkg
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name])
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0
