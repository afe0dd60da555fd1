import pickle

import pytest

from acbo.named.frozen_map import FrozenMap, as_float


def test_is_a_read_only_copy_that_equals_and_hashes_by_value():
    given = {"b": 1.0, "a": 2.0}
    held = FrozenMap(given)
    given["b"] = 5.0
    assert held == {"a": 2.0, "b": 1.0}
    assert list(held) == ["b", "a"]
    assert hash(held) == hash(FrozenMap({"a": 2.0, "b": 1.0}))
    assert pickle.loads(pickle.dumps(held)) == held
    with pytest.raises(TypeError):
        held["b"] = 3.0  # pyright: ignore[reportIndexIssue]


@pytest.mark.parametrize("bad", ["high", None, float("nan"), float("inf")])
def test_what_is_no_finite_number_is_named(bad):
    with pytest.raises(ValueError, match="dose is"):
        as_float(bad, "dose")
