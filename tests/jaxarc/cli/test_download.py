"""Fetching from a repository made here; the network is never used."""

import subprocess

import pytest
from typer.testing import CliRunner

from jaxarc.cli import download as module
from jaxarc.cli.app import app
from jaxarc.data.download import DatasetDownloader, Remote


@pytest.fixture
def run(monkeypatch, tmp_path):
    source = tmp_path / "source"
    (source / "data").mkdir(parents=True)
    (source / "data" / "a.json").write_text("{}")
    git = ["git", "-C", str(source), "-c", "user.name=x", "-c", "user.email=x"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "data"]):
        subprocess.run([*git, *words], check=True)
    url = source.as_uri()
    remotes = {name: Remote(url, name, "data") for name in ("miniarc", "conceptarc")}
    make = lambda folder, progress: DatasetDownloader(
        folder, remotes=remotes, progress=progress
    )
    monkeypatch.setattr(module, "DatasetDownloader", make)
    return lambda *words: CliRunner().invoke(app, ["download", *words])


def test_one_and_all(run, tmp_path):
    folder = tmp_path / "data"
    done = run("miniarc", "--output", str(folder))
    assert done.exit_code == 0
    assert "cloning" in done.output
    assert "use it with --path" in done.output
    assert (folder / "miniarc" / "data" / "a.json").exists()
    again = run("all", "--output", str(folder)).output
    assert "already in" in again
    assert (folder / "conceptarc").is_dir()
    assert again.count("cloning") == 1
    assert run("all", "-o", str(folder), "--force").output.count("cloning") == 2


def test_an_unknown_data_set_is_refused(run):
    assert run("nothing").exit_code == 2
