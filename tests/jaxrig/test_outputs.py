"""A file that cannot be written is refused before the work."""

from pathlib import Path

import pytest
import typer

from jaxrig.outputs import check_writable


def test_folders_are_made_and_wrong_places_refused(tmp_path):
    check_writable(None)
    check_writable(tmp_path / "a" / "b.json")
    assert (tmp_path / "a").is_dir()
    with pytest.raises(typer.BadParameter, match="is a folder"):
        check_writable(tmp_path)
    with pytest.raises(typer.BadParameter, match="cannot make"):
        check_writable(Path("/dev/null/x/y.json"))
