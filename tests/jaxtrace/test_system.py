"""The system has everything the front door can show."""

from jaxrig.systems import System
from jaxtrace.system import SYSTEM


def test_the_system_is_complete():
    assert isinstance(SYSTEM, System)
    assert SYSTEM.name == "trace"
    assert SYSTEM.demo is not None
    assert SYSTEM.app is not None
    assert all(b.name.startswith("trace.") for b in SYSTEM.benchmarks)
