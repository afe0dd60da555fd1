"""User text stays text."""

import unicodedata
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxrig.report.markup import escape, inline, paragraphs

ANY_CHARACTER = st.characters(exclude_categories=())


def naively_printable(character: str) -> bool:
    if character in "\t\n\r\x85":
        return True
    if character in "\ufffe\uffff":
        return False
    return unicodedata.category(character) not in ("Cc", "Cs")


@given(st.text(ANY_CHARACTER))
def test_escaped_text_is_the_same_text_for_an_xml_parser(text):
    root = ElementTree.fromstring(f'<a b="{escape(text)}">{escape(text)}</a>')
    shown = "".join(c if naively_printable(c) else "\ufffd" for c in text)
    assert (root.text or "") == shown.replace("\r\n", "\n").replace("\r", "\n")
    assert len(root) == 0
    assert set(root.attrib) == {"b"}


@given(st.text(ANY_CHARACTER))
def test_escaped_text_can_be_written_as_utf8(text):
    escape(text).encode("utf-8")


def test_code_is_escaped_too():
    assert inline("use `a<b` & `c`") == ("use <code>a&lt;b</code> &amp; <code>c</code>")


@pytest.mark.parametrize("text", ["a ` b", "``", "`a\nb`"])
def test_stray_backticks_stay(text):
    assert inline(text) == text


def test_paragraphs_split_at_blank_lines():
    text = "\none\nline\n \t\n\n\ntwo\r\n\r\nthree\n"
    assert paragraphs(text) == "<p>one\nline</p>\n<p>two</p>\n<p>three</p>"
