"""Oracle: Python's own answers."""

import os
import platform
import tomllib
from pathlib import Path

import jax

from jaxrig.machine import (
    CORE_PACKAGES,
    EXTRAS,
    describe_machine,
    missing_modules,
    package_versions,
)


def test_versions_are_those_installed():
    found = package_versions()
    assert found["python"] == platform.python_version()
    assert found["jax"] == jax.__version__
    assert set(found) == {"python", *CORE_PACKAGES}
    assert package_versions(["no-such-package"])["no-such-package"] == "not installed"


def test_missing_modules_of_an_extra(monkeypatch):
    monkeypatch.setitem(EXTRAS, "probe", ("json", "no_such_module"))
    assert missing_modules("probe") == ["no_such_module"]


def test_extras_are_those_of_the_project():
    root = Path(__file__).parent.parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    declared = project["optional-dependencies"]
    own = {"cuda", "all", "dev", "docs"}  # no modules of ours to look for
    assert set(EXTRAS) == set(declared) - own
    for extra, modules in EXTRAS.items():
        assert len(modules) == len(declared[extra]), extra


def test_machine_is_described():
    found = describe_machine()
    assert found["cores"] == len(os.sched_getaffinity(0))
    assert len(found["devices"]) == len(jax.devices())
    assert found["processor"]
