"""Fixtures that tests of tracking share."""

import pytest

from jaxtrace.config import configure, reset_config


@pytest.fixture
def double():
    """Compute in double precision, in this test only."""
    configure(dtype="float64")
    yield
    reset_config()
