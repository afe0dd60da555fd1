"""What the core itself plugs into the command line."""

from jaxrig.systems import System

SYSTEM = System(
    "core",
    "The core",
    demo="jaxrig.demo:core_section",
    benchmarks="jaxrig.benchmarks:BENCHMARKS",
)
