"""Readers take what a file may hold, convert it, and say what is wrong otherwise."""

import pytest

from jaxrig.static import thaw
from jaxtrace.workflow import values


@pytest.mark.parametrize(
    ("read", "given", "expected"),
    [
        (values.text, "a", "a"),
        (values.flag, False, False),
        (values.whole(0), 0, 0),
        (values.number(0), 2, 2.0),
        (values.number(up_to=1), 1, 1.0),
        (values.percent, 0, 0.0),
        (values.one_of("a", "b"), "b", "b"),
        (values.some_of("a", "b"), ["b"], ("b",)),
        (values.some_of("a", "b"), [], ()),
        (values.maybe(values.text), None, None),
        (values.per_axis(values.whole()), 3, (3, 3, 3)),
        (values.per_axis(values.whole()), [1, 2, 3], (1, 2, 3)),
        (values.per_axis(values.whole()), {"z": 3, "x": 1, "y": 2}, (1, 2, 3)),
        (values.pair, [2, 1], (2.0, 1.0)),
        (values.rising, [1, 2], (1.0, 2.0)),
        (values.axis_parts, {"y": [0, 0.5]}, ((0.0, 1.0), (0.0, 0.5), (0.0, 1.0))),
        (values.box, [0, 1, 2, 3], ((0.0, 2.0, 0.0), (1.0, 3.0, 0.0))),
        (values.box, {"x": [0, 1], "y": [2, 3]}, ((0.0, 2.0, 0.0), (1.0, 3.0, 0.0))),
        (values.name_or_names, ["u", "v"], ("u", "v")),
        (values.name_or_names, "U", "U"),
    ],
)
def test_what_is_right_is_converted(read, given, expected):
    assert read(given, "key") == expected


@pytest.mark.parametrize(
    ("read", "given", "words"),
    [
        (values.text, " ", "some text"),
        (values.flag, 1, "true or false"),
        (values.whole(), 0, "a whole number from 1"),
        (values.whole(), True, "a whole number"),
        (values.whole(), 1.0, "a whole number"),
        (values.number(0), 0.0, "a number above 0"),
        (values.number(0, 1), 2.0, "above 0 up to 1"),
        (values.number(), float("nan"), "a number"),
        (values.percent, -1, "from 0 to 100"),
        (values.one_of("a", "b"), "c", "one of a, b"),
        (values.some_of("a", "b"), ["c"], "one of a, b"),
        (values.some_of("a", "b"), ["a", "a"], "each once"),
        (values.some_of("a", "b"), "a", "a list"),
        (values.per_axis(values.whole()), [1, 2], "one for each of x, y and z"),
        (values.per_axis(values.whole()), {"x": 1, "y": 1}, "a value for z"),
        (values.per_axis(values.whole()), {"w": 1}, "not w"),
        (values.per_axis(values.whole()), {"x": 1, "y": 0, "z": 1}, r"key\.y is 0"),
        (values.pair, [1], "two numbers"),
        (values.rising, [2, 1], "the second larger"),
        (values.part, [0, 1.5], "from 0 to 1"),
        (values.box, [1, 0, 0, 1], "the lower end comes first"),
        (values.name_or_names, [], "some text"),
    ],
)
def test_what_is_wrong_names_the_key_and_the_rule(read, given, words):
    with pytest.raises(ValueError, match=words) as error:
        read(given, "key")
    assert str(error.value).startswith("key")


def test_options_are_hashable_and_come_back():
    given = {"a": [1, {"b": 2}]}
    frozen = values.options(given, "key")
    assert hash(frozen) == hash(values.options(given, "key"))
    assert thaw(frozen) == given
