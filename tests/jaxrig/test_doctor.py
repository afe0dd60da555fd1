"""Oracle: the page must agree with JAX, Python and the installation."""

import io
import platform
import tomllib
from pathlib import Path

import jax
from rich.console import Console

from jaxrig import doctor, machine
from jaxrig.doctor import compile_check, examine


def page():
    stream = io.StringIO()
    verdict = examine(Console(file=stream, width=120))
    return verdict, stream.getvalue()


def test_the_page_is_true_and_says_how_to_get_what_is_missing(monkeypatch):
    monkeypatch.setattr(
        doctor, "missing_modules", lambda extra: ["vtk"] if extra == "trace" else []
    )
    verdict, text = page()
    assert verdict
    assert jax.__version__ in text
    for device in jax.local_devices():
        assert f"{device.platform}:{device.id}" in text
    assert f"missing vtk: {machine.install_command('trace')}" in text
    assert "Compile check on cpu:0: right" in text


def test_a_device_that_computes_wrongly_is_found(monkeypatch):
    monkeypatch.setattr(doctor.jnp, "tanh", lambda x: x)
    assert not compile_check()[0]
    verdict, text = page()
    assert not verdict
    assert "are wrong" in text


def test_versions_are_those_installed():
    found = machine.package_versions()
    assert found["python"] == platform.python_version()
    assert found["jax"] == jax.__version__
    assert set(found) == {"python", *machine.CORE_PACKAGES}
    assert (
        machine.package_versions(["no-such-package"])["no-such-package"]
        == "not installed"
    )


def test_missing_modules_of_an_extra(monkeypatch):
    monkeypatch.setitem(machine.EXTRAS, "probe", ("json", "no_such_module"))
    assert machine.missing_modules("probe") == ["no_such_module"]


def test_extras_are_those_of_the_project():
    root = Path(__file__).parent.parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    declared = project["optional-dependencies"]
    own = {"cuda", "all", "dev", "docs"}  # no modules of ours to look for
    assert set(machine.EXTRAS) == set(declared) - own
    for extra, modules in machine.EXTRAS.items():
        assert len(modules) == len(declared[extra]), extra
