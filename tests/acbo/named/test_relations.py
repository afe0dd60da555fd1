import pytest

from acbo.named.relations import (
    get_ancestors,
    get_children,
    get_descendants,
    get_edges,
    get_mechanisms,
    get_parents,
    get_target,
    get_variables,
    is_cyclic,
    topological_sort,
    validate_edge_consistency,
    validate_mechanisms,
)
from causal_models import COEFFICIENTS, triangle

RING = {
    "variables": {"A", "B", "C"},
    "edges": [("A", "B"), ("B", "C"), ("C", "A")],
    "mechanisms": {"A": None},
}


def test_a_models_graph():
    scm = triangle()
    assert get_variables(scm) == {"A", "B", "C"}
    assert get_edges(scm) == set(COEFFICIENTS)
    assert set(get_mechanisms(scm)) == {"A", "B", "C"}
    assert get_target(scm) == "C"
    assert get_parents(scm, "C") == {"A", "B"}
    assert get_children(scm, "A") == {"B", "C"}
    assert get_ancestors(scm, "B") == {"A"}
    assert get_descendants(scm, "A") == {"B", "C"}
    assert topological_sort(scm) == ["A", "B", "C"]
    assert not is_cyclic(scm)
    assert validate_mechanisms(scm)
    assert validate_edge_consistency(scm)


def test_a_wrong_description_is_told_apart():
    assert is_cyclic(RING)
    assert not validate_mechanisms(RING)
    assert validate_edge_consistency(RING)
    assert not validate_edge_consistency(RING | {"edges": [("A", "Q")]})
    with pytest.raises(ValueError, match="cycle: A -> B -> C -> A"):
        topological_sort(RING)
    with pytest.raises(ValueError, match="'Q' is not one of: A, B, C"):
        get_parents(RING, "Q")
