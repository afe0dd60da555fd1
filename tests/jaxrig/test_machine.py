"""Oracle: Python's own answers."""

import os
import platform

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


def test_machine_is_described():
    found = describe_machine()
    assert found["cores"] == len(os.sched_getaffinity(0))
    assert len(found["devices"]) == len(jax.devices())
    assert found["processor"]
