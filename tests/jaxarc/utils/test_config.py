import pytest

from jaxarc.config import package_files
from jaxarc.utils.config import get_config


def test_the_documented_path_leads_to_the_function():
    assert get_config is package_files.get_config


def test_it_gives_the_configuration_with_overrides():
    pytest.importorskip("hydra")
    assert get_config(["seed=7"]).seed == 7
