"""What the package plugs into the command `jaxrig`; each part is loaded on use."""

from jaxrig.systems import System

SYSTEM = System(
    "arc",
    "ARC environments",
    demo="jaxarc.demo:arc_section",
    benchmarks="jaxarc.benchmarks:BENCHMARKS",
    app="jaxarc.cli:app",
)
