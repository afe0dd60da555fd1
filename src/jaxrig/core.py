"""What the core itself plugs into the front door."""

from jaxrig.benchmarks import BENCHMARKS
from jaxrig.demo import core_section
from jaxrig.systems import System

SYSTEM = System("core", "The core", demo=core_section, benchmarks=BENCHMARKS)
