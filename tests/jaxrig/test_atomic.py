import os
import subprocess
import sys

import pytest

from jaxrig.atomic import atomic_write, remove_leftovers, remove_path


def write(path, data):
    with atomic_write(path) as file:
        file.write(data)


def test_writes_and_replaces(tmp_path):
    path = tmp_path / "a.bin"
    write(path, b"one")
    with atomic_write(str(path)) as file:
        file.write(b"two")
        file.flush()
        assert path.read_bytes() == b"one"  # the new one appears only at the end
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_leaves_the_previous_file_and_no_temporary(tmp_path, error):
    path = tmp_path / "a.bin"
    write(path, b"one")

    def fail():
        with atomic_write(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_bytes_reach_the_disk_before_the_name_does(tmp_path, monkeypatch):
    calls = []

    def record(name):
        original = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a: (calls.append(name), original(*a))[1])

    record("fsync")
    record("replace")
    write(tmp_path / "a.bin", b"one")
    assert calls == ["fsync", "replace", "fsync"]


@pytest.mark.parametrize("name", ["x" * 255, "\N{GRINNING FACE}" * 63, "a b\nc"])
def test_any_name_the_file_system_takes_can_be_written(tmp_path, name):
    write(tmp_path / name, b"")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_permissions_follow_the_umask(tmp_path):
    previous = os.umask(0o027)
    try:
        write(tmp_path / "a.bin", b"")
    finally:
        os.umask(previous)
    assert (tmp_path / "a.bin").stat().st_mode & 0o777 == 0o640


def test_leftovers_of_dead_writers_go_those_of_live_ones_stay(tmp_path):
    script = (
        "import os, sys; from jaxrig.atomic import atomic_write\n"
        "with atomic_write(sys.argv[1]) as file:\n"
        "    file.write(b'half'); file.flush(); os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "dead.bin"])
    assert done.returncode == 9
    [dead] = tmp_path.iterdir()
    unrelated = tmp_path / "notes.writing"
    unrelated.touch()
    with atomic_write(tmp_path / "alive.bin") as file:
        file.write(b"x")
        assert remove_leftovers(tmp_path) == [dead]
    assert {path.name for path in tmp_path.iterdir()} == {"alive.bin", "notes.writing"}


def test_files_and_folders_are_removed_whatever_they_hold(tmp_path):
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    write(tmp_path / "folder" / "a.bin", b"x")
    write(tmp_path / "b.bin", b"x")
    for name in ("folder", "b.bin", "absent"):
        remove_path(tmp_path / name)
    assert not list(tmp_path.iterdir())
