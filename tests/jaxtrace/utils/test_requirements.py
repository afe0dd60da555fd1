"""What is there is found, what is not is named with a remedy."""

import importlib.util

import pytest

from jaxtrace.utils.requirements import (
    check_requirements_for_workflow,
    check_system_requirements,
    suggest_installation_commands,
)


@pytest.fixture
def without_vtk(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "vtk" else real(name)
    )


def test_quiet_unless_asked(capsys):
    found = check_system_requirements(verbose=False)
    assert capsys.readouterr().out == ""
    assert found["jax"] is found["numpy"] is True
    assert all(type(there) is bool for there in found.values())
    assert check_system_requirements() == found
    assert "matplotlib" in capsys.readouterr().out


def test_what_is_missing_comes_with_its_command(without_vtk, capsys):
    assert check_system_requirements()["vtk"] is False
    (command,) = (c for c in suggest_installation_commands() if "trace" in c)
    assert command.startswith("pip install")
    assert command in capsys.readouterr().out
    assert check_requirements_for_workflow("advanced")["vtk"] is False
    assert "vtk" not in check_requirements_for_workflow("basic")


def test_workflows_grow():
    basic, advanced, full = (
        set(check_requirements_for_workflow(name))
        for name in ("basic", "advanced", "full")
    )
    assert basic < advanced < full
    with pytest.raises(ValueError, match="basic, advanced, full"):
        check_requirements_for_workflow("huge")
