import math

import pytest

from jaxarc.config.fields import (
    LARGEST_WHOLE,
    flag,
    items,
    maybe,
    number,
    one_of,
    text,
    whole,
)


@pytest.mark.parametrize(
    ("rule", "legal", "illegal"),
    [
        (flag(), [True, False], [0, 1, None, "true"]),
        (
            whole(1, 5),
            [1, 5],
            [0, 6, True, 2.0, "2", None, math.nan],
        ),
        (whole(), [0, LARGEST_WHOLE], [LARGEST_WHOLE + 1]),
        (
            number(-1, 2),
            [-1, 2, 0.5, 0],
            [-1.01, 2.01, True, "1", None, math.nan, math.inf],
        ),
        (number(), [-1e300, 10**400], [math.nan, math.inf, -math.inf]),
        (number(above=0), [1e-9, 3], [0, -1, math.inf]),
        (text(), ["", "a"], [None, 3, b"a"]),
        (text(empty=False), ["a"], ["", "  ", None]),
        (one_of("off", "on"), ["off", "on"], ["of", False, True, None, ("off",)]),
        (one_of("a", 0, 1), ["a", 0, 1], [True, False, 1.0, 2, "0"]),
        (items(whole(0)), [(0,), (2, 1)], [(), (1, 1), (-1,), [0], "0", None]),
        (items(text(), empty=True), [(), ("a",)], [("a", "a"), (1,), "ab"]),
        (maybe(whole(0)), [None, 0], [-1, "", False]),
    ],
)
def test_a_rule_accepts_what_it_says(rule, legal, illegal):
    assert all(map(rule.accepts, legal))
    assert not any(map(rule.accepts, illegal))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (flag(), "true or false"),
        (whole(1, 5), "a whole number from 1 to 5"),
        (number(), "a finite number"),
        (number(-10, 1), "a finite number from -10 to 1"),
        (number(above=0), "a finite number above 0"),
        (text(empty=False), "text that is not empty"),
        (one_of("a", 0), "one of 'a', 0"),
        (maybe(text()), "null or text"),
        (items(flag()), "a list, not empty, of distinct values, each true or false"),
        (items(flag(), empty=True), "a list of distinct values, each true or false"),
    ],
)
def test_a_rule_has_words(rule, words):
    assert rule.wanted == words


def test_a_bare_off_in_a_file_is_the_word():
    assert one_of("off", "on").read(False) == "off"
    assert one_of("on").read(False) is False
    assert one_of("off", 0).read(0) == 0
    assert maybe(one_of("off")).read(False) == "off"
    assert maybe(one_of("off")).read(None) is None
