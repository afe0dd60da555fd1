"""The documented imports, and that they are those of `jaxarc.ops.names`."""

from jaxarc.envs import operations
from jaxarc.ops import names


def test_the_documented_path_leads_to_the_one_definition():
    for name in operations.__all__:
        assert getattr(operations, name) is getattr(names, name)
