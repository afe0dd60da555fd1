"""`new` writes a case that can be read, and never over another."""

import pytest
from typer.testing import CliRunner

from jaxtrace.cli.app import app
from jaxtrace.workflow.case import load_case


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, ["new", *words])


def test_a_flow_and_files(call, tmp_path):
    done = call("a.toml")
    assert "next: jaxrig trace run a.toml" in done.output
    assert load_case("a.toml").flow is not None
    call("b.toml", "--data", "flow/*.vtu")
    data = load_case("b.toml").data
    assert data is not None
    assert data.pattern == str(tmp_path / "flow/*.vtu")


def test_nothing_is_overwritten(call, tmp_path):
    call("a.toml")
    (tmp_path / "a.toml").write_text("mine")
    done = call("a.toml")
    assert done.exit_code == 2
    assert "exists" in done.output
    assert (tmp_path / "a.toml").read_text() == "mine"
