"""Logs and pictures collect garbage when they end: let it be little."""

import pytest

from helpers import small_heap


@pytest.fixture(autouse=True)
def little_garbage():
    with small_heap():
        yield
