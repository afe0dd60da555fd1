"""Oracle: the guide's own two functions, which these replace."""

from hypothesis import given
from hypothesis import strategies as st

from acbo.training.measuring import prepare_static_args, restore_static_args

NAMES = st.text("XYZW", min_size=1, max_size=3)
SETS = st.lists(st.lists(st.frozensets(NAMES)))


@given(SETS, st.lists(st.lists(NAMES)), st.lists(NAMES))
def test_round_trip_is_exact_and_hashable(sets, orders, targets):
    frozen = prepare_static_args(sets, orders, targets)
    assert isinstance(hash(frozen), int)
    assert restore_static_args(frozen) == (sets, orders, targets)


def test_sets_are_sorted_and_lists_keep_their_order():
    found = prepare_static_args([[frozenset("ZX"), frozenset()]], [["Z", "X"]], ["Y"])
    assert found == (((("X", "Z"), ()),), (("Z", "X"),), ("Y",))
