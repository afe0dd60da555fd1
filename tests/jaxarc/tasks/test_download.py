"""Downloads from a repository on this machine; nothing here reaches a network."""

import subprocess

import pytest

from jaxarc.tasks import download
from jaxarc.tasks.download import (
    REMOTES,
    DatasetDownloader,
    DatasetError,
    Remote,
    remotes_from,
)


def git(*arguments):
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def remotes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("remotes")
    work, bare = folder / "work", folder / "bare.git"
    (work / "data" / "training").mkdir(parents=True)
    (work / "data" / "training" / "a.json").write_text("{}")
    git("init", "-q", str(work))
    git("-C", str(work), "add", ".")
    git("-C", str(work), "commit", "-q", "-m", "first")
    git("-C", str(work), "commit", "-q", "-m", "second", "--allow-empty")
    git("clone", "-q", "--bare", str(work), str(bare))
    sound = Remote(bare.as_uri(), "Sound", "data/training")
    return {
        "arc-agi-1": sound,
        "wrong": Remote(bare.as_uri(), "Wrong", "corpus"),
        "missing": Remote((folder / "none.git").as_uri(), "Missing", "data"),
    }


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_clone_is_shallow_and_whole(tmp_path, remotes):
    lines = []
    out = tmp_path / "out"
    downloader = DatasetDownloader(out, remotes=remotes, progress=lines.append)
    folder = downloader.download("arc-agi-1")
    assert folder == out / "Sound"
    assert (folder / "data" / "training" / "a.json").read_text() == "{}"
    assert (folder / ".git" / "shallow").exists()
    assert listing(out) == ["Sound"]
    assert lines[0].startswith("arc-agi-1: cloning file://")
    assert lines[-1] == f"arc-agi-1: in {folder}"


def test_what_is_there_is_replaced_only_with_force(tmp_path, remotes):
    out = tmp_path / "out"
    downloader = DatasetDownloader(out, remotes=remotes)
    folder = downloader.download("arc-agi-1")
    mine = folder / "mine.txt"
    mine.write_text("precious")
    assert downloader.download("arc-agi-1") == folder
    assert mine.read_text() == "precious"
    downloader.download("arc-agi-1", force=True)
    assert not mine.exists()
    assert listing(out) == ["Sound"]


@pytest.mark.parametrize(
    ("name", "seconds", "message"),
    [
        ("missing", 60.0, "git could not clone"),
        ("wrong", 60.0, "has no folder corpus"),
        ("arc-agi-1", 0.0, "took over 0 s: try again"),
    ],
)
def test_a_failure_leaves_nothing_behind(tmp_path, remotes, name, seconds, message):
    out = tmp_path / "out"
    with pytest.raises(DatasetError, match=f"^{name}: .*{message}"):
        DatasetDownloader(out, remotes=remotes, timeout=seconds).download(name)
    assert listing(out) == []


def test_a_failure_with_force_keeps_what_was_there(tmp_path, remotes):
    kept = tmp_path / "out" / "Missing" / "mine.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("precious")
    downloader = DatasetDownloader(tmp_path / "out", remotes=remotes)
    with pytest.raises(DatasetError):
        downloader.download("missing", force=True)
    assert kept.read_text() == "precious"
    with pytest.raises(DatasetError, match="it is not the data set"):
        downloader.download("missing")


def test_without_git(tmp_path, remotes, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DatasetError, match="git is not installed"):
        DatasetDownloader(tmp_path / "out", remotes=remotes).download("arc-agi-1")


def test_a_swap_that_fails_is_undone(tmp_path, monkeypatch):
    fresh, target = tmp_path / "fresh", tmp_path / "target"
    fresh.mkdir()
    target.mkdir()
    (target / "mine.txt").write_text("precious")
    rename = download.os.rename

    def refuse(source, goal):
        if source == fresh:
            raise OSError("disk error")
        rename(source, goal)

    monkeypatch.setattr(download.os, "rename", refuse)
    with pytest.raises(OSError, match="disk error"):
        download._take_place(fresh, target)
    assert (target / "mine.txt").read_text() == "precious"


def test_everything_is_every_remote(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        DatasetDownloader,
        "download",
        lambda self, name, force=False: asked.append(name) or tmp_path,
    )
    assert len(DatasetDownloader(tmp_path).download_all()) == len(REMOTES)
    assert asked == ["arc-agi-1", "arc-agi-2", "conceptarc", "miniarc"]


def test_unknown_names_list_the_known(tmp_path):
    with pytest.raises(ValueError, match="'arc-agi-9' is not one of: arc-agi-1"):
        DatasetDownloader(tmp_path).download("arc-agi-9")


def test_another_repository_takes_the_place_of_the_usual_one():
    assert remotes_from("miniarc") == REMOTES
    found = remotes_from("miniarc", "me/mine")
    assert found["miniarc"].url == "https://github.com/me/mine.git"
    assert found["miniarc"].holds == REMOTES["miniarc"].holds
    assert found["conceptarc"] == REMOTES["conceptarc"]
    address = "git@example.org:me/mine"
    assert remotes_from("miniarc", address)["miniarc"].url == address
