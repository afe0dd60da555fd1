"""The documented imports, and that they are the same classes as in `jaxarc.actions`."""

import jaxarc.actions
from jaxarc.envs import structured_actions


def test_the_documented_path_leads_to_the_one_definition():
    for name in structured_actions.__all__:
        assert getattr(structured_actions, name) is getattr(jaxarc.actions, name)
