"""Oracle: the names the README and the front door promise."""

from jaxrig.core import SYSTEM


def test_the_core_plugs_in_its_demo_and_benchmarks():
    assert SYSTEM.name == "core"
    assert SYSTEM.demo is not None
    assert all(b.name.startswith("core.") for b in SYSTEM.benchmarks)
    assert len({b.name for b in SYSTEM.benchmarks}) == len(SYSTEM.benchmarks)
