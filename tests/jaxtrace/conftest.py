"""Fixtures that tests of tracking share."""

import pytest

from jaxtrace.config import configure, reset_config
from jaxtrace.tracking import time_loop


@pytest.fixture
def double():
    """Compute in double precision, in this test only."""
    configure(dtype="float64")
    yield
    reset_config()


@pytest.fixture
def small_parts(monkeypatch):
    """Split a handful of particles over the cores that a test configures."""
    monkeypatch.setattr(time_loop, "SMALLEST_PART", 4)
    yield
    reset_config()
