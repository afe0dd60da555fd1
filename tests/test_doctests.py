"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import jaxrig

MODULES = [
    m.name for m in pkgutil.walk_packages(jaxrig.__path__, "jaxrig.") if not m.ispkg
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0
