"""The page is one whole file: complete, inert, linked inside, always the same."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxrig.report import (
    Figure,
    Player,
    Report,
    Section,
    Table,
    Text,
    bar_chart,
    line_chart,
    png_from_array,
)

GRADIENT = (
    '<svg xmlns="http://www.w3.org/2000/svg"><linearGradient id="g"/>'
    '<rect fill="url(#g)"/></svg>'
)
HOSTILE = "</title></style></script><script>alert(1)</script><img src=x onerror=y>\"'"
WORDS = st.text(st.characters(exclude_categories=()), min_size=1).filter(str.strip)


def full_report(words: str = "words") -> Report:
    frames = [png_from_array(np.full((3, 3), shade, np.uint8)) for shade in (0, 255)]
    report = Report(words, words)
    report.add(Section(words, Text(words), Table([words], [[words]], words)))
    report.add(
        Section(
            words,
            Figure(line_chart({words: ([0, 1], [0, 1])}, words), words, words),
            Figure(bar_chart({words: 2.0}), words),
            Figure(GRADIENT),
            Figure(GRADIENT),
        )
    )
    report.add(
        Section(
            "players",
            Player(frames, [words, words], title=words, alt=words),
            Player([GRADIENT, GRADIENT]),
        )
    )
    return report


def outline(root):
    return [node.tag for node in root.all()]


def test_sections_parts_and_links_are_all_there(parse):
    root = parse(full_report().html())
    titles = [node.text for node in root.all("h2")]
    assert titles == ["words", "words", "players"]
    targets = [link.attributes["href"] for link in root.one("nav").all("a")]
    anchors = ["#" + (node.attributes["id"] or "") for node in root.all("section")]
    assert targets == anchors == ["#words", "#words-2", "#players"]
    assert root.one("head").one("title").text == root.one("h1").text == "words"
    assert len(root.all("table")) == 1
    assert len(root.all("figure")) == 6
    assert len(root.all("img")) == 8


def test_hostile_words_change_nothing_but_words(parse):
    plain, hostile = parse(full_report().html()), parse(full_report(HOSTILE).html())
    assert outline(hostile) == outline(plain)
    assert hostile.one("head").one("title").text == HOSTILE
    assert not hostile.having("onerror")


@settings(max_examples=30)
@given(WORDS)
def test_any_words_leave_one_script_and_one_style(words):
    page = full_report(words).html()
    page.encode("utf-8")
    assert page.count("<script") == page.count("</script") == 1
    assert page.count("<style") == page.count("</style") == 1
    assert full_report(words).html() == page
    assert "\x00" not in page


def test_nothing_is_fetched(parse):
    page = full_report().html()
    assert set(re.findall(r"https?:[^\"'<> %]*", page)) == {
        "http://www.w3.org/2000/svg"
    }
    root = parse(page)
    (policy,) = root.having("http-equiv", "Content-Security-Policy")
    assert "default-src 'none'; img-src data:;" in (policy.attributes["content"] or "")
    (icon,) = root.all("link")
    assert (icon.attributes["href"] or "").startswith("data:image/svg+xml,")
    assert not root.all("iframe", "base", "object", "form", "audio", "video")
    for node in root.having("src"):
        assert (node.attributes["src"] or "").startswith("data:image/")
    for node in root.all("a"):
        assert (node.attributes["href"] or "").startswith("#")
    assert not re.search(r"@import|url\((?!%23)", page)


def test_one_section_needs_no_links(parse):
    report = Report("a")
    assert not parse(report.html()).all("nav", "section")
    report.add(Section("b"))
    assert not parse(report.html()).all("nav")


@pytest.mark.parametrize(
    ("titles", "given", "anchors"),
    [
        (["A b, C!", "a-b-c"], None, ["a-b-c", "a-b-c-2"]),
        (["Été", "漢字", "3 runs"], None, ["ete", "section", "section-3-runs"]),
        (["a", "a-2", "a"], None, ["a", "a-2", "a-3"]),
        (["rates", "Other"], "rates", ["rates-2", "rates"]),
    ],
)
def test_anchors_come_from_titles_unless_given(parse, titles, given, anchors):
    report = Report("r")
    for index, title in enumerate(titles):
        report.add(Section(title, id=given if index else None))
    if given:
        with pytest.raises(ValueError, match=r"'rates'.*already"):
            report.add(Section("b", id=given))
    found = [node.attributes["id"] for node in parse(report.html()).all("section")]
    assert found == anchors


def test_titles_are_required_and_ids_are_words_joined_by_hyphens():
    for id in ("", "A", "a b", 'a"', "a--b", "-a", "1"):
        with pytest.raises(ValueError, match="id is"):
            Section("a", id=id)
    with pytest.raises(ValueError, match="title is ' '"):
        Report(" ")
    with pytest.raises(ValueError, match="title is ''"):
        Section("")


def test_wrong_kinds_are_named():
    with pytest.raises(TypeError, match="parts"):
        Section("a", "words")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="section"):
        Report("a").add(Text("words"))  # pyright: ignore[reportArgumentType]


def test_write_creates_folders_and_returns_the_path(tmp_path):
    report = full_report()
    path = tmp_path / "out" / "deep" / "report.html"
    assert report.write(str(path)) == path
    assert path.read_bytes() == report.html().encode()
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]
