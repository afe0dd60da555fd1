"""Oracle: the table of the operations, written out where it matters."""

import pytest

from jaxarc.ops.names import (
    NUM_OPERATIONS,
    OPERATION_NAMES,
    ARCLEOperationType,
    get_all_operation_ids,
    get_operation_category,
    get_operation_display_text,
    get_operation_name,
    get_operations_by_category,
    is_valid_operation_id,
)


@pytest.mark.parametrize(
    ("operation", "name", "category"),
    [
        (0, "Fill 0", "fill"),
        (9, "Fill 9", "fill"),
        (10, "Flood Fill 0", "flood_fill"),
        (19, "Flood Fill 9", "flood_fill"),
        (20, "Move Up", "movement"),
        (23, "Move Right", "movement"),
        (24, "Rotate CW", "transformation"),
        (27, "Flip V", "transformation"),
        (28, "Copy", "editing"),
        (31, "Clear", "editing"),
        (32, "Copy Input", "special"),
        (34, "Submit", "special"),
        (35, "Next Demo Pair", "control"),
        (39, "Reset Current Pair", "control"),
        (41, "First Unsolved Test", "control"),
    ],
)
def test_names_and_categories(operation, name, category):
    assert get_operation_name(operation) == OPERATION_NAMES[operation] == name
    assert get_operation_category(operation) == category
    assert get_operation_display_text(operation) == f"Op {operation}: {name}"


def test_every_operation_has_one_name_and_one_category():
    assert get_all_operation_ids() == list(range(42)) == sorted(OPERATION_NAMES)
    assert len(set(OPERATION_NAMES.values())) == NUM_OPERATIONS == 42
    members = [i for ids in get_operations_by_category().values() for i in ids]
    assert members == list(range(42))
    assert [int(o) for o in ARCLEOperationType] == list(range(42))


@pytest.mark.parametrize("operation", [-1, 42, 1000])
def test_unknown_numbers_are_refused(operation):
    assert not is_valid_operation_id(operation)
    for describe in (get_operation_name, get_operation_category):
        with pytest.raises(ValueError, match=f"operation {operation} is unknown"):
            describe(operation)
