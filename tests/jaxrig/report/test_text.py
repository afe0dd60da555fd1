"""Numbers read back as the value they show; user text stays text."""

import math
import unicodedata
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxrig.report.text import (
    escape,
    format_number,
    inline,
    linear_ticks,
    paragraphs,
    tick_labels,
)

FINITE = st.floats(-1e300, 1e300)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (0.0, "0"),
        (1234567, "1,234,567"),
        (1234567.8, "1,234,568"),
        (12.5, "12.5"),
        (99.996, "100"),
        (-0.00123456, "-0.001235"),
        (1.23456e-7, "1.235e-7"),
        (2e15, "2e15"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (np.float32(0.25), "0.25"),
        (np.int64(-4000), "-4,000"),
    ],
)
def test_examples(value, shown):
    assert format_number(value) == shown


@given(FINITE)
def test_shown_number_is_within_half_a_unit_of_the_fourth_digit(value):
    shown = float(format_number(value).replace(",", ""))
    assert shown == pytest.approx(value, rel=5.0001e-4, abs=1e-307)


@given(FINITE, FINITE, st.integers(1, 12), st.booleans())
def test_linear_ticks_are_even_and_enclose_the_range(a, b, count, whole):
    low, high = min(a, b), max(a, b)
    ticks = linear_ticks(low, high, count, whole)
    slack = 1e-9 * max(abs(low), abs(high))
    assert ticks[0] <= low + slack
    assert ticks[-1] >= high - slack
    steps = [after - before for before, after in pairwise(ticks)]
    assert min(steps) > 0
    assert max(steps) == pytest.approx(min(steps), rel=1e-6)
    if whole:
        assert min(steps) >= 1
    assert 2 <= len(ticks) <= 2 * count + 4


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        (0.1, 0.3, (0.1, 0.15, 0.2, 0.25, 0.3)),
        (-7, 12, (-10.0, -5.0, 0.0, 5.0, 10.0, 15.0)),
    ],
)
def test_ticks_are_the_decimal_numbers_one_would_write(low, high, ticks):
    assert linear_ticks(low, high) == ticks


@given(FINITE, FINITE)
def test_labels_tell_ticks_apart_and_read_back(a, b):
    ticks = linear_ticks(min(a, b), max(a, b))
    labels = tick_labels(ticks)
    step = ticks[1] - ticks[0]
    assert len(set(labels)) == len(ticks)
    for tick, words in zip(ticks, labels, strict=True):
        assert abs(float(words.replace(",", "")) - tick) < step / 2


def test_labels_share_their_decimals():
    assert tick_labels((0.0, 0.5, 1.0)) == ("0.0", "0.5", "1.0")
    assert tick_labels((0.0, 5000.0, 10000.0)) == ("0", "5,000", "10,000")
    assert tick_labels((0.0, 2e-6, 4e-6)) == ("0", "2e-6", "4e-6")


ANY_CHARACTER = st.characters(exclude_categories=())


def naively_printable(character: str) -> bool:
    if character in "\t\n\r\x85":
        return True
    if character in "\ufffe\uffff":
        return False
    return unicodedata.category(character) not in ("Cc", "Cs")


@given(st.text(ANY_CHARACTER))
def test_escaped_text_is_the_same_text_for_an_xml_parser(text):
    escape(text).encode("utf-8")
    root = ElementTree.fromstring(f'<a b="{escape(text)}">{escape(text)}</a>')
    shown = "".join(c if naively_printable(c) else "\ufffd" for c in text)
    assert (root.text or "") == shown.replace("\r\n", "\n").replace("\r", "\n")
    assert len(root) == 0
    assert set(root.attrib) == {"b"}


def test_code_is_escaped_and_stray_backticks_stay():
    assert inline("use `a<b` & `c`") == "use <code>a&lt;b</code> &amp; <code>c</code>"
    for text in ("a ` b", "``", "`a\nb`"):
        assert inline(text) == text


def test_paragraphs_split_at_blank_lines():
    text = "\none\nline\n \t\n\n\ntwo\r\n\r\nthree\n"
    assert paragraphs(text) == "<p>one\nline</p>\n<p>two</p>\n<p>three</p>"
