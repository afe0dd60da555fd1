import numpy as np
import pytest

from jaxtrace.files import columns
from jaxtrace.files.columns import Column


def content(column, order="<"):
    return b"".join(bytes(part) for part in column.stream(order))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", columns.KINDS)
def test_a_column_streams_every_kind_in_both_byte_orders(kind, order):
    values = np.arange(12).reshape(4, 3).astype(kind)
    column = columns.column("a", values)
    assert (column.rows, column.components, column.nbytes) == (4, 3, values.nbytes)
    assert (
        content(column, order)
        == values.astype(values.dtype.newbyteorder(order)).tobytes()
    )


def test_blocks_are_small_and_lose_nothing(monkeypatch):
    monkeypatch.setattr(columns, "BLOCK", 40)
    values = np.arange(101.0).reshape(101, 1)
    parts = list(columns.column("a", values).stream("<"))
    assert max(len(part) for part in parts) <= 40
    assert b"".join(map(bytes, parts)) == values.tobytes()
    numbers = columns.integers("i", 33, 100, start=3, step=3)
    assert content(numbers) == np.arange(3, 102, 3, dtype="i4").tobytes()


def test_strided_arrays_and_booleans():
    values = np.arange(24.0).reshape(4, 6)[:, ::2]
    assert content(columns.column("a", values)) == values.copy().tobytes()
    assert content(columns.column("b", [True, False])) == b"\x01\x00"


def test_a_column_with_the_wrong_amount_of_data_is_an_error():
    short = Column("a", np.dtype("f4"), 3, 1, lambda: [np.zeros(2, "f4")])
    with pytest.raises(ValueError, match="'a' made -4 bytes"):
        content(short)


@pytest.mark.parametrize("dtype", ["f2", "c8", "U3", "O"])
def test_kinds_that_no_file_holds_are_refused(dtype):
    with pytest.raises(TypeError, match="'a' has dtype"):
        columns.column("a", np.zeros(3, dtype))


def test_rows_are_checked():
    with pytest.raises(ValueError, match="'a' has shape \\(3,\\), it needs 4 rows"):
        columns.columns({"a": np.zeros(3)}, 4)
    with pytest.raises(ValueError, match="needs an array"):
        columns.column("a", 1.0)
    with pytest.raises(ValueError, match="has 3 rows, it needs 4"):
        columns.columns({"a": columns.column("a", np.zeros(3))}, 4)


def test_positions_become_three_columns_of_floats():
    flat = columns.as_points(np.ones((2, 5, 2), np.float32))
    assert flat.dtype == np.float32
    assert flat.shape == (2, 5, 3)
    assert not flat[..., 2].any()
    assert columns.as_points([[1, 2, 3]]).dtype == np.float64
    with pytest.raises(ValueError, match=r"\(4, 5\)"):
        columns.as_points(np.zeros((4, 5)))


def test_numbers_past_32_bits_get_64():
    assert columns.index_kind(2**31 - 1) == np.int32
    assert columns.index_kind(2**31) == np.int64
