"""Tables keep names as they are, JSON is JSON, pictures are files."""

import json

from rich.console import Console

from acbo.cli.common import make_table, percent, show_json, signed, write_pictures


def test_brackets_in_names_are_no_markup():
    console = Console(record=True, width=60)
    console.print(make_table(("name", "value"), [("a[red]b", "[1]")], title="T"))
    text = console.export_text()
    assert "a[red]b" in text
    assert "[1]" in text


def test_json_is_whole_however_narrow_the_console():
    console = Console(record=True, width=20)
    content = {"a long name of something": [1.5, None], "[b]": "ü"}
    show_json(console, content)
    assert json.loads(console.export_text()) == content


def test_pictures_by_name(tmp_path):
    console = Console(record=True, width=200)
    write_pictures(console, tmp_path / "deep", {"a": "<svg/>"})
    assert (tmp_path / "deep" / "a.svg").read_text() == "<svg/>"
    assert "a.svg" in console.export_text()


def test_numbers_for_people():
    assert (signed(-0.123456), percent(0.256)) == ("-0.1235", "26%")
