"""The system has everything the front door can show."""

from typer.testing import CliRunner

from jaxarc.system import SYSTEM
from jaxrig.systems import System


def test_the_system_is_complete():
    assert isinstance(SYSTEM, System)
    assert SYSTEM.name == "arc"
    assert SYSTEM.demo is not None
    assert SYSTEM.app is not None
    assert all(b.name.startswith("arc.") for b in SYSTEM.benchmarks)


def test_its_help_names_every_command():
    assert SYSTEM.app is not None
    text = CliRunner().invoke(SYSTEM.app, ["--help"]).output
    commands = ("list", "show", "play", "rollout", "replay", "download", "bench")
    assert all(word in text for word in commands)
