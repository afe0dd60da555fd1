import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxarc.config.fields import ConfigValidationError
from jaxarc.config.files import MAX_DEPTH, read_yaml, write_yaml

pytest.importorskip("yaml")
BOMB = "a: &a [1, 1]\n" + "".join(
    f"{x}: &{x} [*{y}, *{y}]\n" for y, x in zip("abcdefgh", "bcdefghi", strict=True)
)


def test_mappings_are_read():
    assert read_yaml("a: {b: [1, x]}\nc: null") == {"a": {"b": [1, "x"]}, "c": None}
    assert read_yaml("") == read_yaml("# nothing\n") == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- 1\n- 2", "the configuration is .* it must be a mapping"),
        ("plain", "the configuration is 'plain'"),
        ("a: [1", "no readable YAML"),
        ("a: b: c", "no readable YAML"),
        ("a: 1\n--- \nb: 2", "no readable YAML"),
        ("[1]: 2", "no readable YAML"),
        ("a: 2024-99-99", "no readable YAML"),
        ("a: \x00", "no readable YAML"),
        ("a: " + "9" * 5000, "no readable YAML"),
        (BOMB, "uses the anchor 'a'; write the value out"),
        ("a: !!python/object/apply:os.getcwd []", "uses the tag 'tag:yaml.org"),
        ("a: !!bool maybe", "uses the tag"),
        ("a: " + "[" * 5000 + "]" * 5000, f"more than {MAX_DEPTH} levels"),
        ("a: " + "{x: " * 30 + "1" + "}" * 30, f"more than {MAX_DEPTH} levels"),
        ("a: 1\nb: 2\na: 3", "gives the key 'a' 2 times; keep one"),
        ("x: [{a: 1, a: 3}]", "gives the key 'a' 2 times; keep one"),
    ],
)
def test_hostile_text_is_refused(text, sentence):
    with pytest.raises(ConfigValidationError, match=sentence):
        read_yaml(text)


SCALARS = st.none() | st.booleans() | st.integers() | st.text()
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.dictionaries(
        st.text(),
        SCALARS | FLOATS | st.lists(SCALARS) | st.dictionaries(st.text(), SCALARS),
    )
)
def test_what_is_written_is_read_again(mapping):
    assert read_yaml(write_yaml(mapping)) == mapping


def test_order_is_kept():
    assert write_yaml({"b": 1, "a": 2}) == "b: 1\na: 2\n"


def test_other_objects_cannot_be_written():
    with pytest.raises(ConfigValidationError, match="cannot be written"):
        write_yaml({"a": object()})
