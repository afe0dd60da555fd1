"""The system has everything the front door can show."""

from acbo.system import SYSTEM
from jaxrig.systems import System


def test_the_system_is_complete():
    assert isinstance(SYSTEM, System)
    assert SYSTEM.name == "causal"
    assert SYSTEM.demo is not None
    assert SYSTEM.app is not None
    assert all(b.name.startswith("causal.") for b in SYSTEM.benchmarks)
