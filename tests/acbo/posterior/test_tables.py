import numpy as np
import pandas as pd
import pytest

from acbo.posterior import inputs
from acbo.posterior.exact import exact_parent_posterior

NAMES = ["A", "B", "Y"]
VALUES = np.random.default_rng(0).standard_normal((6, 3))
FLAGS = np.zeros((6, 3), bool)


def with_cell(value, row=2, column=1):
    values = VALUES.copy()
    values[row, column] = value
    return values


def constant_when_observed():
    values, flags = VALUES.copy(), FLAGS.copy()
    values[:4, 1], flags[4:, 1] = 7.0, True
    return values, flags


@pytest.mark.parametrize(
    ("values", "flags", "options", "message"),
    [
        (with_cell(np.nan), None, {}, "row 2 holds nan in column 'B'"),
        (with_cell(np.inf), None, {}, "row 2 holds inf in column 'B'"),
        (*constant_when_observed(), {}, "column 'B' is constant"),
        (VALUES[:1], None, {}, "two rows or more"),
        (VALUES[0], None, {}, "are not a table"),
        (VALUES, FLAGS[:5], {}, "one flag for each cell"),
        (VALUES, FLAGS + 2, {}, "must contain only True and False"),
        (VALUES, None, {"target": "Z"}, "'Z' is not known"),
        (VALUES, None, {"target": 3}, "3 is not known"),
        (VALUES, None, {"names": ["A", "Y"]}, "do not go with 3 columns"),
        (VALUES, None, {"names": ["A", "A", "Y"]}, "all different"),
        (VALUES, FLAGS | [False, False, True], {}, "is intervened in every row"),
        (VALUES, None, {"required": [("A", "Q")]}, "'Q' is not known"),
        (VALUES, None, {"forbidden": ["AB"]}, "'AB' is not an edge"),
        (VALUES, None, {"required": [("A", "A")]}, "is a loop"),
        (
            VALUES,
            None,
            {"required": [("A", "B"), ("B", "A")]},
            "form a cycle",
        ),
        (
            VALUES,
            None,
            {"required": [("A", "B")], "forbidden": [(0, 1)]},
            "A -> B is required and forbidden",
        ),
        (VALUES, None, {"required": [("B", "A")], "tiers": ["A", "B"]}, "B -> A is"),
        (VALUES, None, {"tiers": [["A"], ["A", "B"]]}, "'A' is in two tiers"),
        (
            VALUES,
            None,
            {"required": [("A", "Y"), ("B", "Y")], "max_parents": 1},
            "'Y' has 2 required parents",
        ),
        (VALUES, None, {"max_parents": -1}, "max_parents=-1"),
    ],
)
def test_bad_input_is_named(values, flags, options, message):
    arguments = {"target": "Y", "names": NAMES} | options
    with pytest.raises(ValueError, match=message):
        exact_parent_posterior(values, flags, **arguments)


def test_frames_bring_their_names():
    table = inputs.check_data(
        pd.DataFrame(VALUES, columns=NAMES), FLAGS.astype(int), "B"
    )
    assert (table.names, table.target) == (("A", "B", "Y"), 1)
    assert inputs.check_data(VALUES, None, None).names == ("X0", "X1", "X2")
    mixed = pd.DataFrame({"A": [1.0, 2.0], "note": ["x", "y"]})
    with pytest.raises(ValueError, match="column 'note' is not numeric"):
        inputs.check_data(mixed, None, "A")


def test_columns_and_edges():
    assert inputs.find_column("Y", NAMES) == inputs.find_column(np.int64(2), NAMES) == 2
    pairs = [("A", "Y"), (1, 0)]
    wanted, later = inputs.edge_rules(NAMES, pairs, (), ["B", ["Y"]], 1)  # A is free
    assert np.argwhere(wanted).tolist() == [[0, 2], [1, 0]]
    assert np.argwhere(later).tolist() == [[2, 1]]
    assert not np.any(inputs.edge_rules(NAMES, (), (), None, 1))
